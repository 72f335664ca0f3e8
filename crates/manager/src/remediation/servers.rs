//! What MAAS says, as the rules about remediations know it.

use decisions::{Lookup, Power, Server};
use jiff::Timestamp;
use maas_client::{Error, Machine, PowerState};

use crate::{failure, machine::server};

/// What came of looking at one machine.
pub fn looked(result: Result<Machine, Error>, read_at: Timestamp) -> Lookup<Server> {
    match result {
        Ok(machine) => Lookup::Found(server(&machine, read_at)),
        Err(Error::NotFound { .. }) => Lookup::Missing,
        Err(Error::NotPermitted { .. }) => Lookup::Forbidden,
        Err(error) => Lookup::Failed(failure::of_maas(&error)),
    }
}

/// What a power controller said.
pub fn power(state: &PowerState) -> Power {
    match state {
        PowerState::On => Power::On,
        PowerState::Off => Power::Off,
        PowerState::Unknown | PowerState::Error | PowerState::Other(_) => Power::Unclear,
    }
}

/// The host a MAAS is at, as intents name it: what stays the same when it gets another port or TLS.
pub fn host(endpoint: &str) -> String {
    endpoint.parse::<http::Uri>().ok().and_then(|address| address.host().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_named_without_its_port_and_path() {
        for (endpoint, expected) in [
            ("http://maas.test:5240/MAAS", "maas.test"),
            ("https://10.0.0.1/MAAS", "10.0.0.1"),
            ("http://[fd00::1]:5240/MAAS", "[fd00::1]"),
        ] {
            assert_eq!(host(endpoint), expected);
        }
    }
}
