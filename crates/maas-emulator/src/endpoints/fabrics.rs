//! Fabrics, VLANs and spaces.

use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::route::{Endpoint, Operation};
use crate::render;
use crate::world::World;
use crate::world::id::Id;
use crate::world::network::{Fabric, Interface, InterfaceKind, Space, Vlan};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint::new("fabrics/", &[Operation::get(list), Operation::post(create)]),
    Endpoint::new("fabrics/{}/", &[Operation::get(read), Operation::delete(delete)]),
    Endpoint::new("fabrics/{}/vlans/", &[Operation::get(list_vlans), Operation::post(create_vlan)]),
    Endpoint::new("fabrics/{}/vlans/{}/", &[Operation::get(read_vlan), Operation::put(update_vlan), Operation::delete(delete_vlan)]),
    Endpoint::new("vlans/{}/", &[Operation::get(read_vlan_by_id), Operation::put(update_vlan_by_id), Operation::delete(delete_vlan_by_id)]),
    Endpoint::new("spaces/", &[Operation::get(list_spaces), Operation::post(create_space)]),
    Endpoint::new("spaces/{}/", &[Operation::get(read_space), Operation::put(rename_space), Operation::delete(delete_space)]),
];

fn find(world: &World, call: &Call) -> Result<Id<Fabric>, Refusal> {
    let wanted = call.argument(0);
    let found = world.fabrics.values().find(|fabric| fabric.id.to_string() == wanted || fabric.name == wanted);
    found.map(|fabric| fabric.id).ok_or_else(|| Refusal::no_match(world, "Fabric"))
}

fn list(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    Ok(Answer::json(&world.fabrics.values().map(|fabric| render::fabric(world, fabric)).collect()))
}

fn answer(world: &World, id: Id<Fabric>) -> Reply {
    world.fabrics.get(id).map(|fabric| Answer::json(&render::fabric(world, fabric))).ok_or_else(|| Refusal::no_match(world, "Fabric"))
}

fn create(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let wished = call.form.filled("name").map(str::to_owned);
    if let Some(name) = &wished
        && world.fabrics.values().any(|fabric| fabric.name == *name)
    {
        return Err(Refusal::field("name", "Fabric with this Name already exists."));
    }
    let class_type = call.form.filled("class_type").map(str::to_owned);
    let id = world.fabrics.add(None, |id| Fabric { id, name: wished.unwrap_or_else(|| format!("fabric-{id}")), class_type });
    add_vlan(world, id, 0, "untagged".into(), None);
    answer(world, id)
}

fn add_vlan(world: &mut World, fabric: Id<Fabric>, vid: u16, name: String, space: Option<Id<Space>>) -> Id<Vlan> {
    world.vlans.add(None, |id| Vlan { id, fabric, vid, name, mtu: 1500, dhcp_on: false, space, primary_rack: None })
}

fn read(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let id = find(world, call)?;
    answer(world, id)
}

fn delete(world: &mut World, call: &Call) -> Reply {
    let id = call.administered(world, find)?;
    if id == Id::new(0) {
        return Err(Refusal::text(400, "This fabric is the default fabric, it cannot be deleted."));
    }
    let vlans: Vec<Id<Vlan>> = render::vlans_of(world, id).iter().map(|vlan| vlan.id).collect();
    let mut subnets: Vec<ipnet::IpNet> =
        world.subnets.values().filter(|subnet| vlans.contains(&subnet.vlan)).map(|subnet| subnet.cidr).collect();
    if !subnets.is_empty() {
        subnets.sort();
        let listed: Vec<String> = subnets.iter().map(ToString::to_string).collect();
        let words = format!("Can't delete fabric; the following subnets are still present: {}", listed.join(", "));
        return Err(Refusal::text(400, words));
    }
    for vlan in vlans {
        world.vlans.remove(vlan);
    }
    world.fabrics.remove(id);
    Ok(Answer::deleted())
}

fn list_vlans(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let id = find(world, call)?;
    Ok(Answer::json(&render::vlans_of(world, id).into_iter().map(|vlan| render::vlan(world, vlan)).collect()))
}

fn create_vlan(world: &mut World, call: &Call) -> Reply {
    let fabric = call.administered(world, find)?;
    let text = call.form.filled("vid").ok_or_else(|| Refusal::field("vid", "This field is required."))?;
    let vid: u16 = text.parse().ok().filter(|vid| *vid < 4095).ok_or_else(|| Refusal::field("vid", "VID must be between 0 and 4094."))?;
    if world.vlans.values().any(|vlan| vlan.fabric == fabric && vlan.vid == vid) {
        return Err(Refusal::field("vid", "A VLAN with the specified VID already exists in the destination fabric."));
    }
    let name = call.form.filled("name").map_or_else(|| vid.to_string(), str::to_owned);
    let space = space_wished(world, call)?;
    let id = add_vlan(world, fabric, vid, name, space);
    answer_vlan(world, id)
}

fn space_wished(world: &World, call: &Call) -> Result<Option<Id<Space>>, Refusal> {
    let Some(name) = call.form.filled("space") else { return Ok(None) };
    let found = world.spaces.values().find(|space| space.name == name || space.id.to_string() == name);
    found
        .map(|space| Some(space.id))
        .ok_or_else(|| Refusal::field("space", "Select a valid choice. That choice is not one of the available choices."))
}

fn find_vlan(world: &World, call: &Call, fabric: Id<Fabric>) -> Result<Id<Vlan>, Refusal> {
    let found = world.vlans.values().find(|vlan| vlan.fabric == fabric && vlan.vid.to_string() == call.argument(1));
    found.map(|vlan| vlan.id).ok_or_else(|| Refusal::no_match(world, "VLAN"))
}

fn find_vlan_by_id(world: &World, call: &Call) -> Result<Id<Vlan>, Refusal> {
    let found = world.vlans.values().map(|vlan| vlan.id).find(|id| id.to_string() == call.argument(0));
    found.ok_or_else(|| Refusal::missing(world, "VLAN with specified ID does not exist."))
}

fn answer_vlan(world: &World, id: Id<Vlan>) -> Reply {
    world.vlans.get(id).map(|vlan| Answer::json(&render::vlan(world, vlan))).ok_or_else(|| Refusal::no_match(world, "VLAN"))
}

fn read_vlan(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let fabric = find(world, call)?;
    let id = find_vlan(world, call, fabric)?;
    answer_vlan(world, id)
}

fn read_vlan_by_id(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let id = find_vlan_by_id(world, call)?;
    answer_vlan(world, id)
}

fn change_vlan(world: &mut World, call: &Call, id: Id<Vlan>) -> Reply {
    let space = space_wished(world, call)?;
    let dhcp = call.flag("dhcp_on")?;
    let mtu = call.form.filled("mtu").map(|text| text.parse().map_err(|_| Refusal::field("mtu", "Enter a whole number."))).transpose()?;
    if let Some(vlan) = world.vlans.get_mut(id) {
        if let Some(name) = call.form.filled("name") {
            name.clone_into(&mut vlan.name);
        }
        vlan.mtu = mtu.unwrap_or(vlan.mtu);
        vlan.space = space.or(vlan.space);
        vlan.dhcp_on = dhcp.unwrap_or(vlan.dhcp_on);
    }
    answer_vlan(world, id)
}

fn update_vlan(world: &mut World, call: &Call) -> Reply {
    let fabric = call.administered(world, find)?;
    let id = find_vlan(world, call, fabric)?;
    change_vlan(world, call, id)
}

fn update_vlan_by_id(world: &mut World, call: &Call) -> Reply {
    let id = call.administered(world, find_vlan_by_id)?;
    change_vlan(world, call, id)
}

fn delete_vlan(world: &mut World, call: &Call) -> Reply {
    let fabric = call.administered(world, find)?;
    let id = find_vlan(world, call, fabric)?;
    remove_vlan(world, id)
}

fn delete_vlan_by_id(world: &mut World, call: &Call) -> Reply {
    let id = call.administered(world, find_vlan_by_id)?;
    remove_vlan(world, id)
}

/// Its subnets and interfaces go to the fabric's first VLAN, which stays; interfaces that are for its tag alone go with it.
fn remove_vlan(world: &mut World, id: Id<Vlan>) -> Reply {
    let fabric = world.vlans.get(id).map(|vlan| vlan.fabric);
    let default = world.vlans.values().find(|vlan| Some(vlan.fabric) == fabric).map(|vlan| vlan.id);
    let Some(default) = default.filter(|default| *default != id) else {
        return Err(Refusal::text(400, "This VLAN is the default VLAN in the fabric, it cannot be deleted."));
    };
    for subnet in world.subnets.values_mut().filter(|subnet| subnet.vlan == id) {
        subnet.vlan = default;
    }
    let on_it: Vec<(Id<Interface>, InterfaceKind)> =
        world.interfaces.values().filter(|row| row.vlan == Some(id)).map(|row| (row.id, row.kind)).collect();
    for (interface, kind) in on_it {
        if kind == InterfaceKind::Vlan {
            world.remove_interface(interface);
        } else if let Some(row) = world.interfaces.get_mut(interface) {
            row.vlan = Some(default);
        }
    }
    world.vlans.remove(id);
    Ok(Answer::deleted())
}

fn list_spaces(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let spaces = world.spaces.values().map(|space| render::space(world, Some(space)));
    let undefined = world.vlans.values().any(|vlan| vlan.space.is_none()).then(|| render::space(world, None));
    Ok(Answer::json(&spaces.chain(undefined).collect()))
}

fn create_space(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let wished = call.form.filled("name").map(str::to_owned);
    if let Some(name) = &wished
        && world.spaces.values().any(|space| space.name == *name)
    {
        return Err(Refusal::field("name", "Space with this Name already exists."));
    }
    let id = world.spaces.add(None, |id| Space { id, name: wished.unwrap_or_else(|| format!("space-{id}")), description: String::new() });
    answer_space(world, id)
}

fn answer_space(world: &World, id: Id<Space>) -> Reply {
    world.spaces.get(id).map(|space| Answer::json(&render::space(world, Some(space)))).ok_or_else(|| Refusal::no_match(world, "Space"))
}

/// Whether the path means what belongs to no space, which can be read and nothing else.
fn means_no_space(call: &Call) -> bool {
    matches!(call.argument(0), "-1" | "undefined")
}

fn find_space(world: &World, call: &Call) -> Result<Id<Space>, Refusal> {
    let wanted = call.argument(0);
    let found = world.spaces.values().find(|space| space.id.to_string() == wanted || space.name == wanted);
    found.map(|space| space.id).ok_or_else(|| Refusal::no_match(world, "Space"))
}

fn read_space(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    if means_no_space(call) {
        return Ok(Answer::json(&render::space(world, None)));
    }
    let id = find_space(world, call)?;
    answer_space(world, id)
}

fn rename_space(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    if means_no_space(call) {
        return Err(Refusal::text(400, "Space cannot be modified: undefined"));
    }
    let id = call.administered(world, find_space)?;
    let wished = call.form.filled("name").map(str::to_owned);
    if let Some(name) = &wished
        && world.spaces.values().any(|space| space.name == *name && space.id != id)
    {
        return Err(Refusal::field("name", "Space with this Name already exists."));
    }
    if let (Some(space), Some(name)) = (world.spaces.get_mut(id), wished) {
        space.name = name;
    }
    answer_space(world, id)
}

fn delete_space(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    if means_no_space(call) {
        return Err(Refusal::text(400, "Space cannot be deleted: undefined"));
    }
    let id = call.administered(world, find_space)?;
    world.spaces.remove(id);
    for vlan in world.vlans.values_mut().filter(|vlan| vlan.space == Some(id)) {
        vlan.space = None;
    }
    Ok(Answer::deleted())
}
