//! What a machine's cables lead to: VLANs, fabrics, their classes, the speed of links. Read with the other constraints.

use super::constraints::{Problems, named, number, values};
use crate::http::form::Form;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::network::{Fabric, Interface, Vlan};

/// What the cables must lead to; empty lists ask for nothing.
#[derive(Debug, Default)]
pub struct WiringConstraint {
    /// To all of these.
    vlans: Vec<Id<Vlan>>,
    /// To none of these.
    not_vlans: Vec<Id<Vlan>>,
    /// To any of these.
    fabrics: Vec<Id<Fabric>>,
    /// To none of these.
    not_fabrics: Vec<Id<Fabric>>,
    /// To a fabric of any of these classes.
    classes: Vec<String>,
    /// To no fabric of these classes.
    not_classes: Vec<String>,
    /// At least so fast, in Mbit/s.
    speed: Option<f64>,
    /// With none of these speeds.
    not_speeds: Vec<u32>,
}

/// Fields both the list and an allocation know.
pub const KEYS: [&str; 8] =
    ["vlans", "not_vlans", "fabrics", "not_fabrics", "fabric_classes", "not_fabric_classes", "link_speed", "not_link_speed"];

const NO_SPEED: &str = "Invalid link speed: number required.";

impl WiringConstraint {
    /// Reads it.
    pub fn read(world: &World, form: &Form, problems: &mut Problems) -> Self {
        let vlan = |text: &str| vlan_specified(world, text);
        let fabric = |text: &str| fabric_specified(world, text);
        let mut not_speeds = Vec::new();
        for text in values(form, "not_link_speed") {
            match text.trim().parse() {
                Ok(speed) => not_speeds.push(speed),
                Err(_) => problems.add("not_link_speed", NO_SPEED),
            }
        }
        WiringConstraint {
            vlans: named(values(form, "vlans"), vlan, "vlans", false, "vlan", problems),
            not_vlans: named(values(form, "not_vlans"), vlan, "not_vlans", false, "vlan", problems),
            fabrics: named(values(form, "fabrics"), fabric, "fabrics", false, "fabric", problems),
            not_fabrics: named(values(form, "not_fabrics"), fabric, "not_fabrics", false, "fabric", problems),
            classes: values(form, "fabric_classes"),
            not_classes: values(form, "not_fabric_classes"),
            speed: number(form, "link_speed", NO_SPEED, problems),
            not_speeds,
        }
    }

    /// Whether it asks for nothing, as almost always.
    fn is_empty(&self) -> bool {
        self.vlans.is_empty()
            && self.not_vlans.is_empty()
            && self.fabrics.is_empty()
            && self.not_fabrics.is_empty()
            && self.classes.is_empty()
            && self.not_classes.is_empty()
            && self.speed.is_none()
            && self.not_speeds.is_empty()
    }

    /// Whether a machine is wired so.
    pub fn matches(&self, world: &World, machine: &Machine) -> bool {
        if self.is_empty() {
            return true;
        }
        let interfaces: Vec<&Interface> = machine.interfaces.iter().filter_map(|id| world.interfaces.get(*id)).collect();
        let vlans: Vec<&Vlan> = interfaces.iter().filter_map(|interface| world.vlans.get(interface.vlan?)).collect();
        let fabrics: Vec<&Fabric> = vlans.iter().filter_map(|vlan| world.fabrics.get(vlan.fabric)).collect();
        let on_vlan = |wanted: &Id<Vlan>| vlans.iter().any(|vlan| vlan.id == *wanted);
        let on_fabric = |wanted: &Id<Fabric>| fabrics.iter().any(|fabric| fabric.id == *wanted);
        let in_class = |wanted: &String| fabrics.iter().any(|fabric| fabric.class_type.as_ref() == Some(wanted));
        self.vlans.iter().all(on_vlan)
            && !self.not_vlans.iter().any(on_vlan)
            && (self.fabrics.is_empty() || self.fabrics.iter().any(on_fabric))
            && !self.not_fabrics.iter().any(on_fabric)
            && (self.classes.is_empty() || self.classes.iter().any(in_class))
            && !self.not_classes.iter().any(in_class)
            && self.speed.is_none_or(|least| interfaces.iter().any(|interface| f64::from(interface.link_speed) >= least))
            && !interfaces.iter().any(|interface| self.not_speeds.contains(&interface.link_speed))
    }
}

/// The VLAN a specifier means: `id:`, `vid:`, `name:`, an id or a name.
fn vlan_specified(world: &World, text: &str) -> Option<Id<Vlan>> {
    let find = |wanted: &dyn Fn(&Vlan) -> bool| world.vlans.values().find(|vlan| wanted(vlan)).map(|vlan| vlan.id);
    match text.split_once(':') {
        Some(("id", id)) => find(&|vlan| vlan.id.to_string() == id),
        Some(("vid", vid)) => find(&|vlan| vlan.vid.to_string() == vid),
        Some(("name", name)) => find(&|vlan| vlan.name == name),
        _ => find(&|vlan| vlan.id.to_string() == text).or_else(|| find(&|vlan| vlan.name == text)),
    }
}

/// The fabric a specifier means: `id:`, `name:`, an id or a name.
fn fabric_specified(world: &World, text: &str) -> Option<Id<Fabric>> {
    let find = |wanted: &dyn Fn(&Fabric) -> bool| world.fabrics.values().find(|fabric| wanted(fabric)).map(|fabric| fabric.id);
    match text.split_once(':') {
        Some(("id", id)) => find(&|fabric| fabric.id.to_string() == id),
        Some(("name", name)) => find(&|fabric| fabric.name == name),
        _ => find(&|fabric| fabric.id.to_string() == text).or_else(|| find(&|fabric| fabric.name == text)),
    }
}
