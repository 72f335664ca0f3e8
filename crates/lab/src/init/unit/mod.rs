//! Unit files: names, syntax, precedence, meaning. Pure but for reading files; the supervisor runs what stands here.

pub mod command;
pub mod condition;
pub mod definition;
pub mod environment;
pub mod file;
pub mod install;
pub mod load;
pub mod name;
pub mod preset;
pub mod service;
pub mod span;
pub mod specifier;
pub mod words;

pub use definition::Definition;
pub use load::LoadState;
pub use name::{InvalidUnitName, UnitKind, UnitName};

use crate::init::layout::Layout;

/// Loads a unit and gives it its meaning.
pub fn read(layout: &Layout, name: &UnitName, machine: &specifier::Machine) -> Definition {
    let mut source = load::load(layout, name);
    let vendor = source
        .fragment
        .as_ref()
        .is_some_and(|path| !path.starts_with(layout.administrator_units()) && !path.starts_with(layout.runtime_units()));
    if vendor && name.kind() == UnitKind::Target {
        // Targets of the distribution speak of the services of the host; here they are names to order by and to hang links on.
        source.assignments.retain(|assignment| assignment.key == "Description" || assignment.section == "Install");
    }
    definition::define(source, machine)
}
