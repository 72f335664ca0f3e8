//! Room for the disks of composed machines. MAAS itself looks at no storage; the host's driver does, and its refusal is MAAS's 503.

use super::Used;
use crate::http::answer::Refusal;
use crate::world::World;
use crate::world::vm_host::{StoragePool, VmHost};

/// The pool of each disk, in the order of the disks; none on a host without pools. A pool that a tag names is the only choice, otherwise
/// the default one comes first and then any that has room.
pub fn pools_for<'a>(
    world: &World,
    host: &VmHost,
    disks: impl Iterator<Item = (u64, &'a [String])>,
) -> Result<Vec<Option<String>>, Refusal> {
    let full = world.faults.is_full(&host.name);
    let mut used = Used::by(world, host.id);
    let mut chosen = Vec::new();
    for (size, tags) in disks {
        if host.storage_pools.is_empty() {
            chosen.push(None);
            continue;
        }
        let has_room = |pool: &&StoragePool| !full && (world.thin_storage || size <= pool.total.saturating_sub(used.of_pool(&pool.id)));
        let mut named = host.storage_pools.iter().filter(|pool| tags.contains(&pool.name)).peekable();
        let found = if named.peek().is_some() {
            named.find(has_room)
        } else {
            let default = host.storage_pools.iter().find(|pool| pool.default);
            default.filter(has_room).or_else(|| host.storage_pools.iter().find(has_room))
        };
        let Some(pool) = found else {
            return Err(Refusal::text(503, "Unable to compose machine because: LXD: storage pool is full"));
        };
        used.take(&pool.id, size);
        chosen.push(Some(pool.id.clone()));
    }
    Ok(chosen)
}
