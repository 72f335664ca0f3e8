//! A machine with everything MAAS shows of it.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::storage;
use crate::clock::later;
use crate::version::Version;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::{Machine, ScriptStatus};
use crate::world::network::{AddressKind, Interface};

/// What MAAS wants to know about hardware and mostly does not.
const HARDWARE_INFO: [&str; 18] = [
    "system_vendor",
    "system_product",
    "system_family",
    "system_version",
    "system_sku",
    "system_serial",
    "cpu_model",
    "mainboard_vendor",
    "mainboard_product",
    "mainboard_serial",
    "mainboard_version",
    "mainboard_firmware_vendor",
    "mainboard_firmware_date",
    "mainboard_firmware_version",
    "chassis_vendor",
    "chassis_type",
    "chassis_serial",
    "chassis_version",
];

/// More cores than this are not listed one by one.
const MOST_CORES: u32 = 4096;

/// How often a machine with hardware sync reports.
const SYNC_INTERVAL: Duration = Duration::from_mins(15);

fn moment(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// A machine.
pub fn machine(world: &World, machine: &Machine) -> Value {
    let mut object = Map::new();
    identity(world, machine, &mut object);
    state(world, machine, &mut object);
    hardware(machine, &mut object);
    network(world, machine, &mut object);
    disks(machine, &mut object);
    scripts(machine, &mut object);
    Value::Object(object)
}

fn put<const N: usize>(object: &mut Map<String, Value>, entries: [(&str, Value); N]) {
    object.extend(entries.map(|(key, value)| (key.to_owned(), value)));
}

fn identity(world: &World, machine: &Machine, object: &mut Map<String, Value>) {
    let pod = machine
        .vm_host
        .and_then(|host| world.vm_hosts.get(host))
        .map_or(Value::Null, |host| json!({"id": host.id, "name": host.name, "resource_uri": format!("/MAAS/api/2.0/pods/{}/", host.id)}));
    let host = machine.vm_host.and_then(|host| world.vm_hosts.get(host)?.host).and_then(|host| world.machines.get(host));
    let parent = host.map_or(Value::Null, |host| {
        json!({"system_id": host.system_id, "resource_uri": format!("/MAAS/api/2.0/machines/{}/", host.system_id), "__incomplete__": true})
    });
    let tags: Vec<&str> = machine.tags.iter().filter_map(|tag| world.tags.get(*tag)).map(|tag| tag.name.as_str()).collect();
    put(
        object,
        [
            ("system_id", json!(machine.system_id)),
            ("hostname", json!(machine.hostname)),
            ("fqdn", json!(world.fqdn(machine))),
            ("description", json!(machine.description)),
            ("node_type", json!(0)),
            ("node_type_name", json!("Machine")),
            ("hardware_uuid", json!(machine.hardware_uuid)),
            ("domain", world.domains.get(machine.domain).map_or(Value::Null, |domain| super::domain(world, domain))),
            ("zone", world.zones.get(machine.zone).map_or(Value::Null, super::zone)),
            ("pool", world.pools.get(machine.pool).map_or(Value::Null, super::pool)),
            ("pod", pod),
            ("parent", parent),
            ("virtualmachine_id", json!(machine.virtual_machine)),
            ("tag_names", json!(tags)),
            ("resource_uri", json!(format!("/MAAS/api/2.0/machines/{}/", machine.system_id))),
        ],
    );
}

fn state(world: &World, machine: &Machine, object: &mut Map<String, Value>) {
    put(
        object,
        [
            ("status", json!(machine.status.number())),
            ("status_name", json!(machine.status.name())),
            ("status_action", json!(machine.status_action)),
            ("status_message", json!(machine.status_message)),
            ("error_description", json!(machine.error_description)),
            ("owner", json!(machine.owner.map(|owner| world.user_name(owner)))),
            ("owner_data", json!(machine.annotations)),
            ("workload_annotations", json!(machine.annotations)),
            ("locked", json!(machine.locked)),
            ("netboot", json!(machine.netboot)),
            ("power_state", json!(machine.power_state.name())),
            ("power_type", json!(machine.power_type)),
            ("osystem", json!(machine.osystem)),
            ("distro_series", json!(machine.distro_series)),
            ("hwe_kernel", json!(machine.hwe_kernel)),
            ("min_hwe_kernel", json!(machine.min_hwe_kernel)),
            ("ephemeral_deploy", json!(machine.ephemeral_deploy)),
            ("address_ttl", json!(machine.address_ttl)),
            ("disable_ipv4", json!(false)),
        ],
    );
    if world.version >= Version::V3_3 {
        put(
            object,
            [
                ("enable_hw_sync", json!(machine.enable_hw_sync)),
                ("last_sync", json!(machine.last_sync.map(moment))),
                ("sync_interval", json!(machine.enable_hw_sync.then_some(SYNC_INTERVAL.as_secs()))),
                ("next_sync", json!(machine.last_sync.map(|last| moment(later(last, SYNC_INTERVAL))))),
            ],
        );
    }
    if world.version >= Version::V3_7 {
        put(object, [("enable_kernel_crash_dump", json!(machine.enable_kernel_crash_dump)), ("is_dpu", json!(false))]);
    }
}

fn hardware(machine: &Machine, object: &mut Map<String, Value>) {
    let known = |key: &str| machine.hardware_info.get(key).cloned().unwrap_or_else(|| "Unknown".into());
    let info: Map<String, Value> = HARDWARE_INFO.iter().map(|key| ((*key).to_owned(), json!(known(key)))).collect();
    // No machine has more; a number somebody mistyped must not become a list of that length.
    let cores: Vec<u32> = if machine.has_numa { (0..machine.cpu_count.min(MOST_CORES)).collect() } else { Vec::new() };
    put(
        object,
        [
            ("architecture", json!(machine.architecture)),
            ("cpu_count", json!(machine.cpu_count)),
            ("cpu_speed", json!(machine.cpu_speed)),
            ("memory", json!(machine.memory)),
            ("swap_size", json!(machine.swap_size)),
            ("bios_boot_method", json!(machine.bios_boot_method)),
            ("hardware_info", Value::Object(info)),
            (
                "numanode_set",
                json!([{"index": 0, "memory": if machine.has_numa { machine.memory } else { 0 }, "cores": cores, "hugepages_set": []}]),
            ),
        ],
    );
}

fn network(world: &World, machine: &Machine, object: &mut Map<String, Value>) {
    let interfaces: Vec<Value> = rows(world, machine).map(|row| super::interface(world, row)).collect();
    let boot = machine.boot_interface.and_then(|id| world.interfaces.get(id)).map(|row| super::interface(world, row));
    put(
        object,
        [
            ("ip_addresses", json!(ip_addresses(world, machine))),
            ("boot_interface", boot.unwrap_or(Value::Null)),
            ("interface_set", Value::Array(interfaces)),
            ("default_gateways", default_gateways(world, machine)),
        ],
    );
}

fn rows<'a>(world: &'a World, machine: &'a Machine) -> impl Iterator<Item = &'a Interface> {
    machine.interfaces.iter().filter_map(|id: &Id<Interface>| world.interfaces.get(*id))
}

/// The addresses a machine has; those seen while commissioning only when it has no others.
pub fn ip_addresses(world: &World, machine: &Machine) -> Vec<String> {
    let addresses = || rows(world, machine).flat_map(|row| &row.addresses).filter_map(|id| world.addresses.get(*id));
    let shown = |discovered: bool| -> Vec<String> {
        addresses()
            .filter(|address| (address.kind == AddressKind::Discovered) == discovered)
            .filter_map(|address| address.ip)
            .map(|ip| ip.to_string())
            .collect()
    };
    let own = shown(false);
    if own.is_empty() { shown(true) } else { own }
}

fn default_gateways(world: &World, machine: &Machine) -> Value {
    let gateway = |is_v4: bool| {
        let (ip, link) = world.way_out(machine, is_v4).unzip();
        json!({"gateway_ip": ip.map(|ip| ip.to_string()), "link_id": link.flatten()})
    };
    json!({"ipv4": gateway(true), "ipv6": gateway(false)})
}

#[expect(clippy::cast_precision_loss, reason = "MAAS itself shows megabytes as a float")]
fn disks(machine: &Machine, object: &mut Map<String, Value>) {
    let physical: Vec<Value> = machine.disks.iter().map(|disk| storage::disk(machine, disk)).collect();
    let volumes: Vec<Value> =
        machine.volume_groups.iter().flat_map(|group| group.volumes.iter().map(|volume| storage::volume(machine, group, volume))).collect();
    let all: Vec<Value> = physical.iter().chain(&volumes).cloned().collect();
    let groups: Vec<Value> =
        machine.volume_groups.iter().map(|group| json!({"system_id": machine.system_id, "id": group.id, "__incomplete__": true})).collect();
    let bytes = machine.disks.iter().fold(0_u64, |sum, disk| sum.saturating_add(disk.size));
    put(
        object,
        [
            ("storage", json!(bytes as f64 / 1e6)),
            ("boot_disk", physical.first().cloned().unwrap_or(Value::Null)),
            ("blockdevice_set", Value::Array(all)),
            ("physicalblockdevice_set", Value::Array(physical)),
            ("virtualblockdevice_set", Value::Array(volumes)),
            ("volume_groups", Value::Array(groups)),
            ("raids", json!([])),
            ("cache_sets", json!([])),
            ("bcaches", json!([])),
            ("special_filesystems", json!([])),
        ],
    );
}

fn scripts(machine: &Machine, object: &mut Map<String, Value>) {
    let unknown = ScriptStatus::Unknown;
    let sets = [
        ("commissioning", machine.commissioning.status),
        ("testing", machine.testing.status),
        ("cpu_test", unknown),
        ("memory_test", unknown),
        ("storage_test", machine.storage_tests),
        ("interface_test", unknown),
        ("network_test", unknown),
        ("other_test", unknown),
    ];
    for (name, status) in sets {
        object.insert(format!("{name}_status"), json!(status.number()));
        object.insert(format!("{name}_status_name"), json!(status.name()));
    }
    put(
        object,
        [
            ("current_commissioning_result_id", json!(machine.commissioning.id)),
            ("current_testing_result_id", json!(machine.testing.id)),
            ("current_installation_result_id", json!(machine.installation.id)),
        ],
    );
}
