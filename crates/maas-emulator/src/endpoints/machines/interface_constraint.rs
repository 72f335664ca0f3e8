//! The `interfaces` constraint: `label:key=value[,key=value];label2:…`. One machine must have an interface for every label.

use std::collections::BTreeMap;

use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::network::{Address, AddressKind, Interface};

/// What the interfaces must be like.
#[derive(Debug)]
pub struct InterfaceConstraint {
    labels: Vec<(String, Vec<(String, String)>)>,
}

const KEYS: [&str; 16] = [
    "id",
    "fabric",
    "fabric_class",
    "ip",
    "mode",
    "name",
    "hostname",
    "subnet",
    "space",
    "subnet_cidr",
    "type",
    "vlan",
    "vid",
    "tag",
    "link_speed",
    "cidr",
];

impl InterfaceConstraint {
    /// Reads it, or says what is wrong.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut labels = Vec::new();
        for part in text.split(';').filter(|part| !part.trim().is_empty()) {
            let malformed = || format!("Malformed constraint: '{part}' (required format: '<label>:<key>=<value>[,<key2>=<value2>[,...]]')");
            let (label, conditions) = part.split_once(':').ok_or_else(malformed)?;
            let mut pairs = Vec::new();
            for condition in conditions.split(',') {
                let (key, value) = condition.split_once('=').ok_or_else(malformed)?;
                if !KEYS.contains(&key.strip_prefix("not_").unwrap_or(key)) {
                    return Err(format!("Unknown interfaces constraint: '{key}"));
                }
                pairs.push((key.to_owned(), value.to_owned()));
            }
            labels.push((label.trim().to_owned(), pairs));
        }
        Ok(InterfaceConstraint { labels })
    }

    /// The interfaces that satisfy each label; none when the machine does not.
    pub fn assign(&self, world: &World, machine: &Machine) -> Option<BTreeMap<String, Vec<Id<Interface>>>> {
        let mut assigned = BTreeMap::new();
        for (label, conditions) in &self.labels {
            let found: Vec<Id<Interface>> = machine
                .interfaces
                .iter()
                .filter_map(|id| world.interfaces.get(*id))
                .filter(|interface| conditions.iter().all(|(key, value)| holds(world, machine, interface, key, value)))
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

fn holds(world: &World, machine: &Machine, interface: &Interface, key: &str, value: &str) -> bool {
    if let Some(key) = key.strip_prefix("not_") {
        return !holds(world, machine, interface, key, value);
    }
    let vlan = interface.vlan.and_then(|vlan| world.vlans.get(vlan));
    let fabric = vlan.and_then(|vlan| world.fabrics.get(vlan.fabric));
    let links: Vec<&Address> = interface
        .addresses
        .iter()
        .filter_map(|id| world.addresses.get(*id))
        .filter(|address| address.kind != AddressKind::Discovered)
        .collect();
    match key {
        "id" => interface.id.to_string() == value,
        "name" => interface.name == value,
        "type" => interface.kind.name() == value,
        "hostname" => machine.hostname == value,
        "tag" => interface.tags.iter().any(|tag| tag == value),
        "link_speed" => value.parse().is_ok_and(|speed: u32| interface.link_speed >= speed),
        "vid" => vlan.is_some_and(|vlan| vlan.vid.to_string() == value),
        "vlan" => vlan.is_some_and(|vlan| vlan.name == value || vlan.id.to_string() == value || vlan.vid.to_string() == value),
        "fabric" => fabric.is_some_and(|fabric| fabric.name == value || fabric.id.to_string() == value),
        "fabric_class" => fabric.is_some_and(|fabric| fabric.class_type.as_deref() == Some(value)),
        "space" => {
            vlan.and_then(|vlan| world.spaces.get(vlan.space?)).is_some_and(|space| space.name == value || space.id.to_string() == value)
        }
        "mode" => links.iter().any(|link| link.mode() == value || (value == "unconfigured" && link.mode() == "link_up")),
        "ip" => links.iter().any(|link| link.ip.is_some_and(|ip| ip.to_string() == value)),
        "subnet" | "subnet_cidr" | "cidr" => {
            let wanted = world.subnet_specified(value).or_else(|| world.subnet_specified(&format!("cidr:{value}")));
            links.iter().any(|link| link.subnet.is_some() && link.subnet == wanted)
        }
        _ => false,
    }
}
