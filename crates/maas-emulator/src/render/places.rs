//! Users, zones, pools, tags and domains.

use serde_json::{Value, json};

use crate::world::World;
use crate::world::dns::Domain;
use crate::world::people::User;
use crate::world::place::{Pool, Tag, Zone};

/// A user.
pub fn user(user: &User) -> Value {
    json!({
        "username": user.name,
        "email": user.email,
        "is_superuser": user.superuser,
        "is_local": true,
        "resource_uri": format!("/MAAS/api/2.0/users/{}/", user.name),
    })
}

/// A zone.
pub fn zone(zone: &Zone) -> Value {
    json!({"id": zone.id, "name": zone.name, "description": zone.description, "resource_uri": format!("/MAAS/api/2.0/zones/{}/", zone.name)})
}

/// A resource pool; its path is in the singular.
pub fn pool(pool: &Pool) -> Value {
    json!({"id": pool.id, "name": pool.name, "description": pool.description, "resource_uri": format!("/MAAS/api/2.0/resourcepool/{}/", pool.id)})
}

/// A tag.
pub fn tag(tag: &Tag) -> Value {
    json!({
        "name": tag.name,
        "definition": tag.definition,
        "comment": tag.comment,
        "kernel_opts": tag.kernel_opts,
        "resource_uri": format!("/MAAS/api/2.0/tags/{}/", tag.name),
    })
}

/// A domain with the number of its records.
pub fn domain(world: &World, domain: &Domain) -> Value {
    let of_domain = |resource: &&crate::world::dns::DnsResource| resource.domain == domain.id;
    let addresses: usize = world.names.values().filter(of_domain).map(|resource| resource.addresses.len()).sum();
    let records = world
        .records
        .values()
        .filter(|record| world.names.get(record.resource).is_some_and(|resource| resource.domain == domain.id))
        .count();
    json!({
        "id": domain.id,
        "name": domain.name,
        "authoritative": domain.authoritative,
        "ttl": domain.ttl,
        "is_default": domain.is_default,
        "resource_record_count": addresses + records,
        "resource_uri": format!("/MAAS/api/2.0/domains/{}/", domain.id),
    })
}
