//! From a fleet to a world: defaults are filled in, names become ids, contradictions become one line that says where.

mod interfaces;
mod machines;
mod named;
mod networks;
mod places;
mod spelling;
mod vm_hosts;

use jiff::Timestamp;
use serde_path_to_error::{Path, Segment};
use serde_saphyr::{Location, Spanned};

use crate::fleet::Fleet;
use crate::world::World;
use crate::world::id::{Id, Table};
pub use machines::{blank, tag_named};

/// What is wrong with a fleet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{field}: {problem}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct FleetError {
    /// The line of the file, when it came from one.
    pub line: Option<u64>,
    /// The field.
    pub field: String,
    /// What is wrong and what would be right.
    pub problem: String,
}

impl FleetError {
    fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        FleetError { line: None, field: field.into(), problem: problem.into() }
    }

    fn at<T>(place: &Spanned<T>, field: impl Into<String>, problem: impl Into<String>) -> Self {
        let line = place.referenced.line();
        FleetError { line: (line > 0).then_some(line), field: field.into(), problem: problem.into() }
    }

    /// The error with the line of what it is in, unless it knows a better one.
    fn within<T>(self, place: &Spanned<T>) -> Self {
        FleetError { line: self.line.or(FleetError::at(place, "", "").line), ..self }
    }
}

/// A value that is in no file.
fn unwritten<T>(value: T) -> Spanned<T> {
    Spanned::new(value, Location::UNKNOWN, Location::UNKNOWN)
}

/// The largest id MAAS's database has room for.
const LARGEST_ID: u32 = i32::MAX as u32;

/// Refuses an id that no row can have.
fn possible(id: u32, field: &str) -> Result<(), FleetError> {
    let problem = || format!("{id} is more than {LARGEST_ID}, the largest id there is");
    if id > LARGEST_ID { Err(FleetError::new(format!("{field}: id"), problem())) } else { Ok(()) }
}

/// Refuses an id that something of its kind has already.
fn free<Row>(table: &Table<Row>, wished: Option<u32>, field: &str) -> Result<(), FleetError> {
    let Some(id) = wished else { return Ok(()) };
    possible(id, field)?;
    if table.get(Id::new(id)).is_some() {
        return Err(FleetError::new(format!("{field}: id"), format!("{id} is the id of another one too")));
    }
    Ok(())
}

impl Fleet {
    /// Reads a fleet file.
    pub fn from_yaml(text: &str) -> Result<Self, FleetError> {
        if text.trim().is_empty() {
            return Ok(Fleet::default());
        }
        let mut field = String::new();
        serde_saphyr::with_deserializer_from_str(text, |deserializer| {
            serde_path_to_error::deserialize(deserializer).map_err(|error| {
                field = field_at(error.path());
                error.into_inner()
            })
        })
        .map_err(|error| {
            let line = error.location().map(|location| location.line());
            let field = if field.is_empty() { "fleet".to_owned() } else { field };
            FleetError { line, field, problem: problem(&error.to_string()) }
        })
    }
}

/// The field as other errors name it: `machines: number 2: cpus`.
fn field_at(path: &Path) -> String {
    let named = |segment: &Segment| match segment {
        Segment::Seq { index } => Some(format!("number {}", index + 1)),
        // What knows its line is wrapped for that; the file shows nothing of it.
        Segment::Map { key } if key == "value" => None,
        Segment::Map { key } => Some(key.clone()),
        Segment::Enum { variant } => Some(variant.clone()),
        Segment::Unknown => None,
    };
    path.iter().filter_map(named).collect::<Vec<_>>().join(": ")
}

/// What is wrong, in one line and without the place, which is told already.
fn problem(words: &str) -> String {
    let without_place = |line: &str| -> Option<String> {
        let line = line.trim();
        let line = line.strip_prefix("error: ").unwrap_or(line);
        let line = if line.starts_with("line ") { line.split_once(": ")?.1 } else { line };
        (!line.is_empty()).then(|| line.to_owned())
    };
    let words = words.lines().find_map(without_place).unwrap_or_else(|| "this is not a fleet".to_owned());
    let largest = match words.as_str() {
        "invalid u16" => u16::MAX.to_string(),
        "invalid u32" => u32::MAX.to_string(),
        "invalid u64" => u64::MAX.to_string(),
        _ => return words,
    };
    format!("this is not a whole number from 0 to {largest}")
}

/// The world a fleet describes.
pub fn world(fleet: Fleet, now: Timestamp, seed: u64, unguessable_keys: bool) -> Result<World, FleetError> {
    let mut world = World::empty(fleet.version, now, seed);
    world.unguessable_keys = unguessable_keys;
    world.timings = fleet.timings;
    world.thin_storage = fleet.thin_storage;
    places::users(&mut world, &fleet)?;
    places::zones_and_pools(&mut world, &fleet)?;
    places::domains(&mut world, &fleet)?;
    networks::networks(&mut world, &fleet)?;
    places::tags_and_images(&mut world, &fleet)?;
    // Some settings name images.
    places::settings(&mut world, &fleet)?;
    let mut macs = std::collections::BTreeMap::new();
    machines::rack(&mut world, &fleet, &mut macs)?;
    machines::machines(&mut world, &fleet, &mut macs)?;
    vm_hosts::vm_hosts(&mut world, &fleet)?;
    vm_hosts::events(&mut world, &fleet)?;
    for place in fleet.faults {
        let aimed = world.aimed(place.value.clone()).map_err(|unknown| FleetError::at(&place, "faults", unknown.to_string()))?;
        world.inject(aimed);
    }
    Ok(world)
}
