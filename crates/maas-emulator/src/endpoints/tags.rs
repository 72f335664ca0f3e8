//! `tags/`, by name, and the machines that carry them.

use std::collections::BTreeSet;

use serde_json::json;

use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::route::{Endpoint, Operation};
use crate::render;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::place::Tag;

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint::new("tags/", &[Operation::get(list), Operation::post(create)]),
    Endpoint::new(
        "tags/{}/",
        &[
            Operation::get(read),
            Operation::get_op("machines", machines),
            Operation::get_op("nodes", machines),
            Operation::get_op("devices", none),
            Operation::get_op("rack_controllers", none),
            Operation::get_op("region_controllers", none),
            Operation::put(update),
            Operation::delete(delete),
            Operation::post_op("update_nodes", update_nodes),
            Operation::post_op("rebuild", rebuild),
        ],
    ),
];

fn find(world: &World, call: &Call) -> Result<Id<Tag>, Refusal> {
    world.tags.values().find(|tag| tag.name == call.argument(0)).map(|tag| tag.id).ok_or_else(|| Refusal::no_match(world, "Tag"))
}

/// Tags are changed by administrators; others are refused without a word, whether the tag is there or not.
fn administrator(world: &World, call: &Call) -> Result<(), Refusal> {
    call.administered(world, |_, _| Ok(()))
}

fn answer(world: &World, id: Id<Tag>) -> Reply {
    world.tags.get(id).map(|tag| Answer::json(&render::tag(tag))).ok_or_else(|| Refusal::no_match(world, "Tag"))
}

fn list(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    Ok(Answer::json(&world.tags.values().map(render::tag).collect()))
}

/// Whether a tag may have this name.
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || "_-".contains(letter))
}

fn checked_name(world: &World, name: Option<&str>, own: Option<Id<Tag>>) -> Result<Option<String>, Refusal> {
    let Some(name) = name else { return Ok(None) };
    if !is_name(name) {
        return Err(Refusal::field("name", "Enter a valid value."));
    }
    if world.tags.values().any(|tag| tag.name == name && Some(tag.id) != own) {
        return Err(Refusal::field("name", "Tag with this Name already exists."));
    }
    Ok(Some(name.to_owned()))
}

/// Refuses what is no `XPath`: brackets and quotes that do not close, a path that ends in the middle.
fn check_definition(call: &Call) -> Result<(), Refusal> {
    let Some(text) = call.form.filled("definition").map(str::trim) else { return Ok(()) };
    let (mut open, mut quote, mut before) = (Vec::new(), None, '[');
    let mut good = true;
    for letter in text.chars() {
        match (quote, letter) {
            (Some(begun), letter) if letter == begun => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, '(' | '[') => open.push(letter),
            (None, ')') => good &= open.pop() == Some('('),
            (None, ']') => good &= open.pop() == Some('[') && before != '[',
            _ => {}
        }
        if !letter.is_whitespace() {
            before = letter;
        }
    }
    good &= quote.is_none() && open.is_empty() && (!text.ends_with('/') || text == "/");
    if good { Ok(()) } else { Err(Refusal::field("definition", "Invalid XPath expression: Invalid expression")) }
}

fn create(world: &mut World, call: &Call) -> Reply {
    administrator(world, call)?;
    check_definition(call)?;
    let name = checked_name(world, call.form.filled("name"), None)?.ok_or_else(|| Refusal::field("name", "This field is required."))?;
    let text = |key: &str| call.form.get(key).unwrap_or("").to_owned();
    let (comment, definition, kernel_opts) = (text("comment"), text("definition"), text("kernel_opts"));
    let id = world.tags.add(None, |id| Tag { id, name, comment, definition, kernel_opts });
    answer(world, id)
}

fn read(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let id = find(world, call)?;
    answer(world, id)
}

fn update(world: &mut World, call: &Call) -> Reply {
    administrator(world, call)?;
    let id = find(world, call)?;
    check_definition(call)?;
    let name = checked_name(world, call.form.filled("name"), Some(id))?;
    if let Some(tag) = world.tags.get_mut(id) {
        let text = |key: &str, before: &str| call.form.get(key).unwrap_or(before).to_owned();
        tag.comment = text("comment", &tag.comment);
        tag.definition = text("definition", &tag.definition);
        tag.kernel_opts = text("kernel_opts", &tag.kernel_opts);
        tag.name = name.unwrap_or_else(|| tag.name.clone());
    }
    answer(world, id)
}

fn delete(world: &mut World, call: &Call) -> Reply {
    administrator(world, call)?;
    let id = find(world, call)?;
    world.tags.remove(id);
    for machine in world.machines.values_mut() {
        machine.tags.remove(&id);
    }
    Ok(Answer::deleted())
}

fn machines(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let id = find(world, call)?;
    let carrying = world.all_machines().filter(|machine| machine.tags.contains(&id) && world.may_view(user, machine));
    let shown: Vec<Id<Machine>> = carrying.map(|machine| machine.id).collect();
    Ok(Answer::machines(world, &shown))
}

/// There are no devices, and controllers carry no tags.
fn none(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    find(world, call)?;
    Ok(Answer::json(&json!([])))
}

/// Puts the tag on machines and takes it off; ids that nobody has are not minded.
fn update_nodes(world: &mut World, call: &Call) -> Reply {
    administrator(world, call)?;
    let id = find(world, call)?;
    if let (Some(expected), Some(tag)) = (call.form.get("definition"), world.tags.get(id))
        && expected != tag.definition
    {
        let words = format!("Definition supplied '{expected}' doesn't match current definition '{}'", tag.definition);
        return Err(Refusal::text(409, words));
    }
    // Whoever is named twice counts once.
    let named = |key: &str| call.form.all(key).filter_map(|name| world.node_id(name)).collect::<BTreeSet<_>>();
    let (added, removed) = (named("add"), named("remove"));
    for node in &added {
        if let Some(machine) = world.machines.get_mut(*node) {
            machine.tags.insert(id);
        }
    }
    for node in &removed {
        if let Some(machine) = world.machines.get_mut(*node) {
            machine.tags.remove(&id);
        }
    }
    Ok(Answer::json(&json!({"added": added.len(), "removed": removed.len()})))
}

fn rebuild(world: &mut World, call: &Call) -> Reply {
    administrator(world, call)?;
    let id = find(world, call)?;
    let name = world.tags.get(id).map(|tag| tag.name.clone());
    Ok(Answer::json(&json!({"rebuilding": name})))
}
