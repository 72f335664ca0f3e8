//! Bonds: several cards as one.

use serde_json::{Map, Value, json};

use super::fields::{self, Change};
use super::{NO_CHOICE_OF, New, add, answer, changed_machine, link_up, links, parent_wished, refuse_taken_name, tags, vlan_wished};
use crate::http::answer::{Refusal, Reply};
use crate::http::call::Call;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::network::{Interface, InterfaceKind, Vlan};

const MODES: [&str; 7] = ["balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"];
const LACP_RATES: [&str; 2] = ["fast", "slow"];
const HASH_POLICIES: [&str; 5] = ["layer2", "layer2+3", "layer3+4", "encap2+3", "encap3+4"];

/// What a bond is like unless somebody says otherwise.
fn defaults() -> Map<String, Value> {
    Map::from_iter([
        ("bond_mode".to_owned(), json!("active-backup")),
        ("bond_miimon".to_owned(), json!(100)),
        ("bond_downdelay".to_owned(), json!(0)),
        ("bond_updelay".to_owned(), json!(0)),
        ("bond_lacp_rate".to_owned(), json!("fast")),
        ("bond_xmit_hash_policy".to_owned(), json!("layer2")),
        ("bond_num_grat_arp".to_owned(), json!(1)),
    ])
}

/// The options a form asks for; those it does not name stay.
pub(super) fn options(call: &Call) -> Result<Vec<Change>, Refusal> {
    let mut changes = fields::options(call)?;
    for (key, choices) in [("bond_mode", &MODES[..]), ("bond_lacp_rate", &LACP_RATES), ("bond_xmit_hash_policy", &HASH_POLICIES)] {
        changes.extend(fields::choice(call, key, choices)?.map(|choice| (key, Some(json!(choice)))));
    }
    let longest = i32::MAX as u32;
    let numbers = [("bond_miimon", longest), ("bond_downdelay", longest), ("bond_updelay", longest), ("bond_num_grat_arp", 255)];
    for (key, most) in numbers {
        changes.extend(fields::number(call, key, 0, most)?.map(|number| (key, Some(json!(number)))));
    }
    Ok(changes)
}

fn parents_wished(world: &World, call: &Call, machine: Id<Machine>) -> Result<Vec<Id<Interface>>, Refusal> {
    let given = call.form.all("parents").filter(|text| !text.is_empty());
    let parents: Vec<Id<Interface>> = given
        .map(|text| {
            let unknown = || Refusal::field("parents", format!("Select a valid choice. {text} {NO_CHOICE_OF}"));
            parent_wished(world, machine, text).ok_or_else(unknown)
        })
        .collect::<Result<_, _>>()?;
    if parents.is_empty() {
        return Err(Refusal::field("parents", "A bond interface must have one or more parents."));
    }
    Ok(parents)
}

/// The VLAN of all the parents, which no other bond or bridge may have.
fn common_vlan(world: &World, rows: &[&Interface], wished: Option<Id<Vlan>>) -> Result<Option<Id<Vlan>>, Refusal> {
    let used: Vec<&str> = rows
        .iter()
        .filter(|row| world.interfaces.values().any(|other| other.parents.contains(&row.id)))
        .map(|row| row.name.as_str())
        .collect();
    let mut problems = Vec::new();
    if !used.is_empty() {
        problems.push(format!("Interfaces already in-use: {}.", used.join(", ")));
    }
    let vlan = wished.or_else(|| rows.first().and_then(|row| row.vlan));
    if rows.iter().any(|row| row.vlan != vlan) {
        problems.push("All parents must belong to the same VLAN.".to_owned());
    }
    if problems.is_empty() { Ok(vlan) } else { Err(Refusal::fields([("parents".to_owned(), problems)])) }
}

pub(super) fn create_bond(world: &mut World, call: &Call) -> Reply {
    let machine = changed_machine(world, call, "create bond")?;
    let parents = parents_wished(world, call, machine)?;
    let name = call.form.filled("name").ok_or_else(|| Refusal::field("name", "This field is required."))?.to_owned();
    let rows: Vec<&Interface> = parents.iter().filter_map(|id| world.interfaces.get(*id)).collect();
    let vlan = common_vlan(world, &rows, vlan_wished(world, call)?)?;
    refuse_taken_name(world, machine, &name)?;
    let mac = fields::mac(call)?.or_else(|| rows.first().map(|row| row.mac.clone())).unwrap_or_default();
    let mut params = defaults();
    fields::apply(&mut params, options(call)?);
    for parent in &parents {
        for link in links(world, *parent) {
            world.remove_address(link);
        }
    }
    let id = add(world, machine, New { name, kind: InterfaceKind::Bond, mac, vlan, parents, params, tags: tags(call) });
    link_up(world, id, None);
    answer(world, id)
}
