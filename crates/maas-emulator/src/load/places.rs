//! Everything of a fleet that is not a machine.

use std::net::IpAddr;

use ipnet::IpNet;

use super::FleetError;
use crate::fleet::{self, Fleet, RangeKind};
use crate::http::oauth;
use crate::world::World;
use crate::world::dns::Domain;
use crate::world::id::Id;
use crate::world::image::{Image, ImageFile};
use crate::world::network::{Fabric, Gateway, Range, Space, Subnet, Vlan};
use crate::world::people::{Token, User};
use crate::world::place::{Pool, Tag, Zone};

pub fn settings(world: &mut World, fleet: &Fleet) {
    let defaults = [
        ("default_distro_series", serde_json::json!("noble")),
        ("default_osystem", serde_json::json!("ubuntu")),
        ("node_timeout", serde_json::json!(30)),
        ("enable_disk_erasing_on_release", serde_json::json!(false)),
        ("maas_name", serde_json::json!("emulator")),
    ];
    world.settings.extend(defaults.map(|(name, value)| (name.to_owned(), value)));
    world.settings.extend(fleet.settings.clone());
}

pub fn users(world: &mut World, fleet: &Fleet) -> Result<(), FleetError> {
    let default = [fleet::User {
        name: "admin".into(),
        superuser: true,
        keys: vec![fleet::Key { name: None, key: Fleet::DEFAULT_KEY.into() }],
        ..fleet::User::default()
    }];
    let users = if fleet.users.is_empty() { &default[..] } else { &fleet.users };
    for user in users {
        let id = world.users.add(None, |id| User {
            id,
            name: user.name.clone(),
            email: user.email.clone().unwrap_or_else(|| format!("{}@example.com", user.name)),
            superuser: user.superuser,
        });
        for key in &user.keys {
            let mut parts = key.key.split(':');
            let (Some(consumer), Some(token), Some(secret), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
                return Err(FleetError::new(
                    format!("users: {}: keys", user.name),
                    "an API key has three parts with colons between them: consumer:token:secret",
                ));
            };
            world.tokens.push(Token {
                user: id,
                name: key.name.clone().unwrap_or_else(|| "MAAS consumer".into()),
                consumer: consumer.into(),
                token: token.into(),
                secret: secret.into(),
            });
        }
        if user.keys.is_empty() {
            oauth::new_token(world, id, "MAAS consumer");
        }
    }
    Ok(())
}

/// Refuses two of one name.
fn once<'a>(names: impl Iterator<Item = &'a str>, field: &str) -> Result<(), FleetError> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(FleetError::new(field, format!("\"{name}\" is there twice")));
        }
    }
    Ok(())
}

pub fn zones_and_pools(world: &mut World, fleet: &Fleet) -> Result<(), FleetError> {
    once(fleet.zones.iter().map(|zone| zone.name.as_str()), "zones")?;
    once(fleet.pools.iter().map(|pool| pool.name.as_str()), "pools")?;
    once(fleet.users.iter().map(|user| user.name.as_str()), "users")?;
    once(fleet.domains.iter().map(|domain| domain.name.as_str()), "domains")?;
    if !fleet.zones.iter().any(|zone| zone.name == "default") {
        world.zones.add(Some(1), |id| Zone { id, name: "default".into(), description: String::new() });
    }
    for zone in &fleet.zones {
        world.zones.add(zone.id, |id| Zone { id, name: zone.name.clone(), description: zone.description.clone() });
    }
    if !fleet.pools.iter().any(|pool| pool.name == "default") {
        world.pools.add(Some(0), |id| Pool { id, name: "default".into(), description: "Default pool".into() });
    }
    for pool in &fleet.pools {
        world.pools.add(pool.id, |id| Pool { id, name: pool.name.clone(), description: pool.description.clone() });
    }
    Ok(())
}

pub fn domains(world: &mut World, fleet: &Fleet) {
    let default = [fleet::Domain { name: "maas".into(), ..fleet::Domain::default() }];
    let domains = if fleet.domains.is_empty() { &default[..] } else { &fleet.domains };
    for (index, domain) in domains.iter().enumerate() {
        world.domains.add(domain.id, |id| Domain {
            id,
            name: domain.name.clone(),
            authoritative: domain.authoritative.unwrap_or(true),
            ttl: domain.ttl,
            is_default: index == 0,
        });
    }
}

pub fn networks(world: &mut World, fleet: &Fleet) -> Result<(), FleetError> {
    for space in &fleet.spaces {
        world.spaces.add(space.id, |id| Space { id, name: space.name.clone(), description: String::new() });
    }
    let default = [fleet::Fabric::default()];
    for fabric in if fleet.fabrics.is_empty() { &default[..] } else { &fleet.fabrics } {
        add_fabric(world, fabric)?;
    }
    let first_vlan = world.vlans.iter().map(|(id, _)| id).next();
    let default = [default_subnet()];
    for subnet in if fleet.subnets.is_empty() { &default[..] } else { &fleet.subnets } {
        add_subnet(world, subnet, first_vlan)?;
    }
    Ok(())
}

fn add_fabric(world: &mut World, fabric: &fleet::Fabric) -> Result<(), FleetError> {
    let fabric_id = world.fabrics.add(fabric.id, |id| Fabric {
        id,
        name: fabric.name.clone().unwrap_or_else(|| format!("fabric-{id}")),
        class_type: fabric.class_type.clone(),
    });
    let untagged = [fleet::Vlan::default()];
    for vlan in if fabric.vlans.is_empty() { &untagged[..] } else { &fabric.vlans } {
        let space = match &vlan.space {
            None => None,
            Some(name) => Some(
                world
                    .spaces
                    .iter()
                    .find(|(_, space)| space.name == *name)
                    .map(|(id, _)| id)
                    .ok_or_else(|| FleetError::new("fabrics: vlans: space", format!("there is no space \"{name}\" under spaces")))?,
            ),
        };
        let name = vlan.name.clone().unwrap_or_else(|| if vlan.vid == 0 { "untagged".into() } else { vlan.vid.to_string() });
        world.vlans.add(vlan.id, |id| Vlan {
            id,
            fabric: fabric_id,
            vid: vlan.vid,
            name,
            mtu: vlan.mtu.unwrap_or(1500),
            dhcp_on: vlan.dhcp,
            space,
            primary_rack: None,
        });
    }
    Ok(())
}

/// The network of a fleet that names none.
fn default_subnet() -> fleet::Subnet {
    let ip = |last| IpAddr::from([10, 20, 0, last]);
    fleet::Subnet {
        id: None,
        name: Some("pxe".into()),
        description: String::new(),
        cidr: IpNet::new(ip(0), 24).unwrap_or_default(),
        gateway: Some(ip(1)),
        dns_servers: Vec::new(),
        vlan: None,
        managed: None,
        dhcp: Some(fleet::Span { start: ip(100), end: ip(149) }),
        ranges: Vec::new(),
    }
}

fn add_subnet(world: &mut World, subnet: &fleet::Subnet, first_vlan: Option<Id<Vlan>>) -> Result<(), FleetError> {
    let field = format!("subnets: {}", subnet.cidr);
    let vlan = match subnet.vlan {
        Some(number) => Id::new(number),
        None => first_vlan.ok_or_else(|| FleetError::new(&field, "there is no VLAN it could be on"))?,
    };
    if world.vlans.get(vlan).is_none() {
        return Err(FleetError::new(format!("{field}: vlan"), format!("there is no VLAN with id {vlan} under fabrics")));
    }
    let id = world.subnets.add(subnet.id, |id| Subnet {
        id,
        name: subnet.name.clone().unwrap_or_else(|| subnet.cidr.to_string()),
        description: subnet.description.clone(),
        cidr: subnet.cidr,
        gateway: subnet.gateway.map_or(Gateway::Unset, Gateway::Address),
        dns_servers: subnet.dns_servers.iter().map(ToString::to_string).collect(),
        vlan,
        managed: subnet.managed.unwrap_or(true),
        allow_dns: true,
        allow_proxy: true,
        active_discovery: false,
        rdns_mode: 2,
    });
    let dhcp = subnet.dhcp.map(|span| fleet::Range {
        id: None,
        kind: RangeKind::Dynamic,
        start: span.start,
        end: span.end,
        comment: String::new(),
        user: None,
    });
    for range in dhcp.iter().chain(&subnet.ranges) {
        if !subnet.cidr.contains(&range.start) || !subnet.cidr.contains(&range.end) || range.start > range.end {
            return Err(FleetError::new(
                format!("{field}: ranges"),
                format!("{} to {} is not a range inside the subnet", range.start, range.end),
            ));
        }
        let user = match &range.user {
            None => None,
            Some(name) => Some(
                world
                    .user_named(name)
                    .map(|user| user.id)
                    .ok_or_else(|| FleetError::new(format!("{field}: ranges: user"), format!("there is no user \"{name}\"")))?,
            ),
        };
        if range.kind == RangeKind::Dynamic
            && let Some(vlan) = world.vlans.get_mut(vlan)
        {
            vlan.dhcp_on = true;
        }
        world.ranges.add(range.id, |id_of_range| Range {
            id: id_of_range,
            subnet: id,
            kind: range.kind,
            start: range.start,
            end: range.end,
            user,
            comment: range.comment.clone(),
        });
    }
    Ok(())
}

/// The files a synced image has; their names and digests are made up.
fn synced_files(world: &mut World) -> Vec<ImageFile> {
    ["squashfs", "boot-initrd", "boot-kernel"]
        .map(|filetype| {
            let (name, digest) = (world.random.key(6), format!("{}{}", world.random.uuid(), world.random.uuid()).replace('-', ""));
            ImageFile {
                filename: format!("name-{name}"),
                filetype: filetype.into(),
                sha256: digest,
                size: 512,
                received: 512,
                digest: None,
            }
        })
        .to_vec()
}

pub fn tags_and_images(world: &mut World, fleet: &Fleet) {
    for tag in &fleet.tags {
        world.tags.add(None, |id| Tag {
            id,
            name: tag.name.clone(),
            comment: tag.comment.clone(),
            definition: tag.definition.clone(),
            kernel_opts: tag.kernel_opts.clone(),
        });
    }
    let synced = |name: &str, kernel: &str, title: &str| fleet::Image {
        name: format!("ubuntu/{name}"),
        architecture: format!("amd64/{kernel}"),
        title: Some(title.into()),
        ..fleet::Image::default()
    };
    let default = [synced("jammy", "ga-22.04", "22.04 LTS"), synced("noble", "ga-24.04", "24.04 LTS")];
    for image in if fleet.images.is_empty() { &default[..] } else { &fleet.images } {
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
            files,
            version: "20260801".into(),
        });
    }
}
