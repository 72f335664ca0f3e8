//! Machines of a fleet, the rack controller and the VM hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::interfaces::{Macs, add_interface};
use super::{FleetError, named, possible, spelling};
use crate::endpoints::machines::bad_host_label;
use crate::fleet::{self, Fleet};
use crate::lifecycle;
use crate::world::addressing::NewAddress;
use crate::world::id::Id;
use crate::world::machine::{Machine, NodeKind, PowerState, ScriptSet, ScriptStatus};
use crate::world::network::AddressKind;
use crate::world::place::Tag;
use crate::world::status::Status;
use crate::world::storage::Disk;
use crate::world::{World, next};

/// More of one kind are a typing error, and would take memory until there is none.
const MOST_MACHINES: u32 = 100_000;
/// The size of a disk nobody gave a size: 120 GB.
const DISK_SIZE: u64 = 120_000_000_000;

pub fn rack(world: &mut World, fleet: &Fleet, macs: &mut Macs) -> Result<(), FleetError> {
    let rack = fleet.rack.clone().unwrap_or_default();
    let system_id = match &rack.system_id {
        Some(given) => {
            spelling::system_id(&given.value, "rack").map_err(|error| error.within(given))?;
            given.value.clone()
        }
        None => world.fresh_system_id(),
    };
    let owner = world.users.values().find(|user| user.superuser).map(|user| user.id);
    let hostname = rack.hostname.clone().unwrap_or_else(|| "rack".into());
    let id = world.add_machine(|id| Machine { kind: NodeKind::RackController, owner, ..blank(id, system_id, hostname) });
    for vlan in world.vlans.values_mut().filter(|vlan| vlan.dhcp_on) {
        vlan.primary_rack = Some(id);
    }
    for (index, interface) in rack.interfaces.iter().enumerate() {
        add_interface(world, id, index, interface, "rack", macs)?;
    }
    Ok(())
}

pub fn machines(world: &mut World, fleet: &Fleet, macs: &mut Macs) -> Result<(), FleetError> {
    // Ids that are made up come after those that are given.
    let links = fleet.machines.iter().flat_map(|machine| &machine.value.interfaces).flat_map(|interface| interface.links.iter().flatten());
    world.addresses.skip_to(links.filter_map(|link| link.id).max().map_or(0, |id| id.saturating_add(1)));
    let mut given = Given::default();
    for (index, place) in fleet.machines.iter().enumerate() {
        given.note(&place.value, &field_of(index, &place.value)).map_err(|error| error.within(place))?;
    }
    world.counters.disk = world.counters.disk.max(after(&given.disks));
    world.counters.partition = world.counters.partition.max(after(&given.partitions));
    let mut names = BTreeSet::new();
    for (index, place) in fleet.machines.iter().enumerate() {
        let machine = &place.value;
        let name = machine.hostname.as_ref().map(|name| name.value.as_str());
        let field = field_of(index, machine);
        spelling::machine(machine, &field).map_err(|error| error.within(place))?;
        if let Some(count) = &machine.count {
            let wrong = |problem: String| Err(FleetError::at(count, format!("{field}: count"), problem));
            if count.value == 0 {
                return wrong("none is no number of machines; leave the entry out".to_owned());
            }
            if count.value > MOST_MACHINES {
                return wrong(format!("at most {MOST_MACHINES} machines of one kind"));
            }
            if machine.system_id.is_some() || !machine.interfaces.is_empty() {
                return wrong("machines of one kind cannot share a system_id or interfaces: leave both out, they are made up".into());
            }
        }
        for number in 1..=machine.count.as_ref().map_or(1, |count| count.value) {
            let hostname = match (name, &machine.count) {
                (Some(name), Some(_)) => format!("{name}{number:02}"),
                (Some(name), None) => name.to_owned(),
                (None, _) => world.fresh_hostname(),
            };
            let twice = || format!("\"{hostname}\" is the name of another machine too");
            let problem = bad_host_label(&hostname).or_else(|| names.contains(&hostname).then(twice));
            if let Some(problem) = problem {
                let error = FleetError::new(format!("{field}: hostname"), problem);
                return Err(machine.hostname.as_ref().map_or_else(|| error.clone().within(place), |name| error.clone().within(name)));
            }
            names.insert(hostname.clone());
            add_machine(world, machine, hostname, &field, macs).map_err(|error| error.within(place))?;
        }
    }
    Ok(())
}

/// How errors name a machine.
fn field_of(index: usize, machine: &fleet::Machine) -> String {
    format!("machines: {}", machine.hostname.as_ref().map_or_else(|| format!("number {}", index + 1), |name| name.value.clone()))
}

/// The first id after all of these.
fn after(ids: &BTreeSet<u32>) -> u32 {
    ids.last().map_or(0, |id| id.saturating_add(1))
}

/// The ids of disks and partitions that the file gives: no two are the same.
#[derive(Default)]
struct Given {
    disks: BTreeSet<u32>,
    partitions: BTreeSet<u32>,
}

impl Given {
    fn note(&mut self, machine: &fleet::Machine, field: &str) -> Result<(), FleetError> {
        let field = format!("{field}: disks");
        for disk in &machine.disks {
            for (ids, seen) in [(disk.id.as_slice(), &mut self.disks), (disk.partition_ids.as_slice(), &mut self.partitions)] {
                for id in ids {
                    possible(*id, &field)?;
                    if !seen.insert(*id) {
                        return Err(FleetError::new(format!("{field}: id"), format!("{id} is the id of another one too")));
                    }
                }
            }
        }
        Ok(())
    }
}

fn add_machine(world: &mut World, machine: &fleet::Machine, hostname: String, field: &str, macs: &mut Macs) -> Result<(), FleetError> {
    let (zone, pool) = (named::zone(world, &machine.zone, field)?, named::pool(world, &machine.pool, field)?);
    let (domain, owner) = (named::domain(world, &machine.domain, field)?, named::owner(world, &machine.owner, field)?);
    let system_id = match &machine.system_id {
        Some(system_id) if world.node_id(&system_id.value).is_some() => {
            let problem = format!("\"{}\" is another machine's too", system_id.value);
            return Err(FleetError::at(system_id, format!("{field}: system_id"), problem));
        }
        Some(system_id) => {
            spelling::system_id(&system_id.value, field).map_err(|error| error.within(system_id))?;
            system_id.value.clone()
        }
        None => world.fresh_system_id(),
    };
    let tags = machine.tags.iter().map(|name| tag_named(world, name)).collect();
    let disks = machine_disks(world, machine);
    let results = |world: &mut World, status| ScriptSet { id: Some(next(&mut world.counters.script_set)), status };
    let commissioned = if machine.commissioned { ScriptStatus::Passed } else { ScriptStatus::Unknown };
    let (commissioning, testing, installation) =
        (results(world, commissioned), results(world, commissioned), results(world, ScriptStatus::Unknown));
    let powered = matches!(
        machine.status,
        Status::Deployed
            | Status::Deploying
            | Status::FailedDeployment
            | Status::RescueMode
            | Status::Commissioning
            | Status::Testing
            | Status::DiskErasing
    );
    let (osystem, distro_series) = named::image(world, &machine.image, field)?.unwrap_or_default();
    let (osystem, distro_series) = (osystem.to_owned(), distro_series.to_owned());
    for address in machine.power.parameters.get("power_address").into_iter().filter_map(|text| text.parse::<IpAddr>().ok()) {
        if world.subnet_of(address).is_some() && world.address_in_use(address).is_none() {
            world.add_address(NewAddress { ip: Some(address), kind: AddressKind::Sticky, subnet: None, user: None, interface: None });
        }
    }
    let now = world.now;
    let bmc = world.next_bmc();
    let id = world.add_machine(|id| Machine {
        description: machine.description.clone(),
        domain,
        zone,
        pool,
        architecture: machine.architecture.clone(),
        cpu_count: machine.cpus,
        memory: machine.memory,
        status: machine.status,
        owner,
        agent_name: machine.agent_name.clone(),
        annotations: machine.annotations.clone(),
        acquired_storage: owner.is_some(),
        locked: machine.locked,
        error_description: machine.error_description.clone(),
        power_type: machine.power.kind.clone(),
        power_parameters: machine.power.parameters.clone(),
        bmc: Some(bmc),
        power_state: if powered { PowerState::On } else { PowerState::Off },
        powered,
        osystem,
        distro_series,
        netboot: machine.status != Status::Deployed,
        ephemeral_deploy: machine.ephemeral,
        disks,
        tags,
        hardware_info: machine.hardware_info.clone(),
        devices: machine.devices.clone(),
        has_numa: true,
        commissioning,
        testing,
        installation,
        storage_tests: commissioned,
        bios_boot_method: Some("uefi".into()),
        since: now,
        ..blank(id, system_id, hostname)
    });
    let default = [fleet::Interface::default()];
    let interfaces = if machine.interfaces.is_empty() { &default[..] } else { &machine.interfaces };
    for (index, interface) in interfaces.iter().enumerate() {
        add_interface(world, id, index, interface, field, macs)?;
    }
    lifecycle::resume(world, id);
    if matches!(machine.status, Status::Deployed | Status::Deploying | Status::FailedDeployment) {
        lifecycle::deploy::claim_addresses(world, id)
            .map_err(|subnet| FleetError::new(format!("{field}: status"), format!("there is no address left for it in {subnet}")))?;
    }
    Ok(())
}

/// The tag with this name, made when there is none.
pub fn tag_named(world: &mut World, name: &str) -> Id<Tag> {
    if let Some((id, _)) = world.tags.iter().find(|(_, tag)| tag.name == name) {
        return id;
    }
    world.tags.add(None, |id| Tag { id, name: name.into(), comment: String::new(), definition: String::new(), kernel_opts: String::new() })
}

fn machine_disks(world: &mut World, machine: &fleet::Machine) -> Vec<Disk> {
    let default = [fleet::Disk::default()];
    let disks = if machine.disks.is_empty() { &default[..] } else { &machine.disks };
    disks
        .iter()
        .enumerate()
        .map(|(index, disk)| {
            let id = disk.id.unwrap_or(world.counters.disk);
            world.counters.disk = world.counters.disk.max(id + 1);
            let letter = char::from(b'a' + u8::try_from(index.min(25)).unwrap_or(0));
            let name = disk.name.clone().unwrap_or_else(|| format!("sd{letter}"));
            let mut row = Disk::unused(id, name, disk.size.unwrap_or(DISK_SIZE));
            row.tags.clone_from(&disk.tags);
            row.model.clone_from(&disk.model);
            row.serial.clone_from(&disk.serial);
            if index == 0 {
                row.lay_out_flat(world, &disk.partition_ids);
            }
            row
        })
        .collect()
}

/// A machine MAAS knows nothing about.
pub fn blank(id: Id<Machine>, system_id: String, hostname: String) -> Machine {
    let nothing = ScriptSet { id: None, status: ScriptStatus::Unknown };
    Machine {
        id,
        kind: NodeKind::Machine,
        system_id,
        hostname,
        description: String::new(),
        domain: Id::new(0),
        zone: Id::new(1),
        pool: Id::new(0),
        architecture: "amd64/generic".into(),
        cpu_count: 0,
        cpu_speed: 0,
        memory: 0,
        swap_size: None,
        bios_boot_method: None,
        status: Status::New,
        previous_status: Status::New,
        owner: None,
        agent_name: String::new(),
        annotations: BTreeMap::new(),
        locked: false,
        error_description: String::new(),
        power_type: String::new(),
        power_parameters: BTreeMap::new(),
        bmc: None,
        power_state: PowerState::Unknown,
        powered: false,
        osystem: String::new(),
        distro_series: String::new(),
        hwe_kernel: None,
        min_hwe_kernel: None,
        netboot: true,
        ephemeral_deploy: false,
        enable_hw_sync: false,
        last_sync: None,
        enable_kernel_crash_dump: false,
        register_as: Vec::new(),
        user_data: None,
        interfaces: Vec::new(),
        boot_interface: None,
        disks: Vec::new(),
        volume_groups: Vec::new(),
        special_filesystems: Vec::new(),
        acquired_storage: false,
        status_action: None,
        tags: BTreeSet::new(),
        hardware_info: BTreeMap::new(),
        hardware_uuid: None,
        devices: Vec::new(),
        has_numa: false,
        vm_host: None,
        virtual_machine: None,
        dynamic: false,
        pinned_cores: Vec::new(),
        commissioning: nothing,
        testing: nothing,
        installation: nothing,
        release_scripts: None,
        storage_tests: ScriptStatus::Unknown,
        status_message: None,
        boot: 0,
        since: jiff::Timestamp::UNIX_EPOCH,
        enlisting: false,
        erase_options: None,
        switching: None,
        aborting: false,
        gateway_links: Vec::new(),
        address_ttl: None,
    }
}
