//! Creating, changing and deleting machines, for administrators.

use std::collections::BTreeMap;

use super::constraints::Problems;
use super::{answer, is_mac};
use crate::endpoints::vm_hosts;
use crate::hardware::Work;
use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::form::Form;
use crate::lifecycle::{self, commission};
use crate::load::blank;
use crate::version::Version;
use crate::world::id::Id;
use crate::world::machine::{Machine, PowerState, ScriptSet, ScriptStatus};
use crate::world::network::{Interface, InterfaceKind};
use crate::world::status::Status;
use crate::world::{World, next};

/// `POST machines/`.
pub fn create(world: &mut World, call: &Call) -> Reply {
    let user = call.admin(world)?;
    let form = &call.form;
    let mut problems = Problems::default();
    let architecture = form.filled("architecture").unwrap_or("");
    if architecture.is_empty() {
        problems.add("architecture", "This field is required.");
    }
    let macs: Vec<String> = form.all("mac_addresses").filter(|mac| !mac.is_empty()).map(str::to_ascii_lowercase).collect();
    let mut usable = 0;
    for mac in &macs {
        let taken =
            world.interfaces.values().find(|interface| interface.mac == *mac).and_then(|interface| world.machines.get(interface.machine));
        match taken {
            Some(owner) => problems.add("mac_addresses", format!("MAC address {mac} already in use on {}.", owner.hostname)),
            None if !is_mac(mac) => problems.add("mac_addresses", format!("'{mac}' is not a valid MAC address.")),
            None => usable += 1,
        }
    }
    let power_type = form.get("power_type").unwrap_or("").to_owned();
    if power_type == "manual" && usable == 0 {
        problems.add("power_type", "Can't set power type to manual without network interfaces");
    }
    let fields = Fields::read(world, form, None, &mut problems);
    problems.refuse()?;
    // Older releases do not know the flag and do not mind it.
    let deployed = call.loose_flag("deployed") && world.version >= Version::V3_3;
    let commissions = call.form.get("commission").is_none_or(|_| call.loose_flag("commission")) && !deployed;
    let system_id = world.fresh_system_id();
    let hostname = fields.hostname.clone().unwrap_or_else(|| world.fresh_hostname());
    let now = world.now;
    let bmc = world.next_bmc();
    let commissioning = if deployed {
        ScriptSet { id: Some(next(&mut world.counters.script_set)), status: ScriptStatus::Pending }
    } else {
        ScriptSet { id: None, status: ScriptStatus::Unknown }
    };
    let id = world.add_machine(|id| Machine {
        commissioning,
        architecture: architecture.to_owned(),
        power_type,
        power_parameters: power_parameters(form).unwrap_or_default(),
        bmc: Some(bmc),
        min_hwe_kernel: Some(form.get("min_hwe_kernel").unwrap_or("").to_owned()),
        owner: deployed.then_some(user),
        status: if deployed { Status::Deployed } else { Status::New },
        power_state: PowerState::Unknown,
        since: now,
        ..blank(id, system_id, hostname)
    });
    for (index, mac) in macs.into_iter().enumerate() {
        add_interface(world, id, index, mac);
    }
    fields.apply(world, id);
    if commissions {
        commission::begin(world, id, user, true);
    }
    let answered = answer(world, id);
    if commissions {
        commission::after_commit(world, id);
    }
    Ok(answered)
}

fn add_interface(world: &mut World, machine: Id<Machine>, index: usize, mac: String) {
    let id = world.interfaces.add(None, |id| Interface {
        id,
        machine,
        name: format!("eth{index}"),
        kind: InterfaceKind::Physical,
        mac,
        vlan: None,
        addresses: Vec::new(),
        parents: Vec::new(),
        tags: Vec::new(),
        params: serde_json::Map::new(),
        enabled: true,
        link_connected: true,
        link_speed: 0,
        interface_speed: 0,
        vendor: None,
        product: None,
        firmware_version: None,
        numa_node: Some(0),
        acquired: false,
    });
    if let Some(machine) = world.machines.get_mut(machine) {
        machine.interfaces.push(id);
        machine.boot_interface.get_or_insert(id);
    }
}

/// What can be set on creation and later alike.
struct Fields {
    hostname: Option<String>,
    description: Option<String>,
    domain: Option<Id<crate::world::dns::Domain>>,
    zone: Option<Id<crate::world::place::Zone>>,
    pool: Option<Id<crate::world::place::Pool>>,
    cpu_count: Option<u32>,
    memory: Option<u64>,
    swap_size: Option<u64>,
}

impl Fields {
    fn read(world: &World, form: &Form, own: Option<Id<Machine>>, problems: &mut Problems) -> Self {
        const NO_CHOICE: &str = "Select a valid choice. That choice is not one of the available choices.";
        let hostname = form.filled("hostname").map(|name| name.split('.').next().unwrap_or(name).to_owned());
        if let Some(name) = &hostname {
            if let Some(problem) = bad_host_label(name) {
                problems.add("hostname", problem);
            } else if world.machines.values().any(|machine| Some(machine.id) != own && machine.hostname == *name) {
                problems.add("hostname", "Node with this Hostname already exists.");
            }
        }
        let mut choose = |field: &str, found: Option<u32>| {
            if form.filled(field).is_some() && found.is_none() {
                problems.add(field, NO_CHOICE);
            }
            found
        };
        let wanted = |field: &str| form.filled(field).map(str::to_owned);
        let zone = wanted("zone").and_then(|name| world.zones.values().find(|zone| zone.name == name).map(|zone| zone.id.0));
        let pool = wanted("pool").and_then(|name| world.pools.values().find(|pool| pool.name == name).map(|pool| pool.id.0));
        let domain = wanted("domain").and_then(|name| {
            world.domains.values().find(|domain| domain.name == name || domain.id.to_string() == name).map(|domain| domain.id.0)
        });
        let (zone, pool, domain) = (choose("zone", zone), choose("pool", pool), choose("domain", domain));
        Fields {
            hostname,
            description: form.get("description").map(str::to_owned),
            domain: domain.map(Id::new),
            zone: zone.map(Id::new),
            pool: pool.map(Id::new),
            cpu_count: form.filled("cpu_count").and_then(|text| text.parse().ok()),
            memory: form.filled("memory").and_then(|text| text.parse().ok()),
            swap_size: form.filled("swap_size").and_then(|text| text.parse().ok()),
        }
    }

    fn apply(self, world: &mut World, id: Id<Machine>) {
        let Some(machine) = world.machines.get_mut(id) else { return };
        if let Some(hostname) = self.hostname {
            machine.hostname = hostname;
        }
        if let Some(description) = self.description {
            machine.description = description;
        }
        machine.domain = self.domain.unwrap_or(machine.domain);
        machine.zone = self.zone.unwrap_or(machine.zone);
        machine.pool = self.pool.unwrap_or(machine.pool);
        machine.cpu_count = self.cpu_count.unwrap_or(machine.cpu_count);
        machine.memory = self.memory.unwrap_or(machine.memory);
        machine.swap_size = self.swap_size.or(machine.swap_size);
        world.dns_changes += 1;
    }
}

/// What is wrong with a host name, in MAAS's words.
pub fn bad_host_label(name: &str) -> Option<String> {
    if name.contains('_') {
        return Some(format!("Host label cannot contain underscore: '{name}'."));
    }
    let fine = !name.is_empty()
        && name.len() <= 63
        && !name.starts_with('-')
        && !name.ends_with('-')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (!fine).then(|| format!("Invalid hostname label: '{name}'."))
}

fn power_parameters(form: &Form) -> Option<BTreeMap<String, String>> {
    let named: BTreeMap<String, String> = form
        .0
        .iter()
        .filter_map(|(key, value)| Some((key.strip_prefix("power_parameters_")?.to_owned(), value.clone())))
        .filter(|(key, _)| key != "skip_check")
        .collect();
    (!named.is_empty()).then_some(named)
}

/// `PUT machines/{}/`; what is not known is not minded.
pub fn update(world: &mut World, call: &Call) -> Reply {
    let id = call.administered_machine(world)?;
    let mut problems = Problems::default();
    let fields = Fields::read(world, &call.form, Some(id), &mut problems);
    problems.refuse()?;
    fields.apply(world, id);
    if let Some(machine) = world.machines.get_mut(id) {
        let form = &call.form;
        machine.min_hwe_kernel =
            Some(form.get("min_hwe_kernel").map_or_else(|| machine.min_hwe_kernel.clone().unwrap_or_default(), str::to_owned));
        if let Some(kind) = form.filled("power_type") {
            kind.clone_into(&mut machine.power_type);
        }
        if let Some(parameters) = power_parameters(form) {
            machine.power_parameters.extend(parameters);
        }
        if let Some(architecture) = form.filled("architecture") {
            architecture.clone_into(&mut machine.architecture);
        }
    }
    Ok(answer(world, id))
}

/// `DELETE machines/{}/`; a composed one goes with its virtual machine.
pub fn delete(world: &mut World, call: &Call) -> Reply {
    let id = call.administered_machine(world)?;
    let force = call.query.get("force").is_some_and(|text| text != "false" && text != "0");
    let hosts = vm_hosts::hosted_by(world, id);
    if !hosts.is_empty() && !force {
        return Err(Refusal::text(400, vm_hosts::must_go_first(world, &hosts)));
    }
    for host in hosts {
        vm_hosts::remove(world, host, true);
    }
    lifecycle::power::order(world, id, Work::Forget { wipe: false });
    world.remove_machine(id);
    Ok(Answer::deleted())
}

/// `POST machines/?op=set_zone`: many machines to one zone, unknown ones are an error.
pub fn set_zone(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let mut problems = Problems::default();
    let zone = match call.form.filled("zone") {
        None => {
            problems.add("zone", "This field is required.");
            None
        }
        Some(name) => {
            let found = world.zones.values().find(|zone| zone.name == name).map(|zone| zone.id);
            if found.is_none() {
                problems.add("zone", "Select a valid choice. That choice is not one of the available choices.");
            }
            found
        }
    };
    let nodes: Vec<String> = call.form.all("nodes").map(str::to_owned).collect();
    if nodes.is_empty() {
        problems.add("system_id", "This field is required.");
    }
    if let Some(name) = nodes.iter().find(|name| world.node_id(name).is_none()) {
        problems.add("system_id", format!("Select a valid choice. {name} is not one of the available choices."));
    }
    problems.refuse()?;
    if nodes.iter().filter_map(|name| world.machines.get(world.node_id(name)?)).any(|machine| machine.locked) {
        return Err(Refusal::forbidden());
    }
    for name in nodes {
        if let (Some(id), Some(zone)) = (world.node_id(&name), zone)
            && let Some(machine) = world.machines.get_mut(id)
        {
            machine.zone = zone;
        }
    }
    Ok(Answer::json(&serde_json::Value::Null))
}
