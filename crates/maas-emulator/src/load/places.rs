//! People, zones, pools, domains, tags and images of a fleet.

use serde_saphyr::Spanned;

use super::{FleetError, free, spelling, unwritten};
use crate::endpoints::configuration;
use crate::fleet::{self, Fleet};
use crate::http::oauth;
use crate::world::World;
use crate::world::dns::Domain;
use crate::world::image::{Image, ImageFile, ImageSet};
use crate::world::people::{Token, User};
use crate::world::place::{Pool, Tag, Zone};

pub fn settings(world: &mut World, fleet: &Fleet) -> Result<(), FleetError> {
    let defaults = [
        ("default_distro_series", serde_json::json!("noble")),
        ("default_osystem", serde_json::json!("ubuntu")),
        ("node_timeout", serde_json::json!(30)),
        ("enable_disk_erasing_on_release", serde_json::json!(false)),
        ("maas_name", serde_json::json!("emulator")),
    ];
    world.settings.extend(defaults.map(|(name, value)| (name.to_owned(), value)));
    for (name, place) in &fleet.settings {
        let value = configuration::setting(world, name, &place.value);
        let value = value.map_err(|problem| FleetError::at(place, format!("settings: {name}"), problem))?;
        world.settings.insert(name.clone(), value);
    }
    Ok(())
}

impl Fleet {
    /// Fails at the first key that everybody can read: nobody else may deploy to machines that really boot.
    pub fn refuse_published_keys(&self) -> Result<(), FleetError> {
        let mut keys = self.users.iter().flat_map(|user| user.value.keys.iter().map(move |key| (user, key)));
        let Some((user, key)) = keys.find(|(_, key)| Self::is_published(&key.value.key)) else { return Ok(()) };
        let problem = "this key comes with the emulator, so everybody has it, and whoever has it is root where machines boot: leave `keys` \
                       out to get a key that nobody can guess, or write another one";
        Err(FleetError::at(key, format!("users: {}: keys", user.value.name), problem))
    }
}

pub fn users(world: &mut World, fleet: &Fleet) -> Result<(), FleetError> {
    let default = [unwritten(fleet::User {
        name: "admin".into(),
        superuser: true,
        keys: vec![unwritten(fleet::Key { name: None, key: Fleet::DEFAULT_KEY.into() })],
        ..fleet::User::default()
    })];
    let users = if fleet.users.is_empty() { &default[..] } else { &fleet.users };
    once(users, |user| &user.name, "users")?;
    for user in users.iter().map(|place| &place.value) {
        let field = format!("users: {}: keys", user.name);
        let id = world.users.add(None, |id| User {
            id,
            name: user.name.clone(),
            email: user.email.clone().unwrap_or_else(|| format!("{}@example.com", user.name)),
            superuser: user.superuser,
        });
        for key in &user.keys {
            let parts: Vec<&str> = key.value.key.split(':').collect();
            let [consumer, token, secret] = parts[..] else {
                return Err(FleetError::at(key, field, "an API key has three parts with colons between them: consumer:token:secret"));
            };
            if parts.iter().any(|part| part.is_empty()) {
                return Err(FleetError::at(key, field, "a part of the API key is empty: it is consumer:token:secret"));
            }
            if let Some(other) = world.tokens.iter().find(|other| other.consumer == consumer && other.token == token) {
                let problem = format!("{} has an API key of the same consumer and token", world.user_name(other.user));
                return Err(FleetError::at(key, field, problem));
            }
            world.tokens.push(Token {
                user: id,
                name: key.value.name.clone().unwrap_or_else(|| "MAAS consumer".into()),
                consumer: consumer.into(),
                token: token.into(),
                secret: secret.into(),
            });
        }
        if user.keys.is_empty() {
            oauth::new_token(world, id, "MAAS consumer").map_err(|error| FleetError::new(field, format!("could not make one: {error}")))?;
        }
    }
    Ok(())
}

/// Refuses two of one name, and one without a name.
pub fn once<T>(places: &[Spanned<T>], name: impl Fn(&T) -> &String, field: &str) -> Result<(), FleetError> {
    let mut seen = std::collections::BTreeSet::new();
    for place in places {
        let name = name(&place.value);
        let wrong = |problem: String| Err(FleetError::at(place, format!("{field}: name"), problem));
        if name.is_empty() {
            return wrong("it has none".into());
        }
        if !seen.insert(name) {
            return wrong(format!("\"{name}\" is there twice"));
        }
    }
    Ok(())
}

pub fn zones_and_pools(world: &mut World, fleet: &Fleet) -> Result<(), FleetError> {
    once(&fleet.zones, |zone| &zone.name, "zones")?;
    once(&fleet.pools, |pool| &pool.name, "pools")?;
    if !fleet.zones.iter().any(|zone| zone.value.name == "default") {
        world.zones.add(Some(1), |id| Zone { id, name: "default".into(), description: String::new() });
    }
    for place in &fleet.zones {
        let zone = &place.value;
        spelling::place(&zone.name, "zones").map_err(|error| error.within(place))?;
        free(&world.zones, zone.id, "zones").map_err(|error| error.within(place))?;
        world.zones.add(zone.id, |id| Zone { id, name: zone.name.clone(), description: zone.description.clone() });
    }
    if !fleet.pools.iter().any(|pool| pool.value.name == "default") {
        world.pools.add(Some(0), |id| Pool { id, name: "default".into(), description: "Default pool".into() });
    }
    for place in &fleet.pools {
        let pool = &place.value;
        spelling::place(&pool.name, "pools").map_err(|error| error.within(place))?;
        free(&world.pools, pool.id, "pools").map_err(|error| error.within(place))?;
        world.pools.add(pool.id, |id| Pool { id, name: pool.name.clone(), description: pool.description.clone() });
    }
    Ok(())
}

pub fn domains(world: &mut World, fleet: &Fleet) -> Result<(), FleetError> {
    let default = [unwritten(fleet::Domain { name: "maas".into(), ..fleet::Domain::default() })];
    let domains = if fleet.domains.is_empty() { &default[..] } else { &fleet.domains };
    once(domains, |domain| &domain.name, "domains")?;
    for (index, place) in domains.iter().enumerate() {
        let domain = &place.value;
        spelling::domain(&domain.name).map_err(|error| error.within(place))?;
        free(&world.domains, domain.id, "domains").map_err(|error| error.within(place))?;
        world.domains.add(domain.id, |id| Domain {
            id,
            name: domain.name.clone(),
            authoritative: domain.authoritative.unwrap_or(true),
            ttl: domain.ttl,
            is_default: index == 0,
        });
    }
    Ok(())
}

/// The files a synced image has; their names and digests are made up.
fn synced_files(world: &mut World) -> Vec<ImageFile> {
    let first = world.next_image_file();
    (first..)
        .zip(["squashfs", "boot-initrd", "boot-kernel"])
        .map(|(id, filetype)| {
            let (name, digest) = (world.random.key(6), format!("{}{}", world.random.uuid(), world.random.uuid()).replace('-', ""));
            ImageFile {
                id,
                filename: format!("name-{name}"),
                filetype: filetype.into(),
                sha256: digest,
                size: 512,
                received: 512,
                digest: None,
            }
        })
        .collect()
}

pub fn tags_and_images(world: &mut World, fleet: &Fleet) -> Result<(), FleetError> {
    once(&fleet.tags, |tag| &tag.name, "tags")?;
    for place in &fleet.tags {
        let tag = &place.value;
        spelling::tag(&tag.name, "tags: name").map_err(|error| error.within(place))?;
        world.tags.add(None, |id| Tag {
            id,
            name: tag.name.clone(),
            comment: tag.comment.clone(),
            definition: tag.definition.clone(),
            kernel_opts: tag.kernel_opts.clone(),
        });
    }
    let synced = |name: &str, kernel: &str, title: &str| {
        unwritten(fleet::Image {
            name: format!("ubuntu/{name}"),
            architecture: format!("amd64/{kernel}"),
            title: Some(title.into()),
            ..fleet::Image::default()
        })
    };
    let default = [synced("jammy", "ga-22.04", "22.04 LTS"), synced("noble", "ga-24.04", "24.04 LTS")];
    for place in if fleet.images.is_empty() { &default[..] } else { &fleet.images } {
        let image = &place.value;
        free(&world.images, image.id, "images").map_err(|error| error.within(place))?;
        let field = format!("images: {}", image.name);
        spelling::architecture(&image.architecture, &field).map_err(|error| error.within(place))?;
        let same = |other: &Image| (&other.name, &other.architecture, other.uploaded) == (&image.name, &image.architecture, image.uploaded);
        if image.name.is_empty() || world.images.values().any(same) {
            let problem = if image.name.is_empty() { "it has none" } else { "it is there twice for one architecture" };
            return Err(FleetError::at(place, "images: name", problem));
        }
        let kernel = image.architecture.split_once('/').map_or("generic", |(_, kernel)| kernel);
        let subarches =
            image.subarches.clone().unwrap_or_else(|| if image.uploaded { String::new() } else { format!("generic,hwe-p,hwe-q,{kernel}") });
        let files = if image.uploaded { Vec::new() } else { synced_files(world) };
        world.images.add(image.id, |id| Image {
            id,
            name: image.name.clone(),
            architecture: image.architecture.clone(),
            uploaded: image.uploaded,
            title: image.title.clone(),
            base_image: image.base_image.clone(),
            subarches,
            last_deployed: None,
            sets: vec![ImageSet { version: "20260801".into(), files }],
        });
    }
    Ok(())
}
