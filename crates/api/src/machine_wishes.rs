//! What a machine's spec means: the one place where two spellings of one wish meet. Used by all rules about machines.

use crate::{Deadlines, Erase, GigaBytes, MaasMachineSpec, MebiBytes, Provisioning, ProvisioningMode, Swap};

/// What kind of machine is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Metal and nothing else.
    Metal,
    /// A virtual machine that is made for it.
    Lxd,
    /// Whatever is free, also a virtual machine that is already there.
    Any,
}

/// What is deployed, as MAAS wants to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The operating system, such as `ubuntu`; `custom` for uploaded images.
    pub os: String,
    /// The release of it, or the name of an uploaded image.
    pub series: String,
}

impl MaasMachineSpec {
    /// The size of a virtual machine's disk when nothing is said.
    pub const DEFAULT_VM_DISK: GigaBytes = GigaBytes(60);

    /// CPU cores at least.
    pub fn cpu(&self) -> u32 {
        self.min_cpu.or(self.min_cpu_alias).unwrap_or_default()
    }

    /// Memory at least.
    pub fn memory(&self) -> MebiBytes {
        MebiBytes(self.min_memory.or(self.min_memory_in_mb).unwrap_or_default().into())
    }

    /// The disk at least. A virtual machine always has one.
    pub fn disk(&self) -> Option<GigaBytes> {
        let metal = self.min_disk_size.filter(|size| *size > 0).map(|size| GigaBytes(size.into()));
        if !self.uses_lxd() {
            return metal;
        }
        let older = self.lxd.as_ref().and_then(|lxd| lxd.vm_config.as_ref()?.disk_size).map(|size| GigaBytes(size.into()));
        let newer = self.lxd_config.as_ref().and_then(|lxd| GigaBytes::from_text(lxd.storage.as_ref()?.size.as_deref()?));
        let said = older.max(newer);
        if metal.is_none() && said.is_none() { Some(Self::DEFAULT_VM_DISK) } else { metal.max(said) }
    }

    /// Whether the disks are left alone and the image runs from memory.
    pub fn in_memory(&self) -> bool {
        self.deploy_in_memory.or(self.ephemeral).unwrap_or_default()
    }

    /// Metal only when asked for; `lxd.enabled: false` does not ask, since the Go provider's kind fills it in by itself.
    pub fn mode(&self) -> Mode {
        let enabled = self.lxd.as_ref().and_then(|lxd| lxd.enabled).unwrap_or_default();
        match self.provisioning_mode {
            Some(ProvisioningMode::Lxd) => Mode::Lxd,
            Some(ProvisioningMode::BareMetal) => Mode::Metal,
            None if enabled => Mode::Lxd,
            None => Mode::Any,
        }
    }

    /// Whether a virtual machine is to be made.
    pub fn uses_lxd(&self) -> bool {
        self.mode() == Mode::Lxd
    }

    /// What is deployed: text before the first slash is the operating system, and an image without one was uploaded.
    pub fn image(&self) -> Image {
        let (os, series) = self.image.split_once('/').unwrap_or(("custom", &self.image));
        Image { os: os.to_owned(), series: series.to_owned() }
    }

    /// Whether the machine gets swap.
    pub fn swap(&self) -> Swap {
        self.swap.unwrap_or_default()
    }

    /// What happens to the disks of the machine when it is given back.
    pub fn erase(&self) -> Erase {
        self.erase.unwrap_or_default()
    }

    /// How many machines are tried; at least one.
    pub fn attempts(&self) -> u32 {
        let said = self.provisioning.as_ref().and_then(|provisioning| provisioning.attempts);
        said.unwrap_or(Provisioning::DEFAULT_ATTEMPTS).max(1)
    }

    /// How long each phase may take.
    pub fn deadlines(&self) -> Deadlines {
        self.provisioning.clone().unwrap_or_default().deadlines(self.erase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::time::Duration;

    fn spec(wishes: &Value) -> MaasMachineSpec {
        let mut all = json!({"image": "ubuntu/noble"});
        all.as_object_mut().unwrap().extend(wishes.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn both_spellings_of_size_are_one_wish() {
        for wishes in [json!({"minCPU": 4, "minMemory": 8192}), json!({"minCpu": 4, "minMemoryInMB": 8192})] {
            assert_eq!((spec(&wishes).cpu(), spec(&wishes).memory()), (4, MebiBytes(8192)), "{wishes}");
        }
        assert_eq!((spec(&json!({})).cpu(), spec(&json!({})).memory()), (0, MebiBytes(0)));
    }

    #[test]
    fn both_spellings_of_running_from_memory_are_one_wish() {
        for (wishes, wanted) in [(json!({}), false), (json!({"deployInMemory": true}), true), (json!({"ephemeral": true}), true)] {
            assert_eq!(spec(&wishes).in_memory(), wanted, "{wishes}");
        }
    }

    #[test]
    fn metal_is_only_meant_when_it_is_said() {
        for (wishes, mode) in [
            (json!({}), Mode::Any),
            (json!({"lxd": {"enabled": false}}), Mode::Any),
            (json!({"lxd": {"enabled": true}}), Mode::Lxd),
            (json!({"lxd": {"vmConfig": {"diskSize": 10}}}), Mode::Any),
            (json!({"provisioningMode": "lxd"}), Mode::Lxd),
            (json!({"provisioningMode": "bare-metal"}), Mode::Metal),
            (json!({"provisioningMode": "baremetal"}), Mode::Metal),
        ] {
            assert_eq!(spec(&wishes).mode(), mode, "{wishes}");
        }
    }

    #[test]
    fn the_largest_disk_that_is_asked_for_counts() {
        for (wishes, gigabytes) in [
            (json!({}), None),
            (json!({"minDiskSize": 0}), None),
            (json!({"minDiskSize": 100}), Some(100)),
            (json!({"provisioningMode": "lxd"}), Some(60)),
            (json!({"provisioningMode": "lxd", "minDiskSize": 20}), Some(20)),
            (json!({"lxd": {"enabled": true, "vmConfig": {"diskSize": 80}}, "minDiskSize": 20}), Some(80)),
            (json!({"provisioningMode": "lxd", "lxdConfig": {"storage": {"size": "2TB"}}, "minDiskSize": 20}), Some(2000)),
            (json!({"provisioningMode": "lxd", "lxdConfig": {"storage": {"size": "10"}}, "minDiskSize": 20}), Some(20)),
        ] {
            assert_eq!(spec(&wishes).disk(), gigabytes.map(GigaBytes), "{wishes}");
        }
    }

    #[test]
    fn an_image_is_split_at_its_first_slash() {
        for (image, os, series) in [
            ("ubuntu/noble", "ubuntu", "noble"),
            ("rhel/rocky-92/x", "rhel", "rocky-92/x"),
            ("custom/u-2204-0-k-1336-0", "custom", "u-2204-0-k-1336-0"),
            ("u-2204-0-k-1336-0", "custom", "u-2204-0-k-1336-0"),
        ] {
            assert_eq!(spec(&json!({"image": image})).image(), Image { os: os.to_owned(), series: series.to_owned() });
        }
    }

    #[test]
    fn deadlines_and_attempts_have_defaults_and_are_settings() {
        let unset = spec(&json!({}));
        assert_eq!(unset.attempts(), 3);
        assert_eq!(unset.deadlines(), Deadlines { allocate: None, deploy: Duration::from_hours(1), release: Duration::from_mins(30) });
        assert_eq!(spec(&json!({"erase": "Full"})).deadlines().release, Duration::from_hours(24));
        let set = json!({"provisioning": {"attempts": 1, "allocateTimeout": "90s", "deployTimeout": "1h30m", "releaseTimeout": "45m"}});
        assert_eq!(spec(&set).attempts(), 1);
        assert_eq!(
            spec(&set).deadlines(),
            Deadlines { allocate: Some(Duration::from_secs(90)), deploy: Duration::from_mins(90), release: Duration::from_mins(45) }
        );
    }

    #[test]
    fn a_number_beyond_all_machines_is_still_read() {
        let spec = spec(&json!({"minCPU": -1, "minMemory": 8_589_934_592_i64}));
        assert_eq!((spec.cpu(), spec.memory()), (0, MebiBytes(2_147_483_647)));
    }

    #[test]
    fn what_is_empty_was_not_given() {
        let empty =
            spec(&json!({"failureDomain": "", "systemID": "", "providerID": "", "resourcePool": "", "staticIP": {"ip": "", "cidr": ""}}));
        assert_eq!(empty.static_ip, Some(crate::StaticIp::default()));
        assert_eq!(serde_json::to_value(&empty).unwrap(), json!({"image": "ubuntu/noble", "staticIP": {}}));
    }
}
