//! Changing and deleting machines, for administrators, and the checks that creating them shares.

use std::collections::BTreeMap;

use super::answer;
use super::constraints::Problems;
use crate::endpoints::{boot_resources, vm_hosts};
use crate::hardware::Work;
use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::form::Form;
use crate::lifecycle;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;

/// What can be set on creation and later alike.
pub struct Fields {
    /// The host name.
    pub hostname: Option<String>,
    description: Option<String>,
    domain: Option<Id<crate::world::dns::Domain>>,
    zone: Option<Id<crate::world::place::Zone>>,
    pool: Option<Id<crate::world::place::Pool>>,
    cpu_count: Option<u32>,
    memory: Option<u64>,
    swap_size: Option<u64>,
}

impl Fields {
    /// Reads them, noting what is wrong.
    pub fn read(world: &World, form: &Form, own: Option<Id<Machine>>, problems: &mut Problems) -> Self {
        const NO_CHOICE: &str = "Select a valid choice. That choice is not one of the available choices.";
        let hostname = form.filled("hostname").map(|name| name.split('.').next().unwrap_or(name).to_owned());
        if let Some(name) = &hostname {
            if let Some(problem) = bad_host_label(name) {
                problems.add("hostname", problem);
            } else if world.machines.values().any(|machine| Some(machine.id) != own && machine.hostname == *name) {
                problems.add("hostname", "Node with this Hostname already exists.");
            }
        }
        let domain = form.filled("domain").and_then(|name| {
            let found = world.domains.values().find(|domain| domain.name == name || domain.id.to_string() == name).map(|domain| domain.id);
            if found.is_none() {
                problems.add("domain", format!("Unable to find domain {name}"));
            }
            found
        });
        let swap_size = form.filled("swap_size").and_then(|text| {
            let size = swap_size(text);
            if size.is_none() {
                problems.add("swap_size", format!("Invalid size for swap: {text}"));
            }
            size
        });
        let cpu_count = whole(form, "cpu_count", problems).and_then(|number| u32::try_from(number).ok());
        let memory = whole(form, "memory", problems);
        let mut choose = |field: &str, found: Option<u32>| {
            if form.filled(field).is_some() && found.is_none() {
                problems.add(field, NO_CHOICE);
            }
            found
        };
        let wanted = |field: &str| form.filled(field).map(str::to_owned);
        let zone = wanted("zone").and_then(|name| world.zones.values().find(|zone| zone.name == name).map(|zone| zone.id.0));
        let pool = wanted("pool").and_then(|name| world.pools.values().find(|pool| pool.name == name).map(|pool| pool.id.0));
        let (zone, pool) = (choose("zone", zone), choose("pool", pool));
        Fields {
            hostname,
            description: form.get("description").map(str::to_owned),
            domain,
            zone: zone.map(Id::new),
            pool: pool.map(Id::new),
            cpu_count,
            memory,
            swap_size,
        }
    }

    /// What a user who is no administrator may say of a new machine.
    pub fn of_a_user(self) -> Self {
        Fields { zone: None, pool: None, cpu_count: None, memory: None, ..self }
    }

    /// Writes them down.
    pub fn apply(self, world: &mut World, id: Id<Machine>) {
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

/// A number of cores or MiB, which the database keeps in 31 bits.
fn whole(form: &Form, field: &str, problems: &mut Problems) -> Option<u64> {
    let text = form.filled(field)?.trim();
    let Ok(number) = text.parse::<i128>() else {
        problems.add(field, "Enter a whole number.");
        return None;
    };
    match u64::try_from(number) {
        Err(_) if number < 0 => problems.add(field, "Ensure this value is greater than or equal to 0."),
        Ok(number) if number <= 2_147_483_647 => return Some(number),
        _ => problems.add(field, "Ensure this value is less than or equal to 2147483647."),
    }
    None
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

/// A size in bytes; K, M, G and T are powers of a thousand.
fn swap_size(text: &str) -> Option<u64> {
    let units = [('K', 1_000), ('M', 1_000_000), ('G', 1_000_000_000), ('T', 1_000_000_000_000)];
    let unit = units.into_iter().find_map(|(letter, factor)| Some((text.strip_suffix(letter)?, factor)));
    let (number, factor) = unit.unwrap_or((text, 1));
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Architectures MAAS has images for are the only ones.
pub fn check_architecture(world: &World, architecture: &str, needed: bool, problems: &mut Problems) {
    if architecture.is_empty() {
        if needed {
            problems.add("architecture", "This field is required.");
        }
    } else if let Some(words) = boot_resources::unknown_architecture(world, architecture) {
        problems.add("architecture", words);
    }
}

/// The ways of switching power that MAAS knows.
pub const POWER_TYPES: [&str; 26] = [
    "amt",
    "apc",
    "dli",
    "dpu",
    "eaton",
    "fence_cdu",
    "hmc",
    "hmcz",
    "ipmi",
    "lxd",
    "manual",
    "moonshot",
    "mscm",
    "msftocs",
    "nova",
    "openbmc",
    "proxmox",
    "raritan",
    "recs_box",
    "redfish",
    "sm15k",
    "ucsm",
    "virsh",
    "vmware",
    "webhook",
    "wedge",
];

/// Notes a way of switching power that MAAS does not know; says whether it does.
pub fn check_power_type(kind: Option<&str>, problems: &mut Problems) -> bool {
    let unknown = kind.filter(|kind| !POWER_TYPES.contains(kind));
    if let Some(kind) = unknown {
        problems.add("power_type", format!("Select a valid choice. {kind} is not one of the available choices."));
    }
    unknown.is_none()
}

/// What the driver wants to know.
pub fn power_parameters(form: &Form) -> Option<BTreeMap<String, String>> {
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
    check_architecture(world, call.form.filled("architecture").unwrap_or(""), false, &mut problems);
    check_power_type(call.form.filled("power_type"), &mut problems);
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
    let force = call.query_flag("force")?.unwrap_or(false);
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
