//! Fields that interfaces of several kinds have, read from a form and checked before anything is changed.

use serde_json::{Value, json};

use crate::endpoints::machines::is_mac;
use crate::http::answer::Refusal;
use crate::http::call::Call;
use crate::world::World;
use crate::world::id::Id;
use crate::world::network::{Interface, InterfaceKind};

/// The least MTU Linux knows.
const LEAST_MTU: u32 = 552;

/// A new value of an option, or that it goes back to what it is without one.
pub type Change = (&'static str, Option<Value>);

/// A hardware address, two lower-case digits a part with colons between them.
pub fn mac(call: &Call) -> Result<Option<String>, Refusal> {
    let Some(text) = call.form.filled("mac_address") else { return Ok(None) };
    if !is_mac(text) {
        return Err(Refusal::field("mac_address", format!("'{text}' is not a valid MAC address.")));
    }
    let parts: Vec<String> = text.split([':', '-']).map(|part| format!("{part:0>2}").to_ascii_lowercase()).collect();
    Ok(Some(parts.join(":")))
}

/// Refuses the hardware address of another card.
pub fn refuse_taken_mac(world: &World, mac: &str, own: Option<Id<Interface>>) -> Result<(), Refusal> {
    let taken = |row: &Interface| row.kind == InterfaceKind::Physical && row.mac == mac && Some(row.id) != own;
    if world.interfaces.values().any(taken) {
        return Err(Refusal::field("mac_address", format!("This MAC address is already in use by {mac}.")));
    }
    Ok(())
}

/// A whole number within bounds.
pub fn number(call: &Call, key: &str, least: u32, most: u32) -> Result<Option<u32>, Refusal> {
    let Some(text) = call.form.filled(key) else { return Ok(None) };
    let number: i128 = text.trim().parse().map_err(|_| Refusal::field(key, "Enter a whole number."))?;
    if number < i128::from(least) {
        return Err(Refusal::field(key, format!("Ensure this value is greater than or equal to {least}.")));
    }
    match u32::try_from(number) {
        Ok(number) if number <= most => Ok(Some(number)),
        _ => Err(Refusal::field(key, format!("Ensure this value is less than or equal to {most}."))),
    }
}

/// One of several words.
pub fn choice(call: &Call, key: &str, choices: &[&str]) -> Result<Option<String>, Refusal> {
    let Some(text) = call.form.filled(key) else { return Ok(None) };
    if !choices.contains(&text) {
        return Err(Refusal::field(key, no_choice(key, text, choices)));
    }
    Ok(Some(text.to_owned()))
}

/// MAAS's words for what is none of several.
pub fn no_choice(key: &str, text: &str, choices: &[&str]) -> String {
    let listed: Vec<String> = choices.iter().map(|choice| format!("'{choice}'")).collect();
    format!("'{text}' is not a valid {key}.  It should be one of: {}.", listed.join(", "))
}

/// A yes or no of a form, which takes everything else for neither.
pub fn flag(call: &Call, key: &str) -> Option<bool> {
    match call.form.get(key)? {
        "true" | "True" | "1" => Some(true),
        "false" | "False" | "0" => Some(false),
        _ => None,
    }
}

/// The options every interface has.
pub fn options(call: &Call) -> Result<Vec<Change>, Refusal> {
    let mut changes = Vec::new();
    if call.form.has("mtu") {
        changes.push(("mtu", number(call, "mtu", LEAST_MTU, i32::MAX as u32)?.map(Value::from)));
    }
    if let Some(accept) = flag(call, "accept_ra") {
        changes.push(("accept_ra", Some(json!(accept))));
    }
    Ok(changes)
}

/// Writes options down.
pub fn apply(params: &mut serde_json::Map<String, Value>, changes: Vec<Change>) {
    for (key, value) in changes {
        match value {
            Some(value) => params.insert(key.to_owned(), value),
            None => params.remove(key),
        };
    }
}

/// What is known of the cable, and how fast it is.
pub struct Cable {
    connected: Option<bool>,
    link_speed: Option<u32>,
    interface_speed: Option<u32>,
}

impl Cable {
    /// Reads it; a link that is not connected has no speed.
    pub fn read(call: &Call, is_connected: bool) -> Result<Self, Refusal> {
        let speed = |key| number(call, key, 0, i32::MAX as u32);
        let cable =
            Cable { connected: flag(call, "link_connected"), link_speed: speed("link_speed")?, interface_speed: speed("interface_speed")? };
        if !cable.connected.unwrap_or(is_connected) && cable.link_speed.is_some_and(|speed| speed > 0) {
            return Err(Refusal::field("__all__", "link_speed cannot be set when link_connected is false."));
        }
        Ok(cable)
    }

    /// Writes it down.
    pub fn apply(&self, row: &mut Interface) {
        row.link_connected = self.connected.unwrap_or(row.link_connected);
        row.link_speed = self.link_speed.unwrap_or(row.link_speed);
        row.interface_speed = self.interface_speed.unwrap_or(row.interface_speed);
    }
}
