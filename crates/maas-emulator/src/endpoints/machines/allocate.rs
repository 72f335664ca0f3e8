//! `allocate`: the cheapest Ready machine that fits, or a virtual machine composed for the purpose.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Constraints;
use crate::endpoints::{interfaces, vm_hosts};
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
    let bridge_stp = call.flag("bridge_stp")?.unwrap_or(false);
    let dry_run = call.flag("dry_run")?.unwrap_or(false);
    let forward_delay = call.integer("bridge_fd")?.unwrap_or(0);
    let verbose = call.flag("verbose")?.unwrap_or(false);
    let constraints = Constraints::of_allocation(world, &call.form)?;
    let found = match cheapest(world, &constraints, user) {
        Some(id) => Some(id),
        None if constraints.system_ids.is_none() => vm_hosts::compose_for_allocation(world, &constraints, &call.form),
        None => None,
    };
    let Some(id) = found else { return Err(no_match(call)) };
    let by_type = constraints_by_type(world, &constraints, id, verbose);
    if !dry_run {
        lifecycle::deploy::acquire(world, id, user, call.form.get("agent_name").unwrap_or(""), call.form.get("comment"));
        if bridge_all {
            let kind = call.form.filled("bridge_type").unwrap_or("standard").to_owned();
            interfaces::bridge_all(world, id, &kind, bridge_stp, forward_delay);
        }
    }
    let Some(machine) = world.machines.get(id) else { return Err(no_match(call)) };
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
    if let Some(storage) = constraints.storage.as_ref().filter(|storage| storage.is_labelled()) {
        let lists = |assigned: BTreeMap<String, u32>| -> BTreeMap<String, [u32; 1]> {
            assigned.into_iter().map(|(label, disk)| (label, [disk])).collect()
        };
        object.insert("storage".into(), json!(storage.assign(machine).map(lists).unwrap_or_default()));
        if verbose {
            let by_disk = |assigned: BTreeMap<String, u32>| -> BTreeMap<String, String> {
                assigned.into_iter().map(|(label, disk)| (disk.to_string(), label)).collect()
            };
            let every: BTreeMap<String, BTreeMap<String, String>> =
                world.all_machines().filter_map(|other| Some((other.id.to_string(), by_disk(storage.assign(other)?)))).collect();
            object.insert("verbose_storage".into(), json!(every));
        }
    }
    if let Some(interfaces) = &constraints.interfaces {
        object.insert("interfaces".into(), json!(interfaces.assign(world, machine).unwrap_or_default()));
        if verbose {
            // MAAS looks at the interfaces of all nodes here, its own controllers included.
            let mut every: BTreeMap<&str, BTreeMap<String, Value>> =
                interfaces.labels().iter().map(|(label, _)| (label.as_str(), BTreeMap::new())).collect();
            for node in world.machines.values() {
                for (label, ids) in interfaces.assign(world, node).unwrap_or_default() {
                    if let Some(nodes) = every.get_mut(label.as_str()) {
                        nodes.insert(node.id.to_string(), json!(ids));
                    }
                }
            }
            object.insert("verbose_interfaces".into(), json!(every));
        }
    }
    Value::Object(object)
}

/// The 409 in MAAS's words, which show the form as Python prints it.
fn no_match(call: &Call) -> Refusal {
    if let Some(system_id) = call.form.filled("system_id") {
        return Refusal::text(409, format!("No machine with system ID {system_id} available."));
    }
    let resolved = describe(call);
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

/// The constraints as MAAS understood them, in the order of their names.
fn describe(call: &Call) -> String {
    const PLAIN: [&str; 7] = ["agent_name", "comment", "bridge_all", "bridge_stp", "bridge_fd", "dry_run", "verbose"];
    let mut fields = call.form.grouped();
    fields.sort_unstable_by_key(|(key, _)| *key);
    let mut words = Vec::new();
    for (key, mut values) in fields.into_iter().filter(|(key, _)| !PLAIN.contains(key)) {
        values.retain(|value| !value.is_empty());
        if values.is_empty() {
            continue;
        }
        let text = match key {
            "cpu_count" | "mem" | "cpu_speed" => {
                let least = values.iter().filter_map(|value| value.parse::<f64>().ok()).fold(f64::INFINITY, f64::min);
                format!("{least:?}")
            }
            "tags" | "not_tags" => {
                values.iter().flat_map(|value| value.split([',', ' '])).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(",")
            }
            _ => values.join(","),
        };
        words.push(format!("{key}={text}"));
    }
    words.join(" ")
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
