//! Names in a fleet that must be the names of something else in it.

use serde_saphyr::Spanned;

use super::FleetError;
use crate::world::World;
use crate::world::dns::Domain;
use crate::world::id::Id;
use crate::world::image::Image;
use crate::world::people::User;
use crate::world::place::{Pool, Zone};

type Name = Option<Spanned<String>>;

/// The error for a name that is not among those of a list.
pub fn unknown(name: &Spanned<String>, field: &str, key: &str, list: &str) -> FleetError {
    FleetError::at(name, format!("{field}: {key}"), format!("\"{}\" is not among {list}", name.value))
}

/// The zone; the default one when none is named.
pub fn zone(world: &World, name: &Name, field: &str) -> Result<Id<Zone>, FleetError> {
    let Some(name) = name else { return Ok(Id::new(1)) };
    let found = world.zones.values().find(|zone| zone.name == name.value);
    found.map(|zone| zone.id).ok_or_else(|| unknown(name, field, "zone", "zones"))
}

/// The resource pool; the default one when none is named.
pub fn pool(world: &World, name: &Name, field: &str) -> Result<Id<Pool>, FleetError> {
    let Some(name) = name else { return Ok(Id::new(0)) };
    let found = world.pools.values().find(|pool| pool.name == name.value);
    found.map(|pool| pool.id).ok_or_else(|| unknown(name, field, "pool", "pools"))
}

/// The domain; the default one when none is named.
pub fn domain(world: &World, name: &Name, field: &str) -> Result<Id<Domain>, FleetError> {
    let Some(name) = name else {
        return Ok(world.domains.values().find(|domain| domain.is_default).map_or(Id::new(0), |domain| domain.id));
    };
    let found = world.domains.values().find(|domain| domain.name == name.value);
    found.map(|domain| domain.id).ok_or_else(|| unknown(name, field, "domain", "domains"))
}

/// The owner, if one is named.
pub fn owner(world: &World, name: &Name, field: &str) -> Result<Option<Id<User>>, FleetError> {
    let Some(name) = name else { return Ok(None) };
    world.user_named(&name.value).map(|user| Some(user.id)).ok_or_else(|| unknown(name, field, "owner", "users"))
}

/// The operating system and series of the image, if one is named.
pub fn image<'a>(world: &'a World, name: &Name, field: &str) -> Result<Option<(&'a str, &'a str)>, FleetError> {
    let Some(name) = name else { return Ok(None) };
    let named = |(system, series): &(&str, &str)| name.value.split_once('/') == Some((*system, *series));
    world.images.values().map(Image::os_and_series).find(named).map(Some).ok_or_else(|| unknown(name, field, "image", "images"))
}
