//! VM hosts, which MAAS also calls pods. Versions after 3.7 have none: every call is then [`Error::Gone`].

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use crate::{
    Client, Error, Id, ResourcePool, SecretParameters, SystemId, Zone,
    call::{Call, Form, Path},
    compose::{Compose, Composed},
    units::{ByteCount, MebiBytes},
};

/// A VM host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct VmHost {
    /// Its number.
    pub id: Id<VmHost>,
    /// Its name; several hosts may have the same.
    pub name: String,
    /// `lxd` or `virsh`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The version of LXD; empty if MAAS could not reach it.
    pub version: String,
    /// Its tags, which its VMs get too.
    pub tags: Vec<String>,
    /// What its VMs can be, such as `amd64/generic`; empty if MAAS could not reach it.
    pub architectures: Vec<String>,
    /// What it can do.
    pub capabilities: Vec<String>,
    /// What it has.
    pub total: VmHostResources,
    /// What its VMs were promised.
    pub used: VmHostResources,
    /// The difference, which may be negative.
    pub available: VmHostResources,
    /// Its zone, which its VMs do *not* get.
    pub zone: Zone,
    /// Its pool, which its VMs get unless told otherwise.
    pub pool: ResourcePool,
    /// How many times its threads may be promised.
    pub cpu_over_commit_ratio: f64,
    /// How many times its memory may be promised.
    pub memory_over_commit_ratio: f64,
    /// Its storage pools.
    pub storage_pools: Vec<StoragePool>,
    /// The machine it is.
    pub host: HostMachine,
    /// How VMs are attached to interfaces without a bridge.
    pub default_macvlan_mode: Option<String>,
    /// Its address in the API.
    pub resource_uri: String,
}

/// What a VM host or a cluster of them has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct VmHostResources {
    /// Threads.
    pub cores: i64,
    /// Memory.
    pub memory: MebiBytes,
    /// Disk space.
    pub local_storage: ByteCount,
}

/// A storage pool of a VM host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StoragePool {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Such as `dir` or `lvm`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it is.
    pub path: String,
    /// Its size.
    pub total: ByteCount,
    /// What VMs were promised of it.
    pub used: ByteCount,
    /// The difference, which may be negative.
    pub available: ByteCount,
    /// Whether disks go there by default.
    pub default: bool,
}

/// The machine a VM host is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HostMachine {
    /// Its id; nothing if MAAS does not know the machine.
    pub system_id: Option<SystemId>,
    /// MAAS's note that this is not all it knows.
    #[serde(rename = "__incomplete__")]
    pub incomplete: bool,
}

/// What a VM host shall be; what is not given stays as it is. For administrators.
#[derive(Clone, Debug, Default)]
pub struct VmHostSettings {
    /// Its name.
    pub name: Option<String>,
    /// Where LXD or libvirt is.
    pub power_address: Option<String>,
    /// The LXD project.
    pub project: Option<String>,
    /// The trust password of LXD.
    pub password: Option<SecretString>,
    /// The password of libvirt. Rests on [reading](crate#what-it-rests-on).
    pub power_pass: Option<SecretString>,
    /// The client certificate for LXD in PEM; MAAS makes one if there is none.
    pub certificate: Option<String>,
    /// Its private key in PEM.
    pub key: Option<SecretString>,
    /// Its zone, by name.
    pub zone: Option<String>,
    /// Its pool, by name.
    pub pool: Option<String>,
    /// Its tags.
    pub tags: Option<Vec<String>>,
    /// How many times its threads may be promised, up to 10.
    pub cpu_over_commit_ratio: Option<f64>,
    /// How many times its memory may be promised, up to 10.
    pub memory_over_commit_ratio: Option<f64>,
    /// The id of the storage pool disks go to by default.
    pub default_storage_pool: Option<String>,
    /// How VMs are attached to interfaces without a bridge.
    pub default_macvlan_mode: Option<String>,
}

/// Calls on VM hosts, which MAAS also calls pods; see [`Client::vm_hosts`]. Versions after 3.7 have none: every call is then
/// [`Error::Gone`].
#[derive(Clone, Copy, Debug)]
pub struct VmHosts<'a>(&'a Client);

impl Client {
    /// The VM hosts, which versions up to 3.7 have.
    pub fn vm_hosts(&self) -> VmHosts<'_> {
        VmHosts(self)
    }
}

impl VmHostSettings {
    fn form(&self) -> Form {
        // As MAAS writes them: whole numbers with their `.0`.
        let ratio = |ratio: Option<f64>| ratio.map(|ratio| format!("{ratio:?}"));
        Form::new()
            .maybe("name", self.name.as_ref())
            .maybe("power_address", self.power_address.as_ref())
            .maybe("project", self.project.as_ref())
            .maybe_secret("password", self.password.as_ref().map(ExposeSecret::expose_secret))
            .maybe_secret("power_pass", self.power_pass.as_ref().map(ExposeSecret::expose_secret))
            .maybe("certificate", self.certificate.as_ref())
            .maybe_secret("key", self.key.as_ref().map(ExposeSecret::expose_secret))
            .maybe("zone", self.zone.as_ref())
            .maybe("pool", self.pool.as_ref())
            .maybe("tags", self.tags.as_ref().map(|tags| tags.join(",")))
            .maybe("cpu_over_commit_ratio", ratio(self.cpu_over_commit_ratio))
            .maybe("memory_over_commit_ratio", ratio(self.memory_over_commit_ratio))
            .maybe("default_storage_pool", self.default_storage_pool.as_ref())
            .maybe("default_macvlan_mode", self.default_macvlan_mode.as_ref())
    }
}

fn one(id: Id<VmHost>) -> Path {
    Path::new("vm-hosts").item(id)
}

impl VmHosts<'_> {
    /// All VM hosts.
    pub async fn list(self) -> Result<Vec<VmHost>, Error> {
        self.0.json(Call::get(Path::new("vm-hosts"))).await
    }

    /// One VM host.
    pub async fn read(self, id: Id<VmHost>) -> Result<VmHost, Error> {
        self.0.object(Call::get(one(id)).about("VM host", id)).await
    }

    /// Registers a VM host, `lxd` or `virsh`. For administrators. One that MAAS cannot reach is registered all the same, without
    /// architectures: check the answer.
    pub async fn create(self, kind: &str, settings: &VmHostSettings) -> Result<VmHost, Error> {
        let call = Call::post(Path::new("vm-hosts")).form(settings.form().with("type", kind)).slow();
        self.0.object(call.about("VM host", settings.name.as_ref().or(settings.power_address.as_ref()).map_or(kind, String::as_str))).await
    }

    /// Changes a VM host. For administrators.
    pub async fn update(self, id: Id<VmHost>, settings: &VmHostSettings) -> Result<VmHost, Error> {
        self.0.object(Call::put(one(id)).form(settings.form()).slow().about("VM host", id)).await
    }

    /// Removes a VM host and its VMs' machines from MAAS. The VMs themselves run on, unless `decompose` destroys them. For administrators.
    pub async fn delete(self, id: Id<VmHost>, decompose: bool) -> Result<(), Error> {
        let query = if decompose { Form::new().with("decompose", true) } else { Form::new() };
        self.0.done(Call::delete(one(id)).query(query).slow().once().about("VM host", id)).await
    }

    /// Has MAAS look at the host anew. For administrators.
    pub async fn refresh(self, id: Id<VmHost>) -> Result<VmHost, Error> {
        self.0.object(Call::post(one(id)).operation("refresh").slow().repeatable().about("VM host", id)).await
    }

    /// How MAAS reaches it, private key included. For administrators.
    pub async fn parameters(self, id: Id<VmHost>) -> Result<SecretParameters, Error> {
        self.0.json(Call::get(one(id)).operation("parameters").about("VM host", id)).await
    }

    /// Gives it a tag. For administrators.
    pub async fn add_tag(self, id: Id<VmHost>, tag: &str) -> Result<VmHost, Error> {
        self.0.object(Call::post(one(id)).operation("add_tag").form(Form::new().with("tag", tag)).repeatable().about("VM host", id)).await
    }

    /// Takes a tag from it. For administrators.
    pub async fn remove_tag(self, id: Id<VmHost>, tag: &str) -> Result<VmHost, Error> {
        self.0
            .object(Call::post(one(id)).operation("remove_tag").form(Form::new().with("tag", tag)).repeatable().about("VM host", id))
            .await
    }

    /// Makes a VM. For administrators. A host without room is [`Error::Unavailable`] without a time to try again: take another one.
    ///
    /// The VM is nobody's until it is allocated. After [`Error::OutcomeUnknown`] look for its name before composing again.
    pub async fn compose(self, id: Id<VmHost>, vm: &Compose) -> Result<Composed, Error> {
        let call = Call::post(one(id)).operation("compose").form(vm.form()).slow().taken_is_not_found().about("VM host", id);
        self.0.object(call).await
    }
}
