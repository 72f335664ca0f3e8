//! The `interfaces` constraint: `label:key=value[,key=value];label2:…`. One machine must have an interface for every label.

use std::collections::BTreeMap;

use super::specifiers::means_fabric;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::network::{Interface, Subnet};

/// What the interfaces must be like.
#[derive(Debug)]
pub struct InterfaceConstraint {
    labels: Vec<(String, Vec<(String, String)>)>,
}

/// What is asked of an interface, and may be asked not to be.
const KEYS: [&str; 12] = ["id", "fabric", "fabric_class", "ip", "name", "hostname", "subnet", "space", "subnet_cidr", "vlan", "vid", "tag"];
/// What is only asked.
const ONLY_ASKED: [&str; 3] = ["mode", "type", "link_speed"];

impl InterfaceConstraint {
    /// Reads it, or says what is wrong.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut labels: Vec<(String, Vec<(String, String)>)> = Vec::new();
        // MAAS takes a single letter for nothing.
        for part in text.split(';').filter(|_| text.len() > 1) {
            let malformed = || format!("Malformed constraint: '{part}' (required format: '<label>:<key>=<value>[,<key2>=<value2>[,...]]')");
            let (label, conditions) = part.split_once(':').ok_or_else(malformed)?;
            check_label(label)?;
            if labels.iter().any(|(other, _)| other == label) {
                return Err(format!("Constraint label defined more than once: '{label}'"));
            }
            let pair = |condition: &str| {
                let pair = condition.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
                pair.ok_or_else(|| format!("Malformed key/value pair in constraint: '{condition}'"))
            };
            labels.push((label.to_owned(), conditions.split(',').map(pair).collect::<Result<_, _>>()?));
        }
        let known = |key: &str| KEYS.contains(&key.strip_prefix("not_").unwrap_or(key)) || ONLY_ASKED.contains(&key);
        match labels.iter().flat_map(|(_, conditions)| conditions).find(|(key, _)| !known(key)) {
            Some((key, _)) => Err(format!("Unknown interfaces constraint: '{key}")),
            None => Ok(InterfaceConstraint { labels }),
        }
    }

    /// The interfaces that satisfy each label; none when the machine does not.
    pub fn assign(&self, world: &World, machine: &Machine) -> Option<BTreeMap<String, Vec<Id<Interface>>>> {
        let mut assigned = BTreeMap::new();
        for (label, conditions) in &self.labels {
            let found: Vec<Id<Interface>> = machine
                .interfaces
                .iter()
                .filter_map(|id| world.interfaces.get(*id))
                .filter(|interface| fits(world, machine, interface, conditions))
                .map(|interface| interface.id)
                .collect();
            if found.is_empty() {
                return None;
            }
            assigned.insert(label.clone(), found);
        }
        Some(assigned)
    }

    /// The constraint of one label alone.
    pub fn of(label: &str, conditions: &[(String, String)]) -> Self {
        InterfaceConstraint { labels: vec![(label.to_owned(), conditions.to_vec())] }
    }

    /// The labels and their conditions.
    pub fn labels(&self) -> &[(String, Vec<(String, String)>)] {
        &self.labels
    }
}

/// Whether a label may be called so.
fn check_label(label: &str) -> Result<(), String> {
    let begins = label.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    if begins && label.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')) {
        return Ok(());
    }
    Err(format!(
        "Invalid label name: '{label}' (Must begin with an alphanumeric character, and include only alphanumeric characters, dashes, and \
         underscores.)"
    ))
}

/// Whether an interface is as the conditions say: of several values of a key one must hold, and none of those it must not have.
fn fits(world: &World, machine: &Machine, interface: &Interface, conditions: &[(String, String)]) -> bool {
    conditions.iter().all(|(key, value)| match key.strip_prefix("not_") {
        Some(key) => !holds(world, machine, interface, key, value),
        None => conditions.iter().any(|(other, value)| other == key && holds(world, machine, interface, key, value)),
    })
}

fn holds(world: &World, machine: &Machine, interface: &Interface, key: &str, value: &str) -> bool {
    let vlan = interface.vlan.and_then(|vlan| world.vlans.get(vlan));
    let fabric = vlan.and_then(|vlan| world.fabrics.get(vlan.fabric));
    let addresses = || interface.addresses.iter().filter_map(|id| world.addresses.get(*id));
    let on = |subnets: &[Id<Subnet>]| addresses().any(|address| address.subnet.is_some_and(|subnet| subnets.contains(&subnet)));
    match key {
        "id" => interface.id.to_string() == value,
        "name" => interface.name == value,
        "type" => interface.kind.name() == value,
        "hostname" => machine.hostname == value,
        "tag" => value.split("&&").all(|tag| interface.tags.iter().any(|known| known == tag)),
        "link_speed" => value.parse().is_ok_and(|speed: u32| interface.link_speed >= speed),
        "vid" => vlan.is_some_and(|vlan| world.vlans_specified(&format!("vid:{value}")).contains(&vlan.id)),
        "vlan" => vlan.is_some_and(|vlan| world.vlans_specified(value).contains(&vlan.id)),
        "fabric" => fabric.is_some_and(|fabric| means_fabric(fabric, value)),
        "fabric_class" => fabric.is_some_and(|fabric| fabric.class_type.as_deref() == Some(value)),
        "space" => vlan.is_some_and(|vlan| world.vlans_specified(&format!("space:{value}")).contains(&vlan.id)),
        "mode" => {
            value.trim().eq_ignore_ascii_case("unconfigured") && (interface.addresses.is_empty() || addresses().any(|row| row.ip.is_none()))
        }
        "ip" => addresses().any(|address| address.ip.is_some_and(|ip| ip.to_string() == value)),
        "subnet" => on(&world.subnets_specified(value)),
        "subnet_cidr" => on(&world.subnets_specified(&format!("cidr:{value}"))),
        _ => false,
    }
}
