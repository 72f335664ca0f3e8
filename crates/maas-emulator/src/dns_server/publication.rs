//! MAAS writes its zone files some seconds after a change, not with it. A [`Publication`] holds what is published and what is being
//! written; the server asks it at every query and a few times a second.

use std::sync::Arc;

use jiff::Timestamp;

use super::contents;
use super::zones::Zones;
use crate::clock::later;
use crate::emulator::Emulator;
use crate::random::Random;
use crate::world::World;

/// What the name server shows, and what it will show.
pub struct Publication {
    emulator: Emulator,
    published: Arc<Zones>,
    /// The contents that are published or being written; others are new.
    known: Edition,
    next: Option<Next>,
}

/// Tells contents apart without comparing them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Edition {
    changes: u64,
    subnets: (u32, usize),
}

struct Next {
    zones: Arc<Zones>,
    visible_at: Timestamp,
}

impl Publication {
    /// Begins with everything published.
    pub fn of(emulator: Emulator) -> Self {
        let (known, zones) = emulator.world(|world| (Edition::of(world), contents::build(world)));
        Publication { emulator, published: Arc::new(zones), known, next: None }
    }

    /// What is published now. A change that comes while another is being written waits for the next writing, as in MAAS.
    pub fn zones(&mut self) -> Arc<Zones> {
        let emulator = self.emulator.clone();
        emulator.world(|world| {
            self.publish_what_is_due(world.now);
            let edition = Edition::of(world);
            if self.next.is_none() && edition != self.known {
                // Drawn apart from the world's own chance, which queries must not disturb.
                let delay = world.timings.dns_publication.draw(&mut Random::new(edition.changes));
                self.next = Some(Next { zones: Arc::new(contents::build(world)), visible_at: later(world.now, delay) });
                self.known = edition;
                self.publish_what_is_due(world.now);
            }
        });
        Arc::clone(&self.published)
    }

    fn publish_what_is_due(&mut self, now: Timestamp) {
        if let Some(next) = self.next.take_if(|next| next.visible_at <= now) {
            self.published = next.zones;
        }
    }
}

impl Edition {
    fn of(world: &World) -> Self {
        Edition { changes: world.dns_changes, subnets: (world.subnets.next_id(), world.subnets.len()) }
    }
}
