//! Reading machines.

use serde_json::{Value, json};

use super::{Constraints, answer};
use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::status::Status;

/// `GET machines/`: what the caller may see, by row.
pub fn list(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let constraints = Constraints::of_list(world, &call.query)?;
    let fitting = constraints.candidates(world).into_iter().filter(|machine| {
        world.may_view(user, machine)
            && constraints.matches(world, machine)
            && constraints.storage.as_ref().is_none_or(|storage| storage.assign(machine).is_some())
            && constraints.interfaces.as_ref().is_none_or(|interfaces| interfaces.assign(world, machine).is_some())
    });
    let shown: Vec<Id<Machine>> = fitting.map(|machine| machine.id).collect();
    Ok(Answer::machines(world, &shown))
}

/// The caller's own Allocated machines.
pub fn list_allocated(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let wanted: Vec<&str> = call.query.all("id").collect();
    let own = world.all_machines().filter(|machine| machine.status == Status::Allocated && machine.owner == Some(user));
    let listed = own.filter(|machine| wanted.is_empty() || wanted.contains(&machine.system_id.as_str()));
    let shown: Vec<Id<Machine>> = listed.map(|machine| machine.id).collect();
    Ok(Answer::machines(world, &shown))
}

/// Whether a hardware address is a machine's; machines ask this before anybody knows them, and go on telling of themselves while they are
/// only being got to know.
pub fn is_registered(world: &mut World, call: &Call) -> Reply {
    let mac = call.query.get("mac_address").ok_or_else(|| Refusal::text(400, "No provided mac_address!"))?;
    let mac = mac.replace('-', ":").to_ascii_lowercase();
    let counts = |status: Status| match status {
        Status::Retired => false,
        Status::New | Status::Commissioning => call.user.is_some(),
        _ => true,
    };
    let owners = world.interfaces.values().filter(|interface| interface.mac == mac).filter_map(|row| world.machines.get(row.machine));
    let known = owners.into_iter().any(|machine| counts(machine.status));
    Ok(Answer::json(&json!(known)))
}

/// `GET machines/{}/`.
pub fn read(world: &mut World, call: &Call) -> Reply {
    let id = call.viewed_machine(world)?;
    Ok(answer(world, id))
}

/// What `lshw` and `lldpd` found, as BSON: two binary fields without content.
pub fn details(world: &mut World, call: &Call) -> Reply {
    call.viewed_machine(world)?;
    let empty = |name: &[u8]| [b"\x05", name, b"\0\0\0\0\0\0"].concat();
    let fields = [empty(b"lldp"), empty(b"lshw")].concat();
    let length = u32::try_from(fields.len() + 5).unwrap_or(0).to_le_bytes();
    Ok(Answer::new(200, "application/bson", [&length[..], &fields, b"\0"].concat()))
}

/// The machine's own API key: none, since nothing boots that would use it.
pub fn get_token(world: &mut World, call: &Call) -> Reply {
    call.viewed_machine(world)?;
    Ok(Answer::json(&Value::Null))
}
