//! What names, types and settings of a fleet may look like: what the API would refuse, a fleet file must not bring in.

use std::collections::BTreeSet;

use super::FleetError;
use crate::endpoints::{self, machines};
use crate::fleet;

/// Families of machines that MAAS knows. One may be of a family it has no image for any more.
const FAMILIES: [&str; 7] = ["amd64", "arm64", "armhf", "i386", "ppc64el", "riscv64", "s390x"];

/// Refuses a system id that no path could name.
pub fn system_id(name: &str, field: &str) -> Result<(), FleetError> {
    let fine = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    refuse(!fine, field, "system_id", || format!("\"{name}\" is not made of letters and digits"))
}

/// Refuses the name of a zone or pool that MAAS would not take.
pub fn place(name: &str, list: &str) -> Result<(), FleetError> {
    let problem = || format!("\"{name}\" is not made of letters, digits and underscores, after the first also hyphens and spaces");
    refuse(!endpoints::zones::is_name(name), list, "name", problem)
}

/// Refuses the name of a tag that MAAS would not take.
pub fn tag(name: &str, field: &str) -> Result<(), FleetError> {
    let problem = || format!("\"{name}\" is not made of letters, digits, hyphens and underscores");
    if endpoints::tags::is_name(name) { Ok(()) } else { Err(FleetError::new(field, problem())) }
}

/// Refuses the name of a domain that MAAS would not take.
pub fn domain(name: &str) -> Result<(), FleetError> {
    let problems = endpoints::domains::bad_domain(name);
    refuse(!problems.is_empty(), "domains", "name", || problems.join(" "))
}

/// Refuses an architecture without its second part, or of a family nobody knows.
pub fn architecture(name: &str, field: &str) -> Result<(), FleetError> {
    let fine = name.split_once('/').is_some_and(|(family, rest)| FAMILIES.contains(&family) && !rest.is_empty() && !rest.contains('/'));
    let problem = || format!("\"{name}\" is not an architecture such as amd64/generic; there are {}", FAMILIES.join(", "));
    refuse(!fine, field, "architecture", problem)
}

/// Refuses a machine whose parts MAAS would not take.
pub fn machine(machine: &fleet::Machine, field: &str) -> Result<(), FleetError> {
    architecture(&machine.architecture, field)?;
    for name in &machine.tags {
        tag(name, &format!("{field}: tags"))?;
    }
    let kind = machine.power.kind.as_str();
    let problem = || format!("\"{kind}\" is no way to switch power; MAAS knows {}", machines::POWER_TYPES.join(", "));
    refuse(!kind.is_empty() && !machines::POWER_TYPES.contains(&kind), field, "power: type", problem)?;
    let key = machine.annotations.keys().find(|key| !machines::is_annotation_key(key));
    let problem = || format!("\"{}\" is not made of letters, digits, dots, hyphens and underscores", key.map_or("", String::as_str));
    refuse(key.is_some(), field, "annotations", problem)?;
    let mut names = BTreeSet::new();
    let twice = machine
        .interfaces
        .iter()
        .enumerate()
        .map(|(index, interface)| interface_name(interface, index))
        .find(|name| !names.insert(name.clone()));
    refuse(twice.is_some(), field, "interfaces: name", || format!("\"{}\" is there twice", twice.clone().unwrap_or_default()))
}

/// The name of an interface; by its number when none is given.
pub fn interface_name(interface: &fleet::Interface, index: usize) -> String {
    interface.name.clone().unwrap_or_else(|| format!("eth{index}"))
}

fn refuse(wrong: bool, field: &str, key: &str, problem: impl FnOnce() -> String) -> Result<(), FleetError> {
    if wrong { Err(FleetError::new(format!("{field}: {key}"), problem())) } else { Ok(()) }
}
