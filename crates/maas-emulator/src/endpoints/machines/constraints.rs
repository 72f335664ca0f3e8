//! What a machine must be like: the filters of the list and the constraints of an allocation, read from a form and checked against
//! machines. An unknown value is a refusal, a known one that nothing has is only no match.

use std::collections::{BTreeMap, BTreeSet};

use super::exclusions::{self, Exclusions};
use super::interface_constraint::InterfaceConstraint;
use super::storage_constraint::StorageConstraint;
use super::wiring_constraint::{self, WiringConstraint};
use crate::endpoints::interfaces;
use crate::http::answer::Refusal;
use crate::http::form::Form;
use crate::version::Version;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::network::{AddressKind, Subnet};
use crate::world::place::{Pool, Tag, Zone};
use crate::world::status::Status;
use crate::world::vm_host::VmHost;

/// What a machine must be like; empty lists ask for nothing.
#[derive(Debug, Default)]
pub struct Constraints {
    /// Any of these system ids.
    pub system_ids: Option<Vec<String>>,
    /// Any of these host or full names.
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
    pub tags: Vec<Id<Tag>>,
    /// None of these tags.
    pub not_tags: Vec<Id<Tag>>,
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
    /// On a VM host of any of these kinds.
    pub vm_host_kinds: Vec<String>,
    /// On no VM host of these kinds.
    pub not_vm_host_kinds: Vec<String>,
    /// On all of these subnets.
    pub subnets: Vec<Id<Subnet>>,
    /// On none of these subnets.
    pub not_subnets: Vec<Id<Subnet>>,
    /// In any of these states.
    pub statuses: Vec<Status>,
    /// Of any of these owners.
    pub owners: Vec<String>,
    /// With any of these powers.
    pub power_states: Vec<String>,
    /// Acquired with this agent name.
    pub agent_names: Vec<String>,
    /// Deployed to disk or memory.
    pub deployment_targets: Vec<String>,
    /// With these devices.
    pub devices: Vec<BTreeMap<String, String>>,
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

/// Values of a key, split at commas and white space.
fn words(form: &Form, key: &str) -> Vec<String> {
    form.all(key).flat_map(|value| value.split([',', ' ']).map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned)).collect()
}

/// Values of a key as they are.
pub fn values(form: &Form, key: &str) -> Vec<String> {
    form.all(key).filter(|value| !value.is_empty()).map(str::to_owned).collect()
}

/// Fields both the list and an allocation know, beside those of cables and exclusions. What MAAS knows of neighbouring routers
/// (`connected_to`) is not emulated, hence no such constraint.
const SHARED: [&str; 21] = [
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
    "system_id",
    "agent_name",
];
const OF_LIST: [&str; 8] = ["id", "hostname", "mac_address", "domain", "status", "power_state", "owner", "deployment_target"];
const OF_ALLOCATION: [&str; 8] = ["name", "comment", "bridge_all", "bridge_type", "bridge_stp", "bridge_fd", "dry_run", "verbose"];
const OF_DEVICES: [&str; 5] = ["vendor_id", "product_id", "vendor_name", "product_name", "commissioning_driver"];

impl Constraints {
    /// Reads the filters of a list.
    pub fn of_list(world: &World, form: &Form) -> Result<Self, Refusal> {
        let mut problems = Problems::default();
        refuse_unknown(form, &[&OF_LIST, &exclusions::OF_LIST], &mut problems);
        if form.has("deployment_target") && world.version < Version::V3_5 {
            problems.add("deployment_target", "No such constraint.");
        }
        let mut constraints = Constraints::shared(world, form, &mut problems);
        if form.has("id") || form.has("system_id") {
            constraints.system_ids = Some(values(form, "id").into_iter().chain(values(form, "system_id")).collect());
        }
        constraints.hostnames = values(form, "hostname");
        constraints.domains = values(form, "domain");
        constraints.macs = macs(form, "mac_address", &mut problems);
        constraints.statuses = statuses(form, "status", &mut problems);
        constraints.power_states = power_states(form, "power_state", &mut problems);
        constraints.owners = owners(world, form, "owner", &mut problems);
        for word in values(form, "deployment_target") {
            if word == "disk" || word == "memory" {
                constraints.deployment_targets.push(word);
            } else {
                problems.add("deployment_target", format!("Select a valid choice. {word} is not one of the available choices."));
            }
        }
        constraints.agent_names = form.all("agent_name").map(str::to_owned).collect();
        problems.refuse()?;
        Ok(constraints)
    }

    /// Reads the constraints of an allocation.
    pub fn of_allocation(world: &World, form: &Form) -> Result<Self, Refusal> {
        let mut problems = Problems::default();
        refuse_unknown(form, &[&OF_ALLOCATION], &mut problems);
        let mut constraints = Constraints::shared(world, form, &mut problems);
        if form.filled("system_id").is_some() {
            constraints.system_ids = Some(values(form, "system_id"));
        }
        constraints.names = values(form, "name");
        if form.filled("bridge_type").is_some_and(|kind| !interfaces::is_bridge_type(kind)) {
            // MAAS forgets to put the value in.
            problems.add("bridge_type", "'%(value)s' is not a valid bridge_type.  It should be one of: 'standard', 'ovs'.");
        }
        problems.refuse()?;
        Ok(constraints)
    }

    fn shared(world: &World, form: &Form, problems: &mut Problems) -> Self {
        let mut constraints = Constraints {
            architectures: architectures(world, form, "arch", problems),
            cpu_count: number(form, "cpu_count", "Invalid CPU count: number required.", problems),
            cpu_speed: number(form, "cpu_speed", "Invalid CPU speed: number required.", problems),
            memory: number(form, "mem", "Invalid memory: number of MiB required.", problems),
            ..Constraints::default()
        };
        let tag = |name: &str| world.tags.values().find(|tag| tag.name == name).map(|tag| tag.id);
        constraints.tags = named(words(form, "tags"), tag, "tags", true, "tag", problems);
        constraints.not_tags = named(words(form, "not_tags"), tag, "not_tags", true, "tag", problems);
        let zone = |name: &str| world.zones.values().find(|zone| zone.name == name).map(|zone| zone.id);
        constraints.zones = named(values(form, "zone"), zone, "zone", false, "zone", problems);
        constraints.not_zones = named(values(form, "not_in_zone"), zone, "not_in_zone", false, "zone", problems);
        let pool = |name: &str| world.pools.values().find(|pool| pool.name == name).map(|pool| pool.id);
        constraints.pools = named(values(form, "pool"), pool, "pool", false, "pool", problems);
        constraints.not_pools = named(values(form, "not_in_pool"), pool, "not_in_pool", false, "pool", problems);
        let subnet = |text: &str| world.subnet_specified(text);
        constraints.subnets = named(values(form, "subnets"), subnet, "subnets", false, "subnet", problems);
        constraints.not_subnets = named(values(form, "not_subnets"), subnet, "not_subnets", false, "subnet", problems);
        constraints.vm_hosts = values(form, "pod");
        constraints.not_vm_hosts = values(form, "not_pod");
        constraints.vm_host_kinds = values(form, "pod_type");
        constraints.not_vm_host_kinds = values(form, "not_pod_type");
        for text in values(form, "devices") {
            match text.split(',').map(pair).collect() {
                Some(device) => constraints.devices.push(device),
                None => problems.add("devices", format!("Malformed devices constraint, \"{text}\".")),
            }
        }
        constraints.wiring = WiringConstraint::read(world, form, problems);
        constraints.exclusions = Exclusions::read(world, form, problems);
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
            && (self.names.is_empty() || self.names.iter().any(|name| *name == machine.hostname || *name == world.fqdn(machine)))
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
            && self.fits_host(host)
            && self.fits_subnets(world, machine)
            && (self.statuses.is_empty() || self.statuses.contains(&machine.status))
            && (self.owners.is_empty() || machine.owner.is_some_and(|owner| self.owners.iter().any(|name| name == world.user_name(owner))))
            && any(&self.power_states, machine.power_state.name())
            && any(&self.agent_names, &machine.agent_name)
            && any(&self.deployment_targets, if machine.ephemeral_deploy { "memory" } else { "disk" })
            && self.wiring.matches(world, machine)
            && !self.exclusions.hit(world, machine)
            && self
                .devices
                .iter()
                .all(|wanted| machine.devices.iter().any(|device| wanted.iter().all(|(key, value)| device.get(key) == Some(value))))
    }

    /// Whether a machine for these constraints may be composed on a host: its zone, its tags, its name and kind count. Not so the zones
    /// it must not be in, the pool and the name of the machine, which MAAS's source does not look at here.
    pub fn fits_vm_host(&self, world: &World, host: &VmHost) -> bool {
        let named =
            |tags: &[Id<Tag>]| -> Vec<String> { tags.iter().filter_map(|tag| world.tags.get(*tag)).map(|tag| tag.name.clone()).collect() };
        host.reachable
            && self.fits_host(Some(host))
            && (self.zones.is_empty() || self.zones.contains(&host.zone))
            && named(&self.tags).iter().all(|tag| host.tags.contains(tag))
            && !named(&self.not_tags).iter().any(|tag| host.tags.contains(tag))
    }

    fn has_mac(&self, world: &World, machine: &Machine) -> bool {
        machine.interfaces.iter().filter_map(|id| world.interfaces.get(*id)).any(|interface| self.macs.contains(&interface.mac))
    }

    fn fits_host(&self, host: Option<&VmHost>) -> bool {
        let listed = |names: &[String], value: Option<&str>| value.is_some_and(|value| names.iter().any(|name| name == value));
        let (name, kind) = (host.map(|host| host.name.as_str()), host.map(|host| host.kind.as_str()));
        (self.vm_hosts.is_empty() || listed(&self.vm_hosts, name))
            && !listed(&self.not_vm_hosts, name)
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
            .filter(|address| address.kind != AddressKind::Discovered)
            .filter_map(|address| address.subnet)
            .collect();
        self.subnets.iter().all(|subnet| on.contains(subnet)) && !self.not_subnets.iter().any(|subnet| on.contains(subnet))
    }
}

impl World {
    /// The subnet a specifier means: `cidr:`, `name:`, `ip:`, `space:`, `vlan:`, an id, a bare CIDR or name.
    pub fn subnet_specified(&self, text: &str) -> Option<Id<Subnet>> {
        let find = |wanted: &dyn Fn(&Subnet) -> bool| self.subnets.values().find(|subnet| wanted(subnet)).map(|subnet| subnet.id);
        match text.split_once(':') {
            Some(("cidr", cidr)) => find(&|subnet| subnet.cidr.to_string() == cidr),
            Some(("name", name)) => find(&|subnet| subnet.name == name),
            Some(("ip", ip)) => ip.parse().ok().and_then(|ip| self.subnet_of(ip)),
            Some(("space", name)) => find(&|subnet| {
                self.vlans.get(subnet.vlan).and_then(|vlan| self.spaces.get(vlan.space?)).is_some_and(|space| space.name == name)
            }),
            Some(("vlan", vlan)) => {
                find(&|subnet| subnet.vlan.to_string() == vlan || self.vlans.get(subnet.vlan).is_some_and(|row| row.name == vlan))
            }
            _ => find(&|subnet| subnet.id.to_string() == text)
                .or_else(|| find(&|subnet| subnet.cidr.to_string() == text || subnet.name == text)),
        }
    }
}

fn refuse_unknown(form: &Form, own: &[&[&str]], problems: &mut Problems) {
    let shared: [&[&str]; 3] = [&SHARED, &wiring_constraint::KEYS, &exclusions::SHARED];
    for key in form.keys() {
        if !shared.iter().chain(own).any(|keys| keys.contains(&key)) && key != "op" && key != "format" {
            problems.add(key, "No such constraint.");
        }
    }
}

fn no_choice(field: &str, word: &str, problems: &mut Problems) {
    problems.add(field, format!("Select a valid choice. {word} is not one of the available choices."));
}

/// Architectures that some image or machine has.
pub fn architectures(world: &World, form: &Form, key: &str, problems: &mut Problems) -> Vec<String> {
    let known = |name: &String| {
        world.images.values().any(|image| family(&image.architecture) == family(name))
            || world.all_machines().any(|machine| machine.architecture == *name)
    };
    let (known, unknown): (Vec<String>, Vec<String>) = values(form, key).into_iter().partition(known);
    for _ in unknown {
        problems.add(key, "Architecture not recognised.");
    }
    known
}

/// Hardware addresses, lower case.
pub fn macs(form: &Form, key: &str, problems: &mut Problems) -> Vec<String> {
    let (good, bad): (Vec<String>, Vec<String>) = values(form, key).into_iter().partition(|mac| is_mac(mac));
    for mac in bad {
        problems.add(key, format!("'{mac}' is not a valid MAC address."));
    }
    good.into_iter().map(|mac| mac.to_ascii_lowercase()).collect()
}

/// States by their short names.
pub fn statuses(form: &Form, key: &str, problems: &mut Problems) -> Vec<Status> {
    let mut found = Vec::new();
    for word in values(form, key) {
        match Status::ALL.into_iter().find(|status| status.filter() == word) {
            Some(status) => found.push(status),
            None => no_choice(key, &word, problems),
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

/// Users by their names.
pub fn owners(world: &World, form: &Form, key: &str, problems: &mut Problems) -> Vec<String> {
    let (known, unknown): (Vec<String>, Vec<String>) = values(form, key).into_iter().partition(|name| world.user_named(name).is_some());
    for name in unknown {
        no_choice(key, &name, problems);
    }
    known
}

/// Names that must exist, as ids.
pub fn named<T>(
    names: Vec<String>,
    find: impl Fn(&str) -> Option<T>,
    field: &str,
    quoted: bool,
    kind: &str,
    problems: &mut Problems,
) -> Vec<T> {
    let mut unknown = Vec::new();
    let mut found = Vec::new();
    for name in names {
        match find(&name) {
            Some(id) => found.push(id),
            None => unknown.push(if quoted { format!("'{name}'") } else { name }),
        }
    }
    if !unknown.is_empty() {
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

fn pair(text: &str) -> Option<(String, String)> {
    let (key, value) = text.split_once('=').map(|(key, value)| (key.trim(), value.trim()))?;
    OF_DEVICES.contains(&key).then(|| (key.to_owned(), value.to_owned()))
}

fn family(architecture: &str) -> &str {
    architecture.split('/').next().unwrap_or(architecture)
}

/// Whether an architecture is the wanted one, `amd64` or `amd64/generic`.
pub fn fits(wanted: &str, architecture: &str) -> bool {
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
