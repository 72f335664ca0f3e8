//! Disks, partitions and volumes.

use serde_json::{Value, json};

use crate::world::machine::Machine;
use crate::world::storage::{Contents, Disk, Filesystem, Partition, Volume, VolumeGroup};

/// A file system as far as the machine shows it: one that is somebody's shows what was taken over at its acquisition.
fn filesystem<'a>(machine: &Machine, filesystem: Option<&'a Filesystem>) -> Option<&'a Filesystem> {
    filesystem.filter(|_| machine.acquired_storage || !machine.status.is_allocated())
}

fn filesystem_value(filesystem: Option<&Filesystem>) -> Value {
    filesystem.map_or(Value::Null, |filesystem| {
        let label = if filesystem.fstype == "lvm-pv" { Value::Null } else { json!(filesystem.label) };
        json!({
            "fstype": filesystem.fstype,
            "label": label,
            "uuid": filesystem.uuid,
            "mount_point": filesystem.mount_point,
            "mount_options": filesystem.mount_options,
        })
    })
}

fn used_for(filesystem: Option<&Filesystem>, group: Option<&str>) -> String {
    match (filesystem, group) {
        (_, Some(group)) => format!("LVM volume for {group}"),
        (Some(filesystem), None) => match &filesystem.mount_point {
            Some(place) => format!("{} formatted filesystem mounted at {place}", filesystem.fstype),
            None => format!("Unmounted {} formatted filesystem", filesystem.fstype),
        },
        (None, None) => "Unused".into(),
    }
}

fn partition(machine: &Machine, disk: &Disk, index: usize, partition: &Partition) -> Value {
    let shown = filesystem(machine, partition.filesystem.as_ref());
    let system_id = &machine.system_id;
    json!({
        "id": partition.id,
        "uuid": partition.uuid,
        "size": partition.size,
        "bootable": partition.bootable,
        "tags": [],
        "type": "partition",
        "filesystem": filesystem_value(shown),
        "path": format!("/dev/disk/by-dname/{}-part{}", disk.name, index + 1),
        "device_id": disk.id,
        "system_id": system_id,
        "used_for": used_for(shown, partition.volume_group.as_deref()),
        "resource_uri": format!("/MAAS/api/2.0/nodes/{system_id}/blockdevices/{}/partition/{}", disk.id, partition.id),
    })
}

/// A disk.
pub fn disk(machine: &Machine, disk: &Disk) -> Value {
    let (whole, table, usage) = match &disk.contents {
        Contents::Unused => (None, Value::Null, "Unused".to_owned()),
        Contents::Filesystem(whole) => {
            let shown = filesystem(machine, Some(whole));
            (shown, Value::Null, used_for(shown, None))
        }
        Contents::Partitions(partitions) => {
            let plural = if partitions.len() == 1 { "" } else { "s" };
            (None, json!("GPT"), format!("GPT partitioned with {} partition{plural}", partitions.len()))
        }
    };
    let partitions: Vec<Value> = disk.partitions().iter().enumerate().map(|(index, row)| partition(machine, disk, index, row)).collect();
    json!({
        "id": disk.id,
        "system_id": machine.system_id,
        "type": "physical",
        "name": disk.name,
        "path": format!("/dev/disk/by-dname/{}", disk.name),
        "id_path": disk.id_path,
        "model": disk.model,
        "serial": disk.serial,
        "firmware_version": null,
        "uuid": null,
        "size": disk.size,
        "block_size": 512,
        "available_size": disk.available_size(),
        "used_size": disk.used_size(),
        "used_for": usage,
        "tags": disk.tags,
        "filesystem": filesystem_value(whole),
        "partition_table_type": table,
        "partitions": partitions,
        "numa_node": 0,
        "storage_pool": disk.storage_pool,
        "resource_uri": format!("/MAAS/api/2.0/nodes/{}/blockdevices/{}/", machine.system_id, disk.id),
    })
}

/// A logical volume, shown among the disks.
pub fn volume(machine: &Machine, group: &VolumeGroup, volume: &Volume) -> Value {
    let shown = filesystem(machine, volume.filesystem.as_ref());
    let name = format!("{}-{}", group.name, volume.name);
    json!({
        "id": volume.id,
        "system_id": machine.system_id,
        "type": "virtual",
        "name": name,
        "path": format!("/dev/disk/by-dname/{name}"),
        "id_path": null,
        "model": null,
        "serial": null,
        "uuid": volume.uuid,
        "size": volume.size,
        "block_size": 4096,
        "available_size": 0,
        "used_size": volume.size,
        "used_for": used_for(shown, None),
        "tags": [],
        "filesystem": filesystem_value(shown),
        "partition_table_type": null,
        "partitions": [],
        "numa_node": null,
        "storage_pool": null,
        "resource_uri": format!("/MAAS/api/2.0/nodes/{}/blockdevices/{}/", machine.system_id, volume.id),
    })
}
