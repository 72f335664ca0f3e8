//! `vm-hosts/`, also called `pods/`: hosts that compose machines. A MAAS without them answers 410.

mod compose;
mod discover;
mod parameters;
mod room;

use serde_json::{Value, json};

use crate::hardware::Work;
use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::Call;
use crate::http::route::{Endpoint, Operation};
use crate::lifecycle;
use crate::render;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::vm_host::VmHost;

pub use compose::compose_for_allocation;
pub use discover::{KINDS, register_deployed};

const COLLECTION: &[Operation] = &[Operation::get(list), Operation::post(create)];
const ITEM: &[Operation] = &[
    Operation::get(read),
    Operation::get_op("parameters", parameters),
    Operation::put(update),
    Operation::delete(delete),
    Operation::post_op("compose", compose_op),
    Operation::post_op("refresh", refresh),
    Operation::post_op("add_tag", add_tag),
    Operation::post_op("remove_tag", remove_tag),
];

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint::new("vm-hosts/", COLLECTION),
    Endpoint::new("vm-hosts/{}/", ITEM),
    Endpoint::new("pods/", COLLECTION),
    Endpoint::new("pods/{}/", ITEM),
    Endpoint::new("vm-clusters/", &[Operation::get(list_clusters)]),
    Endpoint::new("vm-clusters/{}/", &[Operation::get(no_cluster), Operation::put(no_cluster), Operation::delete(no_cluster)]),
];

/// Refuses whatever is about VM hosts where they were taken out of MAAS.
pub fn refuse_where_removed(world: &World, path: &str) -> Result<(), Refusal> {
    let about_them = ENDPOINTS.iter().any(|endpoint| endpoint.path == path);
    if about_them && !world.version.has_vm_hosts() {
        return Err(Refusal::plain(410, "VM hosts are no longer available in this version of MAAS."));
    }
    Ok(())
}

/// Some rack controller has to answer. MAAS names none here.
fn rack_answers(world: &World) -> Result<(), Refusal> {
    if world.faults.no_rack { Err(Refusal::no_rack("")) } else { Ok(()) }
}

fn find(world: &World, call: &Call) -> Result<Id<VmHost>, Refusal> {
    let found = world.vm_hosts.values().map(|host| host.id).find(|id| id.to_string() == call.argument(0));
    found.ok_or_else(|| {
        if call.method == http::Method::GET && call.operation.is_none() {
            Refusal::plain(404, "Not Found")
        } else {
            Refusal::no_match(world, "Pod")
        }
    })
}

fn answer(world: &World, id: Id<VmHost>) -> Reply {
    world.vm_hosts.get(id).map(|host| Answer::json(&render_host(world, host))).ok_or_else(|| Refusal::no_match(world, "Pod"))
}

/// What the machines on a host use: cores, memory in MiB, and bytes a pool.
pub struct Used {
    cores: u32,
    memory: u64,
    pools: std::collections::BTreeMap<String, u64>,
}

impl Used {
    fn by(world: &World, host: Id<VmHost>) -> Self {
        let mut used = Used { cores: 0, memory: 0, pools: std::collections::BTreeMap::new() };
        for machine in world.all_machines().filter(|machine| machine.vm_host == Some(host)) {
            used.cores = used.cores.saturating_add(machine.cpu_count);
            used.memory = used.memory.saturating_add(machine.memory);
            for disk in &machine.disks {
                if let Some(pool) = &disk.storage_pool {
                    used.take(pool, disk.size);
                }
            }
        }
        used
    }

    fn of_pool(&self, pool: &str) -> u64 {
        self.pools.get(pool).copied().unwrap_or_default()
    }

    fn take(&mut self, pool: &str, size: u64) {
        let taken = self.pools.entry(pool.to_owned()).or_default();
        *taken = taken.saturating_add(size);
    }

    fn storage(&self) -> u64 {
        self.pools.values().fold(0, |sum, pool| sum.saturating_add(*pool))
    }
}

/// What is left of something, which may be less than nothing where storage is thin.
fn left(total: u64, used: u64) -> i128 {
    i128::from(total) - i128::from(used)
}

fn number(value: i128) -> Value {
    i64::try_from(value).map_or(Value::Null, |value| json!(value))
}

fn render_host(world: &World, host: &VmHost) -> Value {
    let used = Used::by(world, host.id);
    let pools: Vec<Value> = host
        .storage_pools
        .iter()
        .map(|pool| {
            let taken = used.pools.get(&pool.id).copied().unwrap_or(0);
            json!({
                "id": pool.id,
                "name": pool.name,
                "type": pool.kind,
                "path": pool.path,
                "total": pool.total,
                "used": taken,
                "available": number(left(pool.total, taken)),
                "default": pool.default,
            })
        })
        .collect();
    let on = host.host.and_then(|machine| world.machines.get(machine));
    json!({
        "id": host.id,
        "name": host.name,
        "type": host.kind,
        "tags": host.tags,
        "zone": world.zones.get(host.zone).map(render::zone),
        "pool": world.pools.get(host.pool).map(render::pool),
        "architectures": host.architectures,
        "capabilities": host.capabilities,
        "total": {"cores": host.cores, "memory": host.memory, "local_storage": host.local_storage},
        "used": {"cores": used.cores, "memory": used.memory, "local_storage": used.storage()},
        "available": {
            "cores": number(left(host.cores.into(), used.cores.into())),
            "memory": number(left(host.memory, used.memory)),
            "local_storage": number(left(host.local_storage, used.storage())),
        },
        "cpu_over_commit_ratio": host.cpu_over_commit_ratio,
        "memory_over_commit_ratio": host.memory_over_commit_ratio,
        "storage_pools": pools,
        "default_macvlan_mode": host.default_macvlan_mode,
        "host": {"system_id": on.map(|machine| machine.system_id.as_str()), "__incomplete__": true},
        "version": host.version,
        "resource_uri": format!("/MAAS/api/2.0/vm-hosts/{}/", host.id),
    })
}

fn list(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    Ok(Answer::json(&world.vm_hosts.values().map(|host| render_host(world, host)).collect()))
}

fn read(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    let id = find(world, call)?;
    answer(world, id)
}

fn parameters(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let id = find(world, call)?;
    Ok(Answer::json(&json!(world.vm_hosts.get(id).map(|host| &host.parameters))))
}

fn create(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    rack_answers(world)?;
    let id = discover::create(world, &call.form)?;
    answer(world, id)
}

fn refresh(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let id = find(world, call)?;
    rack_answers(world)?;
    if !discover::reach(world, id) {
        return Err(Refusal::text(503, format!("Failed talking to pod: Pod {id}: Failed to connect to the LXD REST API.")));
    }
    answer(world, id)
}

fn update(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let id = find(world, call)?;
    discover::update(world, id, &call.form)?;
    answer(world, id)
}

fn compose_op(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let id = find(world, call)?;
    compose::compose(world, id, call)
}

fn tag_wished(call: &Call) -> Result<String, Refusal> {
    call.form.filled("tag").map(str::to_owned).ok_or_else(|| Refusal::text(400, "No provided tag!"))
}

fn add_tag(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let tag = tag_wished(call)?;
    if tag.contains(',') {
        return Err(Refusal::text(400, "Tag may not contain a \",\"."));
    }
    let id = find(world, call)?;
    if let Some(host) = world.vm_hosts.get_mut(id)
        && !host.tags.contains(&tag)
    {
        host.tags.push(tag);
    }
    answer(world, id)
}

fn remove_tag(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let tag = tag_wished(call)?;
    let id = find(world, call)?;
    if let Some(host) = world.vm_hosts.get_mut(id) {
        host.tags.retain(|other| *other != tag);
    }
    answer(world, id)
}

fn delete(world: &mut World, call: &Call) -> Reply {
    call.admin(world)?;
    let found = world.vm_hosts.values().map(|host| host.id).find(|id| id.to_string() == call.argument(0));
    let id = found.ok_or_else(|| Refusal::no_match(world, "Pod"))?;
    let decompose = call.query_flag("decompose")?.unwrap_or(false);
    remove(world, id, decompose);
    Ok(Answer::deleted())
}

/// Removes a VM host; its machines vanish from MAAS either way, with `decompose` also their virtual machines.
pub fn remove(world: &mut World, host: Id<VmHost>, decompose: bool) {
    let machines: Vec<Id<Machine>> =
        world.all_machines().filter(|machine| machine.vm_host == Some(host)).map(|machine| machine.id).collect();
    for machine in machines {
        lifecycle::power::order(world, machine, Work::Forget { wipe: decompose });
        world.remove_machine(machine);
    }
    world.vm_hosts.remove(host);
}

/// The VM hosts that run on a machine; none where MAAS knows none, so that nobody has to remove what nobody can see.
pub fn hosted_by(world: &World, machine: Id<Machine>) -> Vec<Id<VmHost>> {
    if !world.version.has_vm_hosts() {
        return Vec::new();
    }
    world.vm_hosts.values().filter(|host| host.host == Some(machine)).map(|host| host.id).collect()
}

/// What MAAS says when a machine that hosts VMs is released or deleted.
pub fn must_go_first(world: &World, hosts: &[Id<VmHost>]) -> String {
    let names: Vec<&str> = hosts.iter().filter_map(|host| world.vm_hosts.get(*host)).map(|host| host.name.as_str()).collect();
    format!("The following VM hosts must be removed first: {}", names.join(", "))
}

fn list_clusters(_: &mut World, call: &Call) -> Reply {
    call.caller()?;
    Ok(Answer::json(&json!([])))
}

fn no_cluster(world: &mut World, call: &Call) -> Reply {
    call.caller()?;
    Err(Refusal::no_match(world, "VMCluster"))
}
