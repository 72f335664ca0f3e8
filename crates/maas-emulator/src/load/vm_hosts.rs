//! VM hosts of a fleet, and the events of its past.

use super::{FleetError, free, named};
use crate::endpoints::vm_hosts::KINDS;
use crate::fleet::{self, Fleet};
use crate::world::World;
use crate::world::event::{Event, Level};
use crate::world::vm_host::{StoragePool, VmHost};

/// The largest number in most columns of MAAS's database.
const MOST: u64 = i32::MAX as u64;

pub fn vm_hosts(world: &mut World, fleet: &Fleet) -> Result<(), FleetError> {
    for place in &fleet.vm_hosts {
        let host = &place.value;
        let field = format!("vm_hosts: {}", host.name);
        free(&world.vm_hosts, host.id, &field).map_err(|error| error.within(place))?;
        for (key, ratio) in [("cpu", host.cpu_over_commit_ratio), ("memory", host.memory_over_commit_ratio)] {
            if !(0.0..=10.0).contains(&ratio) {
                return Err(FleetError::at(place, format!("{field}: {key}_over_commit_ratio"), format!("{ratio} is not from 0 to 10")));
            }
        }
        if !KINDS.contains(&host.kind.as_str()) {
            let problem = format!("\"{}\" is not a type of VM host; there are {}", host.kind, KINDS.join(", "));
            return Err(FleetError::at(place, format!("{field}: type"), problem));
        }
        let sizes = host.storage_pools.iter().map(|pool| ("storage_pools: total", pool.total, i64::MAX as u64));
        for (key, size, most) in sizes.chain([("cores", host.cores.into(), MOST), ("memory", host.memory, MOST)]) {
            if size > most {
                return Err(FleetError::at(
                    place,
                    format!("{field}: {key}"),
                    format!("{size} is more than {most}, the most MAAS can store"),
                ));
            }
        }
        let machine = match &host.machine {
            None => None,
            Some(name) => Some(
                world
                    .all_machines()
                    .find(|machine| machine.hostname == name.value)
                    .map(|machine| machine.id)
                    .ok_or_else(|| named::unknown(name, &field, "machine", "machines"))?,
            ),
        };
        let zone = named::zone(world, &host.zone, &field)?;
        let pool = named::pool(world, &host.pool, &field)?;
        let pools = if host.storage_pools.is_empty() {
            vec![StoragePool {
                id: "default".into(),
                name: "default".into(),
                kind: "dir".into(),
                path: "/var/lib/lxd/storage-pools/default".into(),
                total: 1_000_000_000_000,
                default: true,
            }]
        } else {
            let pool = |pool: &fleet::StoragePool| StoragePool {
                id: pool.name.clone(),
                name: pool.name.clone(),
                kind: pool.kind.clone(),
                path: pool.path.clone(),
                total: pool.total,
                default: pool.default,
            };
            host.storage_pools.iter().map(pool).collect()
        };
        world.vm_hosts.add(host.id, |id| VmHost {
            id,
            name: host.name.clone(),
            kind: host.kind.clone(),
            tags: host.tags.clone(),
            zone,
            pool,
            architectures: vec!["amd64/generic".into()],
            capabilities: ["composable", "dynamic_local_storage", "over_commit", "storage_pools"].map(str::to_owned).to_vec(),
            cores: host.cores,
            cpu_speed: 2400,
            memory: host.memory,
            local_storage: pools.iter().fold(0, |sum: u64, pool| sum.saturating_add(pool.total)),
            storage_pools: pools,
            cpu_over_commit_ratio: host.cpu_over_commit_ratio,
            memory_over_commit_ratio: host.memory_over_commit_ratio,
            default_macvlan_mode: None,
            host: machine,
            parameters: host.parameters.clone(),
            version: "5.21".into(),
            reachable: true,
        });
    }
    Ok(())
}

pub fn events(world: &mut World, fleet: &Fleet) -> Result<(), FleetError> {
    for place in &fleet.events {
        let event = &place.value;
        let machine = world
            .node_id(&event.node)
            .ok_or_else(|| FleetError::at(place, "events: node", format!("there is no machine with system_id \"{}\"", event.node)))?;
        let level = Level::named(&event.level).ok_or_else(|| {
            let problem = format!("\"{}\" is not a level; take DEBUG, INFO, WARNING, ERROR, CRITICAL or AUDIT", event.level);
            FleetError::at(place, "events: level", problem)
        })?;
        free(&world.events, event.id, "events").map_err(|error| error.within(place))?;
        let created = world.now;
        world.events.add(event.id, |id| Event {
            id,
            machine,
            level,
            kind: event.kind.clone(),
            description: event.description.clone(),
            username: event.username.clone(),
            created,
        });
    }
    Ok(())
}
