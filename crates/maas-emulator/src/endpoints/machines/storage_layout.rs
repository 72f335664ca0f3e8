//! Storage layouts of Ready machines.

use super::answer;
use crate::http::answer::{Refusal, Reply};
use crate::http::call::Call;
use crate::world::World;
use crate::world::machine::Machine;
use crate::world::next;
use crate::world::status::Status;
use crate::world::storage::{Contents, Filesystem, Partition, Volume, VolumeGroup};

const LAYOUTS: [&str; 7] = ["bcache", "blank", "custom", "flat", "lvm", "vmfs6", "vmfs7"];

/// `set_storage_layout`, for administrators.
pub fn set(world: &mut World, call: &Call) -> Reply {
    let id = call.administered_machine(world)?;
    if world.machines.get(id).is_some_and(|machine| machine.status != Status::Ready) {
        return Err(Refusal::text(409, "Cannot change the storage layout on a machine that is not Ready."));
    }
    let layout = call.form.filled("storage_layout").ok_or_else(|| Refusal::field("storage_layout", "This field is required."))?;
    if !LAYOUTS.contains(&layout) {
        let known = LAYOUTS.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        return Err(Refusal::field("storage_layout", format!("'{layout}' is not a valid storage_layout.  It should be one of: {known}.")));
    }
    let Some(mut machine) = world.machines.get(id).cloned() else { return Err(Refusal::forbidden()) };
    if machine.disks.is_empty() {
        return Err(Refusal::text(400, "Machine is missing a boot disk; no storage layout can be applied."));
    }
    if layout == "custom" {
        // Commissioning would have to have found one.
        let words = "Failed to configure storage layout 'custom': No custom storage layout configuration found";
        return Err(Refusal::text(400, words));
    }
    machine.volume_groups.clear();
    for disk in &mut machine.disks {
        disk.contents = Contents::Unused;
    }
    match layout {
        "blank" => {}
        "lvm" => lay_out_volumes(world, &mut machine),
        _ => {
            if let Some(disk) = machine.disks.first_mut() {
                disk.lay_out_flat(world, &[]);
            }
        }
    }
    if let Some(row) = world.machines.get_mut(id) {
        row.disks = machine.disks;
        row.volume_groups = machine.volume_groups;
    }
    Ok(answer(world, id))
}

/// LVM on the first disk: one group, one volume with the root file system.
fn lay_out_volumes(world: &mut World, machine: &mut Machine) {
    let Some(disk) = machine.disks.first_mut() else { return };
    disk.lay_out_flat(world, &[]);
    let Contents::Partitions(partitions) = &mut disk.contents else { return };
    let Some(root) = partitions.last_mut() else { return };
    root.filesystem = Some(Filesystem {
        fstype: "lvm-pv".into(),
        label: String::new(),
        uuid: world.random.uuid(),
        mount_point: None,
        mount_options: None,
    });
    root.volume_group = Some("vgroot".into());
    let Partition { id: device, size, .. } = *root;
    // The group keeps one extent of 4 MiB for itself.
    let size = size.saturating_sub(4 << 20);
    let filesystem = Filesystem {
        fstype: "ext4".into(),
        label: "root".into(),
        uuid: world.random.uuid(),
        mount_point: Some("/".into()),
        mount_options: None,
    };
    let volume =
        Volume { id: next(&mut world.counters.disk), name: "lvroot".into(), uuid: world.random.uuid(), size, filesystem: Some(filesystem) };
    let group = VolumeGroup {
        id: next(&mut world.counters.volume_group),
        name: "vgroot".into(),
        uuid: world.random.uuid(),
        size,
        volumes: vec![volume],
        devices: vec![device],
    };
    machine.volume_groups.push(group);
}

/// Restoring what commissioning found: there is no commissioning output here.
pub fn restore(world: &mut World, call: &Call) -> Reply {
    let id = call.administered_machine(world)?;
    let ready = |machine: &Machine| matches!(machine.status, Status::Ready | Status::FailedTesting);
    if !world.machines.get(id).is_some_and(ready) {
        let what = match call.operation.as_deref() {
            Some("restore_networking_configuration") => "networking configuration",
            Some("restore_storage_configuration") => "storage configuration.",
            _ => "default networking and storage configuration.",
        };
        return Err(Refusal::text(409, format!("Machine must be in a ready or failed testing state to restore {what}")));
    }
    Err(Refusal::text(500, "No resources found from commissioning output"))
}
