//! What a machine's cables lead to: VLANs, fabrics, their classes, the speed of links. Read with the other constraints.

use super::constraints::{Problems, matching, number, values};
use super::specifiers::is_beyond_tags;
use crate::http::form::Form;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::network::{Fabric, Interface, Vlan};

/// What the cables must lead to; empty lists ask for nothing.
#[derive(Debug, Default)]
pub struct WiringConstraint {
    /// To any of these.
    pub vlans: Vec<Id<Vlan>>,
    /// To none of these.
    pub not_vlans: Vec<Id<Vlan>>,
    /// To any of these, by name; a fabric that is not there leads nowhere.
    fabrics: Vec<String>,
    /// To none of these.
    not_fabrics: Vec<String>,
    /// To a fabric of any of these classes.
    classes: Vec<String>,
    /// To no fabric of these classes.
    not_classes: Vec<String>,
    /// At least so fast, in Mbit/s.
    speed: Option<f64>,
}

/// Fields both the list and an allocation know.
pub const KEYS: [&str; 7] = ["vlans", "not_vlans", "fabrics", "not_fabrics", "fabric_classes", "not_fabric_classes", "link_speed"];

impl WiringConstraint {
    /// Reads it.
    pub fn read(world: &World, form: &Form, problems: &mut Problems) -> Self {
        let mut vlans = |key: &str| {
            if form.all(key).any(is_beyond_tags) {
                problems.add(key, "VLAN tag (VID) out of range (0-4094; 0 for untagged.)");
                return Vec::new();
            }
            matching(form, key, |text| world.vlans_specified(text), "VLANs", problems)
        };
        let (wanted, unwanted) = (vlans("vlans"), vlans("not_vlans"));
        WiringConstraint {
            vlans: wanted,
            not_vlans: unwanted,
            fabrics: values(form, "fabrics"),
            not_fabrics: values(form, "not_fabrics"),
            classes: values(form, "fabric_classes"),
            not_classes: values(form, "not_fabric_classes"),
            speed: number(form, "link_speed", "Invalid link speed: number required.", problems),
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
    }

    /// Whether a machine is wired so.
    pub fn matches(&self, world: &World, machine: &Machine) -> bool {
        if self.is_empty() {
            return true;
        }
        let interfaces: Vec<&Interface> = machine.interfaces.iter().filter_map(|id| world.interfaces.get(*id)).collect();
        let vlans: Vec<&Vlan> = interfaces.iter().filter_map(|interface| world.vlans.get(interface.vlan?)).collect();
        let fabrics: Vec<&Fabric> = vlans.iter().filter_map(|vlan| world.fabrics.get(vlan.fabric)).collect();
        let on_vlan = |wanted: &[Id<Vlan>]| vlans.iter().any(|vlan| wanted.contains(&vlan.id));
        let on_fabric = |wanted: &[String]| fabrics.iter().any(|fabric| wanted.contains(&fabric.name));
        let in_class =
            |wanted: &[String]| fabrics.iter().filter_map(|fabric| fabric.class_type.as_ref()).any(|class| wanted.contains(class));
        (self.vlans.is_empty() || on_vlan(&self.vlans))
            && !on_vlan(&self.not_vlans)
            && (self.fabrics.is_empty() || on_fabric(&self.fabrics))
            && !on_fabric(&self.not_fabrics)
            && (self.classes.is_empty() || in_class(&self.classes))
            && !in_class(&self.not_classes)
            && self.speed.is_none_or(|least| interfaces.iter().any(|interface| f64::from(interface.link_speed) >= least))
    }
}
