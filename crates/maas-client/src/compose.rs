//! What VM to make on a VM host: every parameter MAAS knows.

use serde::{Deserialize, Serialize};

use crate::{Domain, Id, ResourcePool, SystemId, Zone, call::Form, units::MebiBytes};

/// What VM to make. What is not given is MAAS's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compose {
    /// Its name; without one MAAS invents one and nobody finds it again.
    pub hostname: Option<String>,
    /// How many threads; one without.
    pub cores: Option<u32>,
    /// These threads of the host for itself; `cores` does not count then.
    pub pinned_cores: Vec<u32>,
    /// How much memory, at least 1,024 MiB; 2,048 without.
    pub memory: Option<MebiBytes>,
    /// Takes its memory from huge pages.
    pub hugepages_backed: Option<bool>,
    /// At least this fast, in MHz.
    pub cpu_speed: Option<u32>,
    /// Such as `amd64/generic`.
    pub architecture: Option<String>,
    /// Its disks, such as `root:20(default),data:50(fast)`; 8 GB without.
    pub storage: Option<String>,
    /// Its interfaces, such as `eth0:subnet_cidr=10.20.0.0/24`. The host must be a machine MAAS knows.
    pub interfaces: Option<String>,
    /// The domain its name is in, by number.
    pub domain: Option<Id<Domain>>,
    /// Its zone, by number; without, the default zone and not the host's.
    pub zone: Option<Id<Zone>>,
    /// Its pool, by number; the host's without.
    pub pool: Option<Id<ResourcePool>>,
    /// Makes it Ready at once. After its release it is New then.
    pub skip_commissioning: Option<bool>,
}

/// The VM that was made: nothing but its id. Read it for more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Composed {
    /// Its id.
    pub system_id: SystemId,
    /// Its address in the API.
    pub resource_uri: String,
}

impl Compose {
    pub(crate) fn form(&self) -> Form {
        Form::new()
            .maybe("hostname", self.hostname.as_ref())
            .maybe("cores", self.cores)
            .each("pinned_cores", &self.pinned_cores)
            .maybe("memory", self.memory)
            .maybe("hugepages_backed", self.hugepages_backed)
            .maybe("cpu_speed", self.cpu_speed)
            .maybe("architecture", self.architecture.as_ref())
            .maybe("storage", self.storage.as_ref())
            .maybe("interfaces", self.interfaces.as_ref())
            .maybe("domain", self.domain)
            .maybe("zone", self.zone)
            .maybe("pool", self.pool)
            .maybe("skip_commissioning", self.skip_commissioning)
    }
}
