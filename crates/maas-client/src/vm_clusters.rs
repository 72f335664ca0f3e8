//! Clusters of LXD VM hosts. Answers with clusters in them rest on reading MAAS's source, not on recordings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Client, Error, Id,
    call::{Call, Form, Path},
    units::ByteCount,
    vm_hosts::VmHostResources,
};

/// A cluster of LXD VM hosts. Rests on reading MAAS's source, not on recordings: those hold an empty list only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct VmCluster {
    /// Its number.
    pub id: Id<VmCluster>,
    /// Its name.
    pub name: String,
    /// The LXD project.
    pub project: String,
    /// How many hosts it has.
    pub vmhost_count: u32,
    /// How many VMs MAAS knows on them.
    pub vm_count: u32,
    /// The version of LXD.
    pub version: String,
    /// What all hosts have.
    pub total: VmHostResources,
    /// What VMs were promised.
    pub used: VmHostResources,
    /// The difference.
    pub available: VmHostResources,
    /// Its storage pools by name.
    pub storage_pools: BTreeMap<String, ClusterStoragePool>,
    /// Its address in the API.
    pub resource_uri: String,
}

/// A storage pool of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ClusterStoragePool {
    /// What is left.
    pub free: ByteCount,
    /// Its size.
    pub total: ByteCount,
}

/// What a cluster shall be; what is not given stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VmClusterSettings {
    /// Its name.
    pub name: Option<String>,
    /// The zone of its hosts, by name.
    pub zone: Option<String>,
    /// The pool of its hosts, by name.
    pub pool: Option<String>,
}

/// Calls on VM clusters; see [`Client::vm_clusters`]. All but an empty list rest on reading MAAS's source, not on recordings.
#[derive(Clone, Copy, Debug)]
pub struct VmClusters<'a>(&'a Client);

impl Client {
    /// The clusters of VM hosts. Calls on them rest on reading MAAS's source, not on recordings.
    pub fn vm_clusters(&self) -> VmClusters<'_> {
        VmClusters(self)
    }
}

fn one(id: Id<VmCluster>) -> Path {
    Path::new("vm-clusters").item(id)
}

impl VmClusters<'_> {
    /// All clusters.
    pub async fn list(self) -> Result<Vec<VmCluster>, Error> {
        self.0.json(Call::get(Path::new("vm-clusters"))).await
    }

    /// One cluster.
    pub async fn read(self, id: Id<VmCluster>) -> Result<VmCluster, Error> {
        self.0.object(Call::get(one(id)).about("VM cluster", id)).await
    }

    /// Changes a cluster. For administrators.
    pub async fn update(self, id: Id<VmCluster>, settings: &VmClusterSettings) -> Result<VmCluster, Error> {
        let form =
            Form::new().maybe("name", settings.name.as_ref()).maybe("zone", settings.zone.as_ref()).maybe("pool", settings.pool.as_ref());
        self.0.object(Call::put(one(id)).form(form).about("VM cluster", id)).await
    }

    /// Removes a cluster with its hosts, and with `decompose` their VMs. For administrators.
    pub async fn delete(self, id: Id<VmCluster>, decompose: bool) -> Result<(), Error> {
        let query = if decompose { Form::new().with("decompose", true) } else { Form::new() };
        self.0.done(Call::delete(one(id)).query(query).slow().once().about("VM cluster", id)).await
    }
}
