//! Cards, tagged VLANs on them, and changes of any interface.

use serde_json::Map;

use super::fields::{self, Cable, Change, refuse_taken_mac};
use super::{
    NO_CHOICE_OF, New, add, administered, answer, bond, bridge, changed_machine, link_up, parent_wished, refuse_state, refuse_taken_name,
    tags, vlan_wished,
};
use crate::http::answer::{Refusal, Reply};
use crate::http::call::Call;
use crate::world::World;
use crate::world::id::Id;
use crate::world::network::{Interface, InterfaceKind, Vlan};
use crate::world::status::Status;

pub(super) fn create_physical(world: &mut World, call: &Call) -> Reply {
    let machine = call.node(world, World::may_administer)?;
    refuse_state(world, machine, "create", &[])?;
    let mac = fields::mac(call)?.ok_or_else(|| Refusal::field("mac_address", "This field is required."))?;
    refuse_taken_mac(world, &mac, None)?;
    let count = world.machines.get(machine).map_or(0, |machine| machine.interfaces.len());
    let name = call.form.filled("name").map_or_else(|| format!("eth{count}"), str::to_owned);
    refuse_taken_name(world, machine, &name)?;
    let (vlan, cable, enabled) = (vlan_wished(world, call)?, Cable::read(call, true)?, fields::flag(call, "enabled"));
    let mut params = Map::new();
    fields::apply(&mut params, fields::options(call)?);
    let id = add(world, machine, New { name, kind: InterfaceKind::Physical, mac, vlan, parents: Vec::new(), params, tags: tags(call) });
    if let Some(row) = world.interfaces.get_mut(id) {
        cable.apply(row);
        row.enabled = enabled.unwrap_or(true);
    }
    link_up(world, id, None);
    answer(world, id)
}

/// The tag of a VLAN that an interface on this one may have: of its fabric, and not the untagged one.
fn tag_on(world: &World, parent: Id<Interface>, vlan: Id<Vlan>) -> Result<u16, Refusal> {
    let on = world.interfaces.get(parent).and_then(|row| row.vlan).and_then(|vlan| world.vlans.get(vlan));
    match world.vlans.get(vlan) {
        Some(vlan) if vlan.vid != 0 && on.map(|on| on.fabric) == Some(vlan.fabric) => Ok(vlan.vid),
        _ => {
            let words = "A VLAN interface can only belong to a tagged VLAN on the same fabric as its parent interface.";
            Err(Refusal::field("vlan", words))
        }
    }
}

pub(super) fn create_vlan(world: &mut World, call: &Call) -> Reply {
    let machine = changed_machine(world, call, "create VLAN")?;
    let text = call.form.filled("parent").ok_or_else(|| Refusal::field("parent", "This field is required."))?;
    let parent = parent_wished(world, machine, text)
        .ok_or_else(|| Refusal::field("parent", format!("Select a valid choice. That choice {NO_CHOICE_OF}")))?;
    let vlan = vlan_wished(world, call)?.ok_or_else(|| Refusal::field("vlan", "This field is required."))?;
    let vid = tag_on(world, parent, vlan)?;
    let parent_row = world.interfaces.get(parent);
    let (name, mac) = parent_row.map(|row| (format!("{}.{vid}", row.name), row.mac.clone())).unwrap_or_default();
    refuse_taken_name(world, machine, &name)?;
    let mut params = Map::new();
    fields::apply(&mut params, fields::options(call)?);
    let new = New { name, kind: InterfaceKind::Vlan, mac, vlan: Some(vlan), parents: vec![parent], params, tags: tags(call) };
    let id = add(world, machine, new);
    link_up(world, id, None);
    answer(world, id)
}

/// What an update asks for, checked.
#[derive(Default)]
struct Wish {
    name: Option<String>,
    mac: Option<String>,
    /// The VLAN it is on then, if any.
    vlan: Option<Id<Vlan>>,
    tags: Option<Vec<String>>,
    enabled: Option<bool>,
    options: Vec<Change>,
}

impl Wish {
    /// Reads what an interface of this kind has; forms of MAAS do not see the rest. While a machine is deployed nothing can change but
    /// what a new card brings along.
    fn read(world: &World, call: &Call, row: &Interface, deployed: bool) -> Result<Self, Refusal> {
        let named = deployed || row.kind != InterfaceKind::Vlan;
        let mut wish = Wish {
            name: call.form.filled("name").filter(|_| named).map(str::to_owned),
            mac: if named { fields::mac(call)? } else { None },
            vlan: row.vlan,
            ..Wish::default()
        };
        let moved = !deployed && call.form.has("vlan");
        if moved {
            wish.vlan = vlan_wished(world, call)?;
        }
        if !deployed {
            wish.tags = call.form.has("tags").then(|| tags(call));
            wish.enabled = fields::flag(call, "enabled").filter(|_| row.kind == InterfaceKind::Physical);
            wish.options = match row.kind {
                InterfaceKind::Bond => bond::options(call)?,
                InterfaceKind::Bridge => bridge::options(call)?,
                InterfaceKind::Physical | InterfaceKind::Vlan | InterfaceKind::Unknown => fields::options(call)?,
            };
        }
        if let (true, InterfaceKind::Vlan, Some(parent)) = (moved, row.kind, row.parents.first()) {
            let vlan = wish.vlan.ok_or_else(|| Refusal::field("vlan", "A VLAN interface must be connected to a tagged VLAN."))?;
            let vid = tag_on(world, *parent, vlan)?;
            wish.name = world.interfaces.get(*parent).map(|parent| format!("{}.{vid}", parent.name));
        }
        wish.name = wish.name.filter(|name| *name != row.name);
        if let Some(name) = &wish.name {
            refuse_taken_name(world, row.machine, name)?;
        }
        if let (InterfaceKind::Physical, Some(mac)) = (row.kind, &wish.mac) {
            refuse_taken_mac(world, mac, Some(row.id))?;
        }
        Ok(wish)
    }
}

pub(super) fn update(world: &mut World, call: &Call) -> Reply {
    let (machine, id) = administered(world, call)?;
    // Cards break while a machine is deployed, too.
    refuse_state(world, machine, "update interface", &[Status::Deployed])?;
    let deployed = world.machines.get(machine).is_some_and(|machine| machine.status == Status::Deployed);
    let Some(row) = world.interfaces.get(id) else { return Err(Refusal::no_match(world, "Interface")) };
    let (wish, cable) = (Wish::read(world, call, row, deployed)?, Cable::read(call, row.link_connected)?);
    if let Some(row) = world.interfaces.get_mut(id) {
        row.name = wish.name.unwrap_or_else(|| row.name.clone());
        row.mac = wish.mac.unwrap_or_else(|| row.mac.clone());
        row.vlan = wish.vlan;
        row.tags = wish.tags.unwrap_or_else(|| row.tags.clone());
        row.enabled = wish.enabled.unwrap_or(row.enabled);
        fields::apply(&mut row.params, wish.options);
        cable.apply(row);
    }
    world.dns_changes += 1;
    answer(world, id)
}
