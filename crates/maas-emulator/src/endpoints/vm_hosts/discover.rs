//! Registering VM hosts: what MAAS finds behind an address. A server that answers has the capacity of [`server`]; one whose address is
//! in no known network does not answer, and MAAS registers it empty all the same.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::parameters;
use crate::endpoints::machines::{Problems, bad_host_label};
use crate::http::answer::Refusal;
use crate::http::form::Form;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;
use crate::world::place::{Pool, Zone};
use crate::world::vm_host::{StoragePool, VmHost};

pub const KINDS: [&str; 2] = ["lxd", "virsh"];
const NO_CHOICE: &str = "Select a valid choice. That choice is not one of the available choices.";

/// What every server that answers has: 16 cores, 64 GiB, a big pool and a fast one.
fn server(id: Id<VmHost>, name: String, kind: String) -> VmHost {
    let pool = |name: &str, kind: &str, path: &str, total: u64, default: bool| StoragePool {
        id: name.into(),
        name: name.into(),
        kind: kind.into(),
        path: path.into(),
        total,
        default,
    };
    VmHost {
        id,
        name,
        kind,
        tags: vec!["pod-console-logging".into()],
        zone: Id::new(1),
        pool: Id::new(0),
        architectures: vec!["amd64/generic".into()],
        capabilities: ["composable", "dynamic_local_storage", "over_commit", "storage_pools"].map(str::to_owned).to_vec(),
        cores: 16,
        cpu_speed: 2400,
        memory: 65_536,
        local_storage: 2_000_000_000_000,
        storage_pools: vec![
            pool("default", "dir", "/var/lib/lxd/storage-pools/default", 2_000_000_000_000, true),
            pool("fast", "lvm", "/dev/fastvg", 500_000_000_000, false),
        ],
        cpu_over_commit_ratio: 1.0,
        memory_over_commit_ratio: 1.0,
        default_macvlan_mode: None,
        host: None,
        parameters: BTreeMap::new(),
        version: "5.21.3".into(),
        reachable: true,
    }
}

/// Whether a host answers at the address it has now. One that answers for the first time tells what it has.
pub fn reach(world: &mut World, id: Id<VmHost>) -> bool {
    let Some(host) = world.vm_hosts.get(id) else { return false };
    let address = host.parameters.get("power_address").cloned().unwrap_or_default();
    let answers = host.host.is_some() || host_of(&address).is_none_or(|ip| world.subnet_of(ip).is_some());
    if let Some(host) = world.vm_hosts.get_mut(id).filter(|host| answers && !host.reachable) {
        let found = server(host.id, host.name.clone(), host.kind.clone());
        *host = VmHost {
            tags: std::mem::take(&mut host.tags),
            zone: host.zone,
            pool: host.pool,
            parameters: std::mem::take(&mut host.parameters),
            cpu_over_commit_ratio: host.cpu_over_commit_ratio,
            memory_over_commit_ratio: host.memory_over_commit_ratio,
            default_macvlan_mode: host.default_macvlan_mode.take(),
            ..found
        };
        add_virtual(host);
    }
    answers
}

fn forget_capacity(host: &mut VmHost) {
    host.architectures.clear();
    host.capabilities.clear();
    host.storage_pools.clear();
    host.cores = 0;
    host.memory = 0;
    host.local_storage = 0;
    host.version.clear();
    host.reachable = false;
}

/// The zone and the pool a form names.
fn places_wished(world: &World, form: &Form, problems: &mut Problems) -> (Option<Id<Zone>>, Option<Id<Pool>>) {
    let zone = form.filled("zone").map(|name| world.zones.values().find(|zone| zone.name == name).map(|zone| zone.id));
    let pool = form.filled("pool").map(|name| world.pools.values().find(|pool| pool.name == name).map(|pool| pool.id));
    for (field, unknown) in [("zone", zone == Some(None)), ("pool", pool == Some(None))] {
        if unknown {
            problems.add(field, NO_CHOICE);
        }
    }
    (zone.flatten(), pool.flatten())
}

fn name_wished(form: &Form, problems: &mut Problems) -> Option<String> {
    let name = form.filled("name")?;
    if let Some(problem) = bad_host_label(name) {
        problems.add("name", problem);
    }
    Some(name.to_owned())
}

/// How many times what there is may be promised.
fn ratio_wished(form: &Form, key: &str, problems: &mut Problems) -> Option<f64> {
    match form.filled(key)?.parse().ok().filter(|value: &f64| value.is_finite()) {
        None => problems.add(key, "Enter a number."),
        Some(..0.0) => problems.add(key, "Ensure this value is greater than or equal to 0."),
        Some(value) if value > 10.0 => problems.add(key, "Ensure this value is less than or equal to 10."),
        Some(value) => return Some(value),
    }
    None
}

fn tags_wished(form: &Form) -> Option<Vec<String>> {
    let mut tags: Vec<String> = form.get("tags")?.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
    tags.sort();
    tags.dedup();
    Some(tags)
}

/// Registers a host by its address.
pub fn create(world: &mut World, form: &Form) -> Result<Id<VmHost>, Refusal> {
    let kind = form.filled("type").ok_or_else(|| Refusal::field("type", "This field is required."))?.to_owned();
    if !KINDS.contains(&kind.as_str()) {
        return Err(Refusal::field("type", format!("Select a valid choice. {kind} is not one of the available choices.")));
    }
    let mut problems = Problems::default();
    let address = form.filled("power_address").unwrap_or_default().to_owned();
    if address.is_empty() {
        problems.add("power_address", "This field is required.");
    }
    let (zone, pool) = places_wished(world, form, &mut problems);
    let name = name_wished(form, &mut problems);
    problems.refuse()?;
    let name = name.unwrap_or_else(|| world.fresh_hostname());
    let parameters = parameters::of_new(&kind, form);
    let reachable = host_of(&address).is_none_or(|ip| world.subnet_of(ip).is_some());
    let tags = tags_wished(form).unwrap_or_default();
    Ok(world.vm_hosts.add(None, |id| {
        let mut host = server(id, name, kind);
        host.parameters = parameters;
        host.zone = zone.unwrap_or(host.zone);
        host.pool = pool.unwrap_or(host.pool);
        host.tags.extend(tags);
        if reachable {
            add_virtual(&mut host);
        } else {
            forget_capacity(&mut host);
        }
        host
    }))
}

/// Hosts that answer are marked as virtual, once.
fn add_virtual(host: &mut VmHost) {
    if !host.tags.iter().any(|tag| tag == "virtual") {
        host.tags.push("virtual".into());
    }
}

/// The address of a server; none when it is a name, which is taken to resolve.
fn host_of(address: &str) -> Option<IpAddr> {
    let bare = address.rsplit("//").next().unwrap_or(address).trim_matches('/');
    bare.parse().ok().or_else(|| bare.rsplit_once(':').and_then(|(host, _)| host.parse().ok()))
}

/// Changes a host.
pub fn update(world: &mut World, id: Id<VmHost>, form: &Form) -> Result<(), Refusal> {
    let mut problems = Problems::default();
    let cpu = ratio_wished(form, "cpu_over_commit_ratio", &mut problems);
    let memory = ratio_wished(form, "memory_over_commit_ratio", &mut problems);
    let (zone, pool) = places_wished(world, form, &mut problems);
    let name = name_wished(form, &mut problems);
    let Some(host) = world.vm_hosts.get_mut(id) else { return Ok(()) };
    let parameters = parameters::changed(host, form, &mut problems);
    let storage_pool = form.filled("default_storage_pool");
    if let Some(wished) = storage_pool.filter(|wished| !host.storage_pools.iter().any(|pool| pool.id == *wished)) {
        problems.add("default_storage_pool", format!("Select a valid choice. {wished} is not one of the available choices."));
    }
    problems.refuse()?;
    for pool in host.storage_pools.iter_mut().filter(|_| storage_pool.is_some()) {
        pool.default = Some(pool.id.as_str()) == storage_pool;
    }
    host.cpu_over_commit_ratio = cpu.unwrap_or(host.cpu_over_commit_ratio);
    host.memory_over_commit_ratio = memory.unwrap_or(host.memory_over_commit_ratio);
    host.zone = zone.unwrap_or(host.zone);
    host.pool = pool.unwrap_or(host.pool);
    // The form writes an empty mode back where none was ever chosen.
    host.default_macvlan_mode =
        Some(form.get("default_macvlan_mode").map_or_else(|| host.default_macvlan_mode.clone().unwrap_or_default(), str::to_owned));
    host.name = name.unwrap_or_else(|| host.name.clone());
    host.parameters = parameters;
    if let Some(tags) = tags_wished(form) {
        host.tags = tags;
    }
    // MAAS looks at the host with what it knows now. One that does not answer is changed all the same.
    if !world.faults.no_rack {
        reach(world, id);
    }
    Ok(())
}

/// Registers a deployed machine as VM hosts of these kinds, in its zone and pool.
pub fn register_deployed(world: &mut World, machine: Id<Machine>, kinds: &[String]) {
    let Some(row) = world.machines.get(machine) else { return };
    let (hostname, zone, pool) = (row.hostname.clone(), row.zone, row.pool);
    let address = crate::render::ip_addresses(world, row).into_iter().next().unwrap_or_default();
    for kind in kinds {
        let name = if kinds.len() > 1 { format!("{hostname}-{kind}") } else { hostname.clone() };
        world.vm_hosts.add(None, |id| {
            let mut host = server(id, name, kind.clone());
            host.parameters.insert("power_address".into(), address.clone());
            host.zone = zone;
            host.pool = pool;
            host.host = Some(machine);
            add_virtual(&mut host);
            host
        });
    }
}
