//! MAAS's machines as the rules know them.

use decisions::{Link, LinkMode, Lookup, NetworkInterface, Power, Server, ServerStatus, SubnetName};
use jiff::Timestamp;
use maas_client::{Error, Machine, PowerState};

use crate::failure;

/// A machine as MAAS showed it at this time.
pub fn server(machine: &Machine, read_at: Timestamp) -> Server {
    let boot = machine.boot_interface.as_ref().map(|interface| interface.id);
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Server {
        system_id: machine.system_id.as_str().into(),
        hostname: machine.hostname.clone(),
        fqdn: machine.fqdn.clone(),
        status: ServerStatus::from(i64::from(machine.status)),
        status_message: text(&machine.status_message),
        error: machine.error_description.clone(),
        owner: machine.owner.clone().filter(|owner| !owner.is_empty()),
        marks: machine.workload_annotations.clone(),
        power: power(&machine.power_state),
        zone: machine.zone.name.clone(),
        pool: machine.pool.name.clone(),
        vm_host: machine.pod.as_ref().map(|host| host.name.clone()),
        locked: machine.locked,
        in_memory: machine.ephemeral_deploy,
        swap_off: machine.swap_size == Some(0),
        architecture: machine.architecture.clone(),
        addresses: machine.ip_addresses.iter().filter_map(|address| address.parse().ok()).collect(),
        interfaces: machine.interface_set.iter().map(|found| interface(found, boot == Some(found.id))).collect(),
        read_at,
    }
}

fn interface(found: &maas_client::Interface, boot: bool) -> NetworkInterface {
    let link = |link: &maas_client::Link| Link {
        id: link.id.number(),
        mode: match &link.mode {
            maas_client::LinkMode::Auto => LinkMode::Auto,
            maas_client::LinkMode::Static => LinkMode::Static,
            maas_client::LinkMode::Dhcp => LinkMode::Dhcp,
            maas_client::LinkMode::LinkUp => LinkMode::LinkUp,
            maas_client::LinkMode::Other(other) => LinkMode::Other(other.clone()),
        },
        subnet: link.subnet.as_ref().map(|subnet| SubnetName { cidr: subnet.cidr.clone(), name: subnet.name.clone() }),
        address: link.ip_address.as_ref().and_then(|address| address.parse().ok()),
    };
    NetworkInterface {
        id: found.id.number(),
        name: found.name.clone(),
        tags: found.tags.clone(),
        boot,
        children: found.children.clone(),
        links: found.links.iter().map(link).collect(),
    }
}

/// Whether a machine has power.
pub fn power(state: &PowerState) -> Power {
    match state {
        PowerState::On => Power::On,
        PowerState::Off => Power::Off,
        PowerState::Unknown | PowerState::Error | PowerState::Other(_) => Power::Unclear,
    }
}

/// What came of looking at one machine.
pub fn lookup(result: Result<Machine, Error>, read_at: Timestamp) -> Lookup<Server> {
    match result {
        Ok(machine) => Lookup::Found(server(&machine, read_at)),
        Err(Error::NotFound { .. }) => Lookup::Missing,
        Err(Error::NotPermitted { .. }) => Lookup::Forbidden,
        Err(error) => Lookup::Failed(failure::of_maas(&error)),
    }
}
