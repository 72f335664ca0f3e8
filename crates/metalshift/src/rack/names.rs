//! Lets the lab's resolver ask the emulated MAAS about its domains, those that are made later included, so that whatever runs in the lab
//! resolves names of machines and clusters.

use std::net::SocketAddr;
use std::time::Duration;

use lab::{Control, LabError};
use maas_emulator::Emulator;
use maas_emulator::dns_server::Publication;

/// How often domains are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Keeps the resolver of a lab up to date, as long as it is polled.
pub async fn forward(emulator: Emulator, control: Control, server: SocketAddr) {
    let mut publication = Publication::of(emulator);
    let (mut forwarded, mut told) = (Vec::new(), String::new());
    loop {
        let domains = publication.zones().origins();
        if domains != forwarded {
            match control.forward_domains(server, &domains).await {
                Ok(()) => forwarded = domains,
                // Nobody listens while a lab is starting.
                Err(LabError::NotUp { .. } | LabError::Starting { .. }) => {}
                // Tried again, since it may pass; told once.
                Err(error) => {
                    let error = error.to_string();
                    if error != told {
                        tracing::warn!(%error, ?domains, "the lab's resolver does not ask this MAAS about all of its domains");
                        told = error;
                    }
                }
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
