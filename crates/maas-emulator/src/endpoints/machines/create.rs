//! `POST machines/`: by administrators, who may let it be commissioned at once; by users and by machines that nobody knows yet, whose
//! machines stay New until an administrator accepts them.

use serde_json::{Map, Value};

use super::answer;
use super::change::{Fields, check_architecture, check_power_type, power_parameters};
use super::constraints::{Problems, is_mac};
use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::form::Form;
use crate::lifecycle::commission;
use crate::load::blank;
use crate::render;
use crate::version::Version;
use crate::world::id::Id;
use crate::world::machine::{Machine, PowerState, ScriptSet, ScriptStatus};
use crate::world::network::{Interface, InterfaceKind};
use crate::world::people::User;
use crate::world::status::Status;
use crate::world::{World, next};

/// What anonymous callers are shown of a machine.
const SHOWN_TO_ANYBODY: [&str; 14] = [
    "system_id",
    "hostname",
    "domain",
    "fqdn",
    "architecture",
    "status",
    "power_type",
    "power_state",
    "zone",
    "status_action",
    "status_message",
    "status_name",
    "node_type",
    "resource_uri",
];

/// `POST machines/`.
pub fn create(world: &mut World, call: &Call) -> Reply {
    // Users may ask for commissioning and do not get it.
    let commission = call.flag("commission")?;
    let deployed = call.flag("deployed")?.unwrap_or(false);
    let Some(user) = call.user else { return enlist(world, call, commission.unwrap_or(false)) };
    let id = add(world, call, deployed.then_some(user))?;
    let commissions = world.is_admin(user) && commission.unwrap_or(true) && !deployed;
    if commissions {
        commission::begin(world, id, user, true);
    }
    let answered = answer(world, id);
    if commissions {
        commission::after_commit(world, id);
    }
    Ok(answered)
}

/// A machine that booted without being known tells of itself: one that was made for it beforehand is brought up to date.
fn enlist(world: &mut World, call: &Call, commission: bool) -> Reply {
    let macs = mac_addresses(&call.form);
    let waiting = |machine: &Machine| matches!(machine.status, Status::New | Status::Commissioning);
    let known = world
        .interfaces
        .values()
        .filter(|interface| macs.contains(&interface.mac))
        .find_map(|interface| world.machines.get(interface.machine).filter(|machine| waiting(machine)))
        .map(|machine| machine.id);
    let id = if let Some(id) = known {
        bring_up_to_date(world, &call.form, id)?;
        id
    } else {
        let id = add(world, call, None)?;
        if commission {
            commission::begin_enlisting(world, id);
        }
        id
    };
    let Some(machine) = world.machines.get(id) else { return Ok(Answer::json(&Value::Null)) };
    let mut shown = render::machine(world, machine);
    if let Some(object) = shown.as_object_mut() {
        object.retain(|key, _| SHOWN_TO_ANYBODY.contains(&key.as_str()));
    }
    if commission && known.is_none() {
        commission::after_commit(world, id);
    }
    Ok(Answer::json(&shown))
}

fn bring_up_to_date(world: &mut World, form: &Form, id: Id<Machine>) -> Result<(), Refusal> {
    let mut problems = Problems::default();
    let architecture = wished_architecture(form);
    check_architecture(world, &architecture, true, &mut problems);
    check_power_type(form.filled("power_type"), &mut problems);
    problems.refuse()?;
    let Some(machine) = world.machines.get_mut(id) else { return Ok(()) };
    machine.architecture = architecture;
    if let Some(kind) = form.filled("power_type") {
        kind.clone_into(&mut machine.power_type);
    }
    machine.power_parameters.extend(power_parameters(form).unwrap_or_default());
    Ok(())
}

fn mac_addresses(form: &Form) -> Vec<String> {
    form.all("mac_addresses").filter(|mac| !mac.is_empty()).map(str::to_ascii_lowercase).collect()
}

/// The architecture with its part after the slash, which may be left out or sent on its own.
fn wished_architecture(form: &Form) -> String {
    match (form.filled("architecture"), form.filled("subarchitecture")) {
        (Some(whole), _) if whole.contains('/') => whole.to_owned(),
        (Some(family), part) => format!("{family}/{}", part.unwrap_or("generic")),
        (None, _) => String::new(),
    }
}

/// Checks a form and makes the machine, somebody's and Deployed or nobody's and New.
fn add(world: &mut World, call: &Call, owner: Option<Id<User>>) -> Result<Id<Machine>, Refusal> {
    let form = &call.form;
    refuse_kernels(form)?;
    let mut problems = Problems::default();
    let power_type = form.get("power_type").unwrap_or("").to_owned();
    // An administrator may know no more of a machine than the address of its BMC.
    let needs_all = power_type != "ipmi" && (owner.is_none() || form.has("power_type"));
    let architecture = wished_architecture(form);
    check_architecture(world, &architecture, needs_all || call.user.is_none(), &mut problems);
    let macs = mac_addresses(form);
    let usable = check_macs(world, &macs, needs_all, &mut problems);
    let is_known = check_power_type(Some(power_type.as_str()).filter(|kind| !kind.is_empty()), &mut problems);
    if !usable && is_known && !matches!(power_type.as_str(), "" | "ipmi") {
        problems.add("power_type", format!("Can't set power type to {power_type} without network interfaces"));
    }
    let fields = Fields::read(world, form, None, &mut problems);
    problems.refuse()?;
    let fields = if call.user.is_some_and(|user| world.is_admin(user)) { fields } else { fields.of_a_user() };
    // Older releases do not know the flag and do not mind it.
    let owner = owner.filter(|_| world.version >= Version::V3_3);
    let system_id = world.fresh_system_id();
    let hostname = fields.hostname.clone().unwrap_or_else(|| world.fresh_hostname());
    let now = world.now;
    let bmc = world.next_bmc();
    let commissioning = if owner.is_some() {
        ScriptSet { id: Some(next(&mut world.counters.script_set)), status: ScriptStatus::Pending }
    } else {
        ScriptSet { id: None, status: ScriptStatus::Unknown }
    };
    let id = world.add_machine(|id| Machine {
        commissioning,
        architecture,
        power_type,
        power_parameters: power_parameters(form).unwrap_or_default(),
        bmc: Some(bmc),
        min_hwe_kernel: Some(form.get("min_hwe_kernel").unwrap_or("").to_owned()),
        owner,
        status: if owner.is_some() { Status::Deployed } else { Status::New },
        power_state: PowerState::Unknown,
        since: now,
        ..blank(id, system_id, hostname)
    });
    for (index, mac) in macs.into_iter().enumerate() {
        add_interface(world, id, index, mac);
    }
    fields.apply(world, id);
    Ok(id)
}

/// Kernels are not part of an architecture.
fn refuse_kernels(form: &Form) -> Result<(), Refusal> {
    let is_kernel = |text: &str| text.contains("hwe-") || text.contains("ga-");
    if [form.filled("architecture"), form.filled("subarchitecture")].into_iter().flatten().any(is_kernel) {
        return Err(Refusal::text(400, "hwe kernel must be specified using the min_hwe_kernel argument."));
    }
    if form.filled("min_hwe_kernel").is_some_and(|text| !is_kernel(text)) {
        return Err(Refusal::text(400, "min_hwe_kernel must start with \"hwe-\" or \"ga-\""));
    }
    Ok(())
}

/// Notes what is wrong with hardware addresses; says whether there are any and all can be used.
fn check_macs(world: &World, macs: &[String], needed: bool, problems: &mut Problems) -> bool {
    if macs.is_empty() && needed {
        problems.add("mac_addresses", "This field is required.");
    }
    let mut wrong = Vec::new();
    for mac in macs {
        let taken = world.interfaces.values().find(|interface| interface.mac == *mac && interface.kind != InterfaceKind::Unknown);
        match taken.and_then(|interface| world.machines.get(interface.machine)) {
            Some(owner) => wrong.push(format!("MAC address {mac} already in use on {}.", owner.hostname)),
            None if !is_mac(mac) => wrong.push(format!("'{mac}' is not a valid MAC address.")),
            None => {}
        }
    }
    let usable = wrong.is_empty() && !macs.is_empty();
    if macs.len() > 1 && !wrong.is_empty() {
        problems.add("mac_addresses", format!("One or more MAC addresses is invalid. ({})", wrong.join(" \u{2014} ")));
    } else {
        for words in wrong {
            problems.add("mac_addresses", words);
        }
    }
    usable
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
        params: Map::new(),
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

/// `POST machines/?op=accept`, for administrators: commissions New machines that told of themselves.
pub fn accept(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let wanted: Vec<String> = call.form.all("machines").map(str::to_owned).collect();
    let unknown: Vec<&str> = wanted.iter().filter(|name| world.machine_id(name).is_none()).map(String::as_str).collect();
    if !unknown.is_empty() {
        return Err(Refusal::text(400, format!("Unknown machine(s): {}.", unknown.join(", "))));
    }
    let ids: Vec<Id<Machine>> = wanted.iter().filter_map(|name| world.machine_id(name)).collect();
    let rows = || ids.iter().filter_map(|id| world.machines.get(*id));
    let refused: Vec<&str> =
        rows().filter(|machine| !world.may_administer(user, machine)).map(|machine| machine.system_id.as_str()).collect();
    if !refused.is_empty() {
        let words = format!("You don't have the required permission to accept the following machine(s): {}.", refused.join(", "));
        return Err(Refusal::text(403, words));
    }
    let accepted = |machine: &Machine| matches!(machine.status, Status::Ready | Status::Commissioning);
    if let Some(other) = rows().find(|machine| machine.status != Status::New && !accepted(machine)) {
        let words = format!("Cannot accept node enlistment: node {} is in state {}.", other.system_id, other.status.name());
        return Err(Refusal::text(409, words));
    }
    let fresh: Vec<Id<Machine>> = rows().filter(|machine| machine.status == Status::New).map(|machine| machine.id).collect();
    Ok(commissioned(world, user, &fresh))
}

/// `POST machines/?op=accept_all`: all New machines; none for users, who may change none.
pub fn accept_all(world: &mut World, call: &Call) -> Reply {
    let user = call.caller()?;
    let fresh = world.all_machines().filter(|machine| machine.status == Status::New && world.may_administer(user, machine));
    let fresh: Vec<Id<Machine>> = fresh.map(|machine| machine.id).collect();
    Ok(commissioned(world, user, &fresh))
}

fn commissioned(world: &mut World, user: Id<User>, machines: &[Id<Machine>]) -> Answer {
    for id in machines {
        commission::begin(world, *id, user, true);
    }
    let answered = Answer::machines(world, machines);
    for id in machines {
        commission::after_commit(world, *id);
    }
    answered
}
