//! `allocate`: the cheapest Ready machine that fits, or a virtual machine composed for the purpose.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::constraints::{IGNORED, family};
use super::{Constraints, InterfaceConstraint};
use crate::endpoints::{boot_resources, interfaces, vm_hosts};
use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::lifecycle;
use crate::render;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::people::User;
use crate::world::status::Status;

/// `POST machines/?op=allocate`.
pub fn allocate(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    if call.is_json {
        return Err(Refusal::text(500, "'dict' object has no attribute 'lists'"));
    }
    let bridge_all = call.flag("bridge_all")?.unwrap_or(false);
    let bridge_type = call.form.get("bridge_type").unwrap_or("standard").to_owned();
    if !interfaces::is_bridge_type(&bridge_type) {
        // MAAS forgets to put the value in.
        let words = "'%(value)s' is not a valid bridge_type.  It should be one of: 'standard', 'ovs'.";
        return Err(Refusal::field("bridge_type", words));
    }
    let bridge_stp = call.flag("bridge_stp")?.unwrap_or(false);
    let forward_delay = call.integer("bridge_fd")?.unwrap_or(0);
    let verbose = call.flag("verbose")?.unwrap_or(false);
    let dry_run = call.flag("dry_run")?.unwrap_or(false);
    let constraints = Constraints::of_allocation(world, &call.form)?;
    let found = match cheapest(world, &constraints, user) {
        Some(id) => Some(id),
        None if constraints.system_ids.is_none() => vm_hosts::compose_for_allocation(world, &constraints, &call.form),
        None => None,
    };
    let Some(id) = found else { return Err(no_match(world, call, &constraints)) };
    let by_type = constraints_by_type(world, &constraints, id, verbose);
    if !dry_run {
        lifecycle::deploy::acquire(world, id, user, call.form.get("agent_name").unwrap_or(""), call.form.get("comment"));
        if bridge_all {
            interfaces::bridge_all(world, id, &bridge_type, bridge_stp, forward_delay);
        }
    }
    let Some(machine) = world.machines.get(id) else { return Err(no_match(world, call, &constraints)) };
    let mut value = render::machine(world, machine);
    value["constraints_by_type"] = by_type;
    Ok(Answer::json(&value))
}

/// The cheapest Ready machine that fits; the first row among equals.
fn cheapest(world: &World, constraints: &Constraints, user: Id<User>) -> Option<Id<Machine>> {
    let mut best: Option<&Machine> = None;
    for machine in constraints.candidates(world) {
        let cheaper = best.is_none_or(|best| machine.cost() < best.cost());
        if cheaper && machine.status == Status::Ready && world.may_edit(user, machine) && fits(world, constraints, machine) {
            best = Some(machine);
        }
    }
    best.map(|machine| machine.id)
}

fn fits(world: &World, constraints: &Constraints, machine: &Machine) -> bool {
    constraints.matches(world, machine)
        && constraints.storage.as_ref().is_none_or(|storage| storage.assign(machine).is_some())
        && constraints.interfaces.as_ref().is_none_or(|interfaces| interfaces.assign(world, machine).is_some())
}

/// Which devices satisfy what was asked for, by label.
fn constraints_by_type(world: &World, constraints: &Constraints, id: Id<Machine>, verbose: bool) -> Value {
    let mut object = Map::new();
    let Some(machine) = world.machines.get(id) else { return Value::Object(object) };
    let storage = constraints.storage.as_ref();
    let devices = storage.map(|storage| storage.by_label(machine)).unwrap_or_default();
    if !devices.is_empty() {
        object.insert("storage".into(), json!(devices));
    }
    if verbose {
        let of = |machine: &Machine| -> Option<BTreeMap<String, &str>> {
            Some(storage?.assign(machine)?.into_iter().map(|(device, label)| (device.to_string(), label)).collect())
        };
        let every: BTreeMap<String, BTreeMap<String, &str>> =
            world.all_machines().filter_map(|other| Some((other.id.to_string(), of(other)?))).collect();
        object.insert("verbose_storage".into(), json!(every));
    }
    if let Some(interfaces) = &constraints.interfaces {
        object.insert("interfaces".into(), json!(interfaces.assign(world, machine).unwrap_or_default()));
    }
    if verbose {
        // MAAS looks at the interfaces of all nodes here, its own controllers included.
        let labels = constraints.interfaces.iter().flat_map(InterfaceConstraint::labels);
        let mut every: BTreeMap<&str, BTreeMap<String, Value>> = labels.map(|(label, _)| (label.as_str(), BTreeMap::new())).collect();
        for node in world.machines.values() {
            let assigned = constraints.interfaces.as_ref().and_then(|interfaces| interfaces.assign(world, node));
            for (label, ids) in assigned.unwrap_or_default() {
                if let Some(nodes) = every.get_mut(label.as_str()) {
                    nodes.insert(node.id.to_string(), json!(ids));
                }
            }
        }
        object.insert("verbose_interfaces".into(), json!(every));
    }
    Value::Object(object)
}

/// The 409 in MAAS's words, which show the form as Python prints it.
fn no_match(world: &World, call: &Call, constraints: &Constraints) -> Refusal {
    if let Some(system_id) = call.form.get("system_id") {
        return Refusal::text(409, format!("No machine with system ID {system_id} available."));
    }
    let resolved = describe(world, call, constraints);
    if resolved.is_empty() {
        return Refusal::text(409, "No machine available.");
    }
    let given: Vec<String> = call
        .form
        .grouped()
        .into_iter()
        .map(|(key, values)| format!("({}, [{}])", python(key), values.into_iter().map(python).collect::<Vec<_>>().join(", ")))
        .collect();
    Refusal::text(409, format!("No available machine matches constraints: [{}] (resolved to \"{resolved}\")", given.join(", ")))
}

/// The constraints as MAAS understood them, in the order of their names: sets are sorted, lists stay as they were given.
fn describe(world: &World, call: &Call, constraints: &Constraints) -> String {
    fn numbers<T>(ids: &[Id<T>]) -> Vec<String> {
        ids.iter().map(ToString::to_string).collect()
    }
    let mut fields = call.form.grouped();
    fields.sort_unstable_by_key(|(key, _)| *key);
    let mut words = Vec::new();
    for (key, values) in fields.into_iter().filter(|(key, _)| !IGNORED.contains(key)) {
        let as_given = || values.iter().map(|value| (*value).to_owned()).collect();
        let shown: Vec<String> = match key {
            "cpu_count" | "mem" | "cpu_speed" | "link_speed" => {
                values.iter().filter_map(|value| value.trim().parse::<f64>().ok()).map(|number| format!("{number:?}")).collect()
            }
            "tags" => super::constraints::words(&call.form, "tags").into_iter().collect(),
            "arch" => values.iter().flat_map(|name| expanded(world, name)).collect(),
            "subnets" => numbers(&constraints.subnets),
            "not_subnets" => numbers(&constraints.not_subnets),
            "vlans" => numbers(&constraints.wiring.vlans),
            "not_vlans" => numbers(&constraints.wiring.not_vlans),
            "storage" | "interfaces" | "devices" => call.form.filled(key).map(str::to_owned).into_iter().collect(),
            "deployment_target" | "not_deployment_target" => {
                values.iter().map(|target| if *target == "memory" { "True" } else { "False" }.to_owned()).collect()
            }
            _ => as_given(),
        };
        if !shown.is_empty() {
            words.push(format!("{key}={}", shown.join(",")));
        }
    }
    words.join(" ")
}

/// An architecture with every kernel there is for it, unless it has one already.
fn expanded(world: &World, name: &str) -> Vec<String> {
    if name.contains('/') {
        return vec![name.to_owned()];
    }
    boot_resources::architectures(world).into_iter().filter(|offered| family(offered) == name).collect()
}

/// Text as Python prints it.
fn python(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut quoted = String::from(quote);
    for character in text.chars() {
        match character {
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            other if other == quote => {
                quoted.push('\\');
                quoted.push(other);
            }
            other => quoted.push(other),
        }
    }
    quoted.push(quote);
    quoted
}
