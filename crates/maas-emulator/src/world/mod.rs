//! The database of the emulated MAAS: every row a call can see, kept in one value behind one lock, so that a call is a transaction.
//! [`crate::endpoints`] reads and writes it, [`crate::lifecycle`] moves machines through their states.

pub mod addressing;
mod digest_so_far;
pub mod dns;
pub mod event;
mod excerpt;
pub mod id;
pub mod image;
pub mod machine;
pub mod network;
pub mod people;
pub mod place;
pub mod rights;
pub mod status;
pub mod storage;
pub mod vm_host;

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::faults::Faults;
use crate::hardware::Order;
use crate::http::oauth::Nonces;
use crate::random::Random;
use crate::schedule::Schedule;
use crate::timings::Timings;
use crate::version::Version;
use dns::{DnsRecord, DnsResource, Domain};
use event::{Event, Level};
use id::{Id, Table};
use image::Image;
use machine::{Machine, NodeKind};
use network::{Address, Fabric, Interface, Range, Space, Subnet, Vlan};
use people::{SshKey, Token, User};
use place::{Pool, Tag, Zone};
use status::Status;
use vm_host::VmHost;

/// The whole state of the emulated MAAS.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct World {
    /// Which MAAS this is.
    pub version: Version,
    /// The time of the call or transition at work.
    pub now: Timestamp,
    /// Chance.
    pub random: Random,
    /// How long things take.
    pub timings: Timings,
    /// Whether VM hosts make disks of any size.
    #[serde(default)]
    pub thin_storage: bool,
    /// Global settings by name.
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Users.
    pub users: Table<User>,
    /// API keys.
    pub tokens: Vec<Token>,
    /// Whether keys are of the kernel's randomness instead of the seed's.
    #[serde(skip)]
    pub unguessable_keys: bool,
    /// Nonces seen.
    pub nonces: Nonces,
    /// SSH keys.
    pub ssh_keys: Table<SshKey>,
    /// Zones.
    pub zones: Table<Zone>,
    /// Resource pools.
    pub pools: Table<Pool>,
    /// Tags.
    pub tags: Table<Tag>,
    /// Domains.
    pub domains: Table<Domain>,
    /// Names.
    pub names: Table<DnsResource>,
    /// Records of names.
    pub records: Table<DnsRecord>,
    /// Fabrics.
    pub fabrics: Table<Fabric>,
    /// VLANs.
    pub vlans: Table<Vlan>,
    /// Spaces.
    pub spaces: Table<Space>,
    /// Subnets.
    pub subnets: Table<Subnet>,
    /// Ranges.
    pub ranges: Table<Range>,
    /// Addresses and links.
    pub addresses: Table<Address>,
    /// Interfaces of all machines.
    pub interfaces: Table<Interface>,
    /// Machines and the rack controller.
    pub machines: Table<Machine>,
    /// Images.
    pub images: Table<Image>,
    /// VM hosts.
    pub vm_hosts: Table<VmHost>,
    /// Events.
    pub events: Table<Event>,
    /// Ids of rows that have no table of their own here.
    pub counters: Counters,
    /// What will happen.
    pub schedule: Schedule,
    /// What goes wrong.
    pub faults: Faults,
    /// Orders to the hardware that the emulator has not passed on yet.
    #[serde(skip)]
    pub orders: Vec<Order>,
    /// How many calls have been committed: a call sees what was there when it began.
    pub commits: u64,
    /// The DNS serial: changes whenever a name or an address does.
    pub dns_changes: u64,
    by_system_id: BTreeMap<String, Id<Machine>>,
    in_use: BTreeMap<IpAddr, Vec<Id<Address>>>,
}

/// Ids of rows that have no table of their own here.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Counters {
    /// Disks and logical volumes.
    pub disk: u32,
    /// Partitions.
    pub partition: u32,
    /// Volume groups.
    pub volume_group: u32,
    /// Sets of script results.
    pub script_set: u32,
    /// Orders to the hardware.
    pub boot: u64,
    /// Virtual machines.
    pub virtual_machine: u32,
}

/// Gives a number and steps the counter on.
pub fn next(counter: &mut u32) -> u32 {
    let number = *counter;
    *counter += 1;
    number
}

impl World {
    /// A MAAS with nothing in it; [`crate::load`] fills it.
    pub fn empty(version: Version, now: Timestamp, seed: u64) -> Self {
        World {
            version,
            now,
            random: Random::new(seed),
            timings: Timings::default(),
            thin_storage: false,
            settings: BTreeMap::new(),
            users: Table::starting_at(1),
            tokens: Vec::new(),
            unguessable_keys: false,
            nonces: Nonces::default(),
            ssh_keys: Table::starting_at(1),
            zones: Table::starting_at(1),
            pools: Table::starting_at(0),
            tags: Table::starting_at(1),
            domains: Table::starting_at(0),
            names: Table::starting_at(1),
            records: Table::starting_at(1),
            fabrics: Table::starting_at(0),
            vlans: Table::starting_at(5001),
            spaces: Table::starting_at(1),
            subnets: Table::starting_at(1),
            ranges: Table::starting_at(1),
            addresses: Table::starting_at(1),
            interfaces: Table::starting_at(1),
            machines: Table::starting_at(11),
            images: Table::starting_at(1),
            vm_hosts: Table::starting_at(1),
            events: Table::starting_at(1),
            counters: Counters { disk: 1, partition: 1, volume_group: 1, script_set: 1, boot: 1, virtual_machine: 1 },
            schedule: Schedule::default(),
            faults: Faults::default(),
            orders: Vec::new(),
            commits: 0,
            dns_changes: 0,
            by_system_id: BTreeMap::new(),
            in_use: BTreeMap::new(),
        }
    }

    /// Adds a machine and makes it findable.
    pub fn add_machine(&mut self, make: impl FnOnce(Id<Machine>) -> Machine) -> Id<Machine> {
        let id = self.machines.add(None, make);
        if let Some(machine) = self.machines.get(id) {
            self.by_system_id.insert(machine.system_id.clone(), id);
        }
        id
    }

    /// The machine with this system id; rack controllers are not machines.
    pub fn machine_id(&self, system_id: &str) -> Option<Id<Machine>> {
        let id = *self.by_system_id.get(system_id)?;
        (self.machines.get(id)?.kind == NodeKind::Machine).then_some(id)
    }

    /// The node with this system id, whatever it is.
    pub fn node_id(&self, system_id: &str) -> Option<Id<Machine>> {
        self.by_system_id.get(system_id).copied()
    }

    /// All machines by row.
    pub fn all_machines(&self) -> impl DoubleEndedIterator<Item = &Machine> {
        self.machines.values().filter(|machine| machine.kind == NodeKind::Machine)
    }

    /// The number of the next file of an image.
    pub fn next_image_file(&self) -> u32 {
        let files = self.images.values().flat_map(|image| &image.sets).flat_map(|set| &set.files);
        files.map(|file| file.id).max().unwrap_or_default().saturating_add(1)
    }

    /// A system id nobody has.
    pub fn fresh_system_id(&mut self) -> String {
        loop {
            let candidate = self.random.system_id();
            if !self.by_system_id.contains_key(&candidate) {
                return candidate;
            }
        }
    }

    /// The number of a new BMC: BMCs and VM hosts are counted together.
    pub fn next_bmc(&mut self) -> u32 {
        let number = self.vm_hosts.next_id();
        self.vm_hosts.skip_to(number + 1);
        number
    }

    /// A host name nobody has.
    pub fn fresh_hostname(&mut self) -> String {
        let mut candidate = self.random.hostname();
        while self.machines.values().any(|machine| machine.hostname == candidate) {
            candidate = format!("{}-{}", self.random.hostname(), self.random.below(1000));
        }
        candidate
    }

    /// Takes a machine out with its interfaces, their addresses and its events.
    pub fn remove_machine(&mut self, id: Id<Machine>) {
        let Some(machine) = self.machines.remove(id) else { return };
        self.by_system_id.remove(&machine.system_id);
        for interface in machine.interfaces {
            self.remove_interface(interface);
        }
        let gone: Vec<_> = self.events.iter().filter(|(_, event)| event.machine == id).map(|(event, _)| event).collect();
        for event in gone {
            self.events.remove(event);
        }
        self.schedule.forget_machine(id);
        self.dns_changes += 1;
    }

    /// Takes an interface out with its addresses.
    pub fn remove_interface(&mut self, id: Id<Interface>) {
        let Some(interface) = self.interfaces.remove(id) else { return };
        for address in interface.addresses {
            self.remove_address(address);
        }
        if let Some(machine) = self.machines.get_mut(interface.machine) {
            machine.interfaces.retain(|other| *other != id);
            if machine.boot_interface == Some(id) {
                machine.boot_interface = machine.interfaces.first().copied();
            }
        }
        for other in self.interfaces.values_mut() {
            other.parents.retain(|parent| *parent != id);
        }
    }

    /// `host.domain` of a machine.
    pub fn fqdn(&self, machine: &Machine) -> String {
        match self.domains.get(machine.domain) {
            Some(domain) => format!("{}.{}", machine.hostname, domain.name),
            None => machine.hostname.clone(),
        }
    }

    /// The user's name; MAAS's own user for one that is gone.
    pub fn user_name(&self, id: Id<User>) -> &str {
        self.users.get(id).map_or("MAAS", |user| &user.name)
    }

    /// The user with this name.
    pub fn user_named(&self, name: &str) -> Option<&User> {
        self.users.values().find(|user| user.name == name)
    }

    /// Writes an event; INFO and above become the machine's status message.
    pub fn log(&mut self, machine: Id<Machine>, level: Level, kind: &str, description: &str, username: Option<&str>) {
        let created = self.now;
        self.events.add(None, |id| Event {
            id,
            machine,
            level,
            kind: kind.to_owned(),
            description: description.to_owned(),
            username: username.map(str::to_owned),
            created,
        });
        if level >= Level::Info
            && let Some(row) = self.machines.get_mut(machine)
        {
            row.status_message = Some(if description.is_empty() { kind.to_owned() } else { format!("{kind} - {description}") });
            row.status_action = Some(if level >= Level::Error { "mark_failed".into() } else { String::new() });
        }
    }

    /// Writes what a user asked for: `(name)` and the comment, if there is one.
    pub fn log_request(&mut self, machine: Id<Machine>, kind: &str, user: Id<User>, comment: Option<&str>) {
        let name = self.user_name(user).to_owned();
        let description = match comment {
            Some(comment) if !comment.is_empty() => format!("({name}) - {comment}"),
            _ => format!("({name})"),
        };
        self.log(machine, Level::Debug, kind, &description, Some(&name));
    }

    /// Moves a machine to another state and writes it down as MAAS does.
    pub fn set_status(&mut self, id: Id<Machine>, status: Status) {
        let now = self.now;
        let Some(machine) = self.machines.get_mut(id) else { return };
        if machine.status == status {
            return;
        }
        let before = machine.status;
        machine.previous_status = before;
        machine.status = status;
        machine.since = now;
        let to_owner = match (status, machine.owner) {
            (Status::Allocated, Some(owner)) if before == Status::Ready => format!(" (to {})", self.user_name(owner)),
            _ => String::new(),
        };
        self.log(id, Level::Debug, "Node changed status", &format!("From '{}' to '{}'{to_owner}", before.name(), status.name()), None);
    }

    /// Moves a machine on within one detour, which remembers the state it will return to.
    pub fn set_status_keeping_previous(&mut self, id: Id<Machine>, status: Status) {
        let previous = self.machines.get(id).map(|machine| machine.previous_status);
        self.set_status(id, status);
        if let (Some(machine), Some(previous)) = (self.machines.get_mut(id), previous) {
            machine.previous_status = previous;
        }
    }

    /// A global setting as text; empty when it is not set.
    pub fn setting(&self, name: &str) -> String {
        match self.settings.get(name) {
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        }
    }
}
