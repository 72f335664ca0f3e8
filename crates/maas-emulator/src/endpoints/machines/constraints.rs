//! What a machine must be like: the filters of the list and the constraints of an allocation, read from a form and checked against
//! machines. Which unknown values are a refusal and which only match nothing is as MAAS's forms have it.

use std::collections::{BTreeMap, BTreeSet};

use super::exclusions::{self, Exclusions};
use super::interface_constraint::InterfaceConstraint;
use super::storage_constraint::StorageConstraint;
use super::wiring_constraint::{self, WiringConstraint};
use crate::endpoints::boot_resources;
use crate::http::answer::Refusal;
use crate::http::form::Form;
use crate::version::Version;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::network::Subnet;
use crate::world::place::{Pool, Tag, Zone};
use crate::world::status::Status;
use crate::world::vm_host::VmHost;

/// What a machine must be like; empty lists ask for nothing.
#[derive(Debug, Default)]
pub struct Constraints {
    /// Any of these system ids.
    pub system_ids: Option<Vec<String>>,
    /// All of these host or full names, so two of them fit nothing.
    pub names: Vec<String>,
    /// Any of these host names, the label alone.
    pub hostnames: Vec<String>,
    /// Any of these hardware addresses.
    pub macs: Vec<String>,
    /// Any of these domains.
    pub domains: Vec<String>,
    /// Any of these architectures.
    pub architectures: Vec<String>,
    /// At least so many cores.
    pub cpu_count: Option<f64>,
    /// At least so fast.
    pub cpu_speed: Option<f64>,
    /// At least so much memory, in MiB.
    pub memory: Option<f64>,
    /// All of these tags.
    tags: Vec<Id<Tag>>,
    /// None of these tags.
    not_tags: Vec<Id<Tag>>,
    /// Both as they were given, which is how they are looked for on VM hosts.
    given_tags: Vec<String>,
    given_not_tags: Vec<String>,
    /// Any of these zones.
    pub zones: Vec<Id<Zone>>,
    /// None of these zones.
    pub not_zones: Vec<Id<Zone>>,
    /// Any of these pools.
    pub pools: Vec<Id<Pool>>,
    /// None of these pools.
    pub not_pools: Vec<Id<Pool>>,
    /// On a VM host of any of these names.
    pub vm_hosts: Vec<String>,
    /// On no VM host of these names.
    pub not_vm_hosts: Vec<String>,
    /// Switched in any of these ways, which for a virtual machine is the kind of its host.
    vm_host_kinds: Vec<String>,
    /// Switched in none of these ways.
    not_vm_host_kinds: Vec<String>,
    /// On all of these subnets.
    pub subnets: Vec<Id<Subnet>>,
    /// On none of these subnets.
    pub not_subnets: Vec<Id<Subnet>>,
    /// In any of these states.
    pub statuses: Vec<Status>,
    /// In any of these states, by what they have in common.
    simple_statuses: Vec<Status>,
    /// Of any of these owners.
    pub owners: Vec<String>,
    /// With any of these powers.
    pub power_states: Vec<String>,
    /// Acquired with this agent name.
    pub agent_names: Vec<String>,
    /// Deployed to memory or not.
    ephemeral: Vec<bool>,
    /// With a device like this.
    device: BTreeMap<String, String>,
    /// With this storage.
    pub storage: Option<StorageConstraint>,
    /// With these interfaces.
    pub interfaces: Option<InterfaceConstraint>,
    /// With cables to these places.
    pub wiring: WiringConstraint,
    /// Not like this.
    pub exclusions: Exclusions,
}

/// Problems by field, collected so that all are told at once.
#[derive(Debug, Default)]
pub struct Problems(BTreeMap<String, Vec<String>>);

impl Problems {
    /// Notes a problem.
    pub fn add(&mut self, field: &str, words: impl Into<String>) {
        self.0.entry(field.to_owned()).or_default().push(words.into());
    }

    /// Refuses if there was any.
    pub fn refuse(self) -> Result<(), Refusal> {
        if self.0.is_empty() { Ok(()) } else { Err(Refusal::fields(self.0)) }
    }
}

/// Values of a key, split at commas and white space, each once.
pub fn words(form: &Form, key: &str) -> BTreeSet<String> {
    let split = |value: &str| -> Vec<String> {
        value.split(|letter: char| letter == ',' || letter.is_whitespace()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    form.all(key).flat_map(split).collect()
}

/// Values of a key as they are; an empty one is one, too.
pub fn values(form: &Form, key: &str) -> Vec<String> {
    form.all(key).map(str::to_owned).collect()
}

/// Fields both the list and an allocation know, beside those of cables and exclusions.
const SHARED: [&str; 22] = [
    "arch",
    "cpu_count",
    "cpu_speed",
    "mem",
    "tags",
    "not_tags",
    "zone",
    "not_in_zone",
    "pool",
    "not_in_pool",
    "pod",
    "not_pod",
    "pod_type",
    "not_pod_type",
    "subnets",
    "not_subnets",
    "storage",
    "interfaces",
    "devices",
    "owner",
    "power_state",
    "deployment_target",
];
const OF_LIST: [&str; 6] = ["id", "hostname", "mac_address", "domain", "status", "simple_status"];
const OF_ALLOCATION: [&str; 2] = ["name", "system_id"];
/// What is no constraint and not minded. A list reads the name of the agent all the same.
pub const IGNORED: [&str; 9] =
    ["comment", "bridge_all", "bridge_type", "bridge_stp", "bridge_fd", "dry_run", "verbose", "op", "agent_name"];
/// Those that came with 3.3.
const SINCE_3_3: [&str; 13] = [
    "cpu_speed",
    "owner",
    "not_owner",
    "power_state",
    "not_power_state",
    "not_arch",
    "not_id",
    "not_hostname",
    "not_domain",
    "not_agent_name",
    "not_status",
    "simple_status",
    "not_simple_status",
];
const OF_DEVICES: [&str; 5] = ["vendor_id", "product_id", "vendor_name", "product_name", "commissioning_driver"];

impl Constraints {
    /// Reads the filters of a list.
    pub fn of_list(world: &World, form: &Form) -> Result<Self, Refusal> {
        let mut problems = Problems::default();
        refuse_unknown(world, form, &[&OF_LIST, &exclusions::OF_LIST], &mut problems);
        let mut constraints = Constraints::shared(world, form, &mut problems);
        constraints.system_ids = form.has("id").then(|| values(form, "id"));
        constraints.hostnames = values(form, "hostname");
        constraints.domains = values(form, "domain");
        constraints.macs = macs(form, "mac_address", &mut problems);
        constraints.statuses = statuses(form, "status", Status::filter, &mut problems);
        constraints.simple_statuses = statuses(form, "simple_status", Status::simple_filter, &mut problems);
        constraints.agent_names = values(form, "agent_name");
        problems.refuse()?;
        Ok(constraints)
    }

    /// Reads the constraints of an allocation.
    pub fn of_allocation(world: &World, form: &Form) -> Result<Self, Refusal> {
        let mut problems = Problems::default();
        refuse_unknown(world, form, &[&OF_ALLOCATION], &mut problems);
        let mut constraints = Constraints::shared(world, form, &mut problems);
        constraints.system_ids = form.has("system_id").then(|| values(form, "system_id"));
        constraints.names = values(form, "name");
        problems.refuse()?;
        Ok(constraints)
    }

    fn shared(world: &World, form: &Form, problems: &mut Problems) -> Self {
        let mut constraints = Constraints {
            architectures: architectures(world, form, problems),
            cpu_count: number(form, "cpu_count", "Invalid CPU count: number required.", problems),
            cpu_speed: number(form, "cpu_speed", "Invalid CPU speed: number required.", problems),
            memory: number(form, "mem", "Invalid memory: number of MiB required.", problems),
            ..Constraints::default()
        };
        let tag = |name: &str| world.tags.values().find(|tag| tag.name == name).map(|tag| tag.id);
        constraints.tags = named(words(form, "tags"), tag, "tags", true, "tag", problems);
        (constraints.given_tags, constraints.given_not_tags) = (values(form, "tags"), values(form, "not_tags"));
        constraints.not_tags = constraints.given_not_tags.iter().filter_map(|name| tag(name)).collect();
        let zone = |name: &str| world.zones.values().find(|zone| zone.name == name).map(|zone| zone.id);
        constraints.zones = named(values(form, "zone"), zone, "zone", false, "zone", problems);
        constraints.not_zones = named(values(form, "not_in_zone"), zone, "not_in_zone", false, "zone", problems);
        let pool = |name: &str| world.pools.values().find(|pool| pool.name == name).map(|pool| pool.id);
        constraints.pools = named(values(form, "pool"), pool, "pool", false, "pool", problems);
        constraints.not_pools = named(values(form, "not_in_pool"), pool, "not_in_pool", false, "pool", problems);
        let subnets = |text: &str| world.subnets_specified(text);
        constraints.subnets = matching(form, "subnets", subnets, "subnets", problems);
        constraints.not_subnets = matching(form, "not_subnets", subnets, "subnets", problems);
        constraints.owners = owners(world, form, problems);
        constraints.power_states = power_states(form, "power_state", problems);
        constraints.ephemeral = is_ephemeral(form, "deployment_target", problems);
        constraints.vm_hosts = values(form, "pod");
        constraints.not_vm_hosts = values(form, "not_pod");
        constraints.vm_host_kinds = values(form, "pod_type");
        constraints.not_vm_host_kinds = values(form, "not_pod_type");
        match form.filled("devices").map(|text| text.split(',').map(pair).collect()).transpose() {
            Ok(device) => constraints.device = device.unwrap_or_default(),
            Err(key) => problems.add("devices", format!("Unknown devices constraint: '{key}")),
        }
        constraints.wiring = WiringConstraint::read(world, form, problems);
        constraints.exclusions = Exclusions::read(form, problems);
        if let Some(text) = form.filled("storage") {
            match StorageConstraint::read(text) {
                Some(storage) => constraints.storage = Some(storage),
                None => problems.add("storage", format!("Malformed storage constraint, \"{text}\".")),
            }
        }
        if let Some(text) = form.filled("interfaces") {
            match InterfaceConstraint::read(text) {
                Ok(interfaces) => constraints.interfaces = Some(interfaces),
                Err(problem) => problems.add("interfaces", problem),
            }
        }
        constraints
    }

    /// The machines worth looking at, by row: those that are named, or all.
    pub fn candidates<'a>(&self, world: &'a World) -> Vec<&'a Machine> {
        match &self.system_ids {
            None => world.all_machines().collect(),
            Some(names) => {
                let rows: BTreeSet<Id<Machine>> = names.iter().filter_map(|name| world.machine_id(name)).collect();
                rows.into_iter().filter_map(|row| world.machines.get(row)).collect()
            }
        }
    }

    /// Whether a machine is like that; storage and interfaces are asked separately, since they also say which.
    pub fn matches(&self, world: &World, machine: &Machine) -> bool {
        let any = |list: &[String], value: &str| list.is_empty() || list.iter().any(|wanted| wanted == value);
        let host = machine.vm_host.and_then(|host| world.vm_hosts.get(host));
        self.system_ids.as_ref().is_none_or(|ids| ids.contains(&machine.system_id))
            && self.names.iter().all(|name| *name == machine.hostname || *name == world.fqdn(machine))
            && any(&self.hostnames, &machine.hostname)
            && (self.domains.is_empty() || world.domains.get(machine.domain).is_some_and(|domain| self.domains.contains(&domain.name)))
            && (self.macs.is_empty() || self.has_mac(world, machine))
            && (self.architectures.is_empty() || self.architectures.iter().any(|name| fits(name, &machine.architecture)))
            && self.cpu_count.is_none_or(|least| f64::from(machine.cpu_count) >= least)
            && self.cpu_speed.is_none_or(|least| f64::from(machine.cpu_speed) >= least)
            && self.memory.is_none_or(|least| mebibytes(machine) >= least)
            && self.tags.iter().all(|tag| machine.tags.contains(tag))
            && !self.not_tags.iter().any(|tag| machine.tags.contains(tag))
            && (self.zones.is_empty() || self.zones.contains(&machine.zone))
            && !self.not_zones.contains(&machine.zone)
            && (self.pools.is_empty() || self.pools.contains(&machine.pool))
            && !self.not_pools.contains(&machine.pool)
            && self.fits_host(host.map(|host| host.name.as_str()), &machine.power_type)
            && self.fits_subnets(world, machine)
            && [&self.statuses, &self.simple_statuses].iter().all(|any| any.is_empty() || any.contains(&machine.status))
            && (self.owners.is_empty() || machine.owner.is_some_and(|owner| self.owners.iter().any(|name| name == world.user_name(owner))))
            && any(&self.power_states, machine.power_state.name())
            && any(&self.agent_names, &machine.agent_name)
            && (self.ephemeral.is_empty() || self.ephemeral.contains(&machine.ephemeral_deploy))
            && self.wiring.matches(world, machine)
            && !self.exclusions.hit(world, machine)
            && (self.device.is_empty() || machine.devices.iter().any(|device| self.fits_device(device)))
    }

    fn fits_device(&self, device: &BTreeMap<String, String>) -> bool {
        self.device.iter().all(|(key, value)| device.get(key).is_some_and(|known| known.to_lowercase() == value.to_lowercase()))
    }

    /// Whether a machine for these constraints may be composed on a host: its zone, its tags, its name and kind count. Not so the zones
    /// it must not be in, the pool and the name of the machine, which MAAS's source does not look at here. Of several zones the last
    /// counts, and only a host with all the tags it must not have is left out.
    pub fn fits_vm_host(&self, host: &VmHost) -> bool {
        let has_all = |tags: &[String]| tags.iter().all(|tag| host.tags.contains(tag));
        host.reachable
            && self.fits_host(Some(&host.name), &host.kind)
            && self.zones.last().is_none_or(|zone| *zone == host.zone)
            && has_all(&self.given_tags)
            && (self.given_not_tags.is_empty() || !has_all(&self.given_not_tags))
    }

    fn has_mac(&self, world: &World, machine: &Machine) -> bool {
        machine.interfaces.iter().filter_map(|id| world.interfaces.get(*id)).any(|interface| self.macs.contains(&interface.mac))
    }

    fn fits_host(&self, name: Option<&str>, kind: &str) -> bool {
        let listed = |names: &[String], value: &str| names.iter().any(|name| name == value);
        (self.vm_hosts.is_empty() || name.is_some_and(|name| listed(&self.vm_hosts, name)))
            && !name.is_some_and(|name| listed(&self.not_vm_hosts, name))
            && (self.vm_host_kinds.is_empty() || listed(&self.vm_host_kinds, kind))
            && !listed(&self.not_vm_host_kinds, kind)
    }

    fn fits_subnets(&self, world: &World, machine: &Machine) -> bool {
        if self.subnets.is_empty() && self.not_subnets.is_empty() {
            return true;
        }
        let on: BTreeSet<Id<Subnet>> = machine
            .interfaces
            .iter()
            .filter_map(|id| world.interfaces.get(*id))
            .flat_map(|interface| &interface.addresses)
            .filter_map(|id| world.addresses.get(*id))
            .filter_map(|address| address.subnet)
            .collect();
        self.subnets.iter().all(|subnet| on.contains(subnet)) && !self.not_subnets.iter().any(|subnet| on.contains(subnet))
    }
}

fn refuse_unknown(world: &World, form: &Form, own: &[&[&str]], problems: &mut Problems) {
    let shared: [&[&str]; 4] = [&SHARED, &wiring_constraint::KEYS, &exclusions::SHARED, &IGNORED];
    let is_later = |key: &str| {
        key.ends_with("deployment_target") && world.version < Version::V3_5 || SINCE_3_3.contains(&key) && world.version < Version::V3_3
    };
    for key in form.keys() {
        if !shared.iter().chain(own).any(|keys| keys.contains(&key)) || is_later(key) {
            problems.add(key, "No such constraint.");
        }
    }
}

fn no_choice(field: &str, word: &str, problems: &mut Problems) {
    problems.add(field, format!("Select a valid choice. {word} is not one of the available choices."));
}

/// Architectures that some image or machine has, with a kernel or without.
fn architectures(world: &World, form: &Form, problems: &mut Problems) -> Vec<String> {
    let usable = boot_resources::architectures(world);
    let machines = || world.all_machines().map(|machine| &machine.architecture);
    let known = |name: &String| usable.iter().chain(machines()).any(|offered| offered == name || family(offered) == name);
    let wanted = values(form, "arch");
    if wanted.iter().all(known) {
        return wanted;
    }
    problems.add("arch", "Architecture not recognised.");
    Vec::new()
}

/// Hardware addresses, lower case.
fn macs(form: &Form, key: &str, problems: &mut Problems) -> Vec<String> {
    let (good, bad): (Vec<String>, Vec<String>) = values(form, key).into_iter().partition(|mac| is_mac(mac));
    for mac in bad {
        problems.add(key, format!("'{mac}' is not a valid MAC address."));
    }
    good.into_iter().map(|mac| mac.to_ascii_lowercase()).collect()
}

/// States by their short names, of which several may have one.
pub fn statuses(form: &Form, key: &str, short: impl Fn(Status) -> &'static str, problems: &mut Problems) -> Vec<Status> {
    let mut found = Vec::new();
    for word in values(form, key) {
        let before = found.len();
        found.extend(Status::ALL.into_iter().filter(|status| short(*status) == word));
        if found.len() == before {
            no_choice(key, &word, problems);
        }
    }
    found
}

/// States of power by their names.
pub fn power_states(form: &Form, key: &str, problems: &mut Problems) -> Vec<String> {
    let (known, unknown): (Vec<String>, Vec<String>) =
        values(form, key).into_iter().partition(|word| ["on", "off", "unknown", "error"].contains(&word.as_str()));
    for word in unknown {
        no_choice(key, &word, problems);
    }
    known
}

/// Whether machines are deployed to memory, by MAAS's words for it.
pub fn is_ephemeral(form: &Form, key: &str, problems: &mut Problems) -> Vec<bool> {
    let mut found = Vec::new();
    for word in values(form, key) {
        match word.as_str() {
            "memory" => found.push(true),
            "disk" => found.push(false),
            _ => no_choice(key, &word, problems),
        }
    }
    found
}

/// Users by their names; of several that are not there, MAAS tells of one.
fn owners(world: &World, form: &Form, problems: &mut Problems) -> Vec<String> {
    let names = values(form, "owner");
    if let Some(unknown) = names.iter().filter(|name| world.user_named(name).is_none()).min() {
        problems.add("owner", format!("No such owner: '{unknown}'."));
    }
    names
}

/// What specifiers mean, all together; it is enough that one of them means something.
pub fn matching<T: Ord>(form: &Form, key: &str, find: impl Fn(&str) -> Vec<T>, kinds: &str, problems: &mut Problems) -> Vec<T> {
    let found: BTreeSet<T> = form.all(key).flat_map(find).collect();
    if found.is_empty() && form.has(key) {
        problems.add(key, format!("No matching {kinds} found."));
    }
    found.into_iter().collect()
}

/// Names that must exist, as ids.
fn named<T>(
    names: impl IntoIterator<Item = String>,
    find: impl Fn(&str) -> Option<T>,
    field: &str,
    quoted: bool,
    kind: &str,
    problems: &mut Problems,
) -> Vec<T> {
    let (mut unknown, mut found) = (BTreeSet::new(), Vec::new());
    for name in names {
        match find(&name) {
            Some(id) => found.push(id),
            None => drop(unknown.insert(if quoted { format!("'{name}'") } else { name })),
        }
    }
    if !unknown.is_empty() {
        let unknown: Vec<String> = unknown.into_iter().collect();
        problems.add(field, format!("No such {kind}(s): {}.", unknown.join(", ")));
    }
    found
}

/// The least of several numbers.
pub fn number(form: &Form, key: &str, problem: &str, problems: &mut Problems) -> Option<f64> {
    let mut least: Option<f64> = None;
    for text in values(form, key) {
        if let Some(number) = text.trim().parse::<f64>().ok().filter(|number| number.is_finite()) {
            least = Some(least.map_or(number, |least| least.min(number)));
        } else {
            problems.add(key, problem);
            return None;
        }
    }
    least
}

/// What is asked of a device, or the word that asks for nothing MAAS knows.
fn pair(text: &str) -> Result<(String, String), &str> {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    if OF_DEVICES.contains(&key) { Ok((key.to_owned(), value.to_owned())) } else { Err(key) }
}

/// An architecture without its kernel.
pub fn family(architecture: &str) -> &str {
    architecture.split('/').next().unwrap_or(architecture)
}

/// Whether an architecture is the wanted one, `amd64` or `amd64/generic`.
fn fits(wanted: &str, architecture: &str) -> bool {
    if wanted.contains('/') { wanted == architecture } else { wanted == family(architecture) }
}

#[expect(clippy::cast_precision_loss, reason = "memory in MiB is far below 2^53")]
fn mebibytes(machine: &Machine) -> f64 {
    machine.memory as f64
}

/// Whether text is a hardware address.
pub fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    parts.len() == 6 && parts.iter().all(|part| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
