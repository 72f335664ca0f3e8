//! The parts of Cluster API that are read: Cluster and Machine in the shapes of v1beta2 and v1beta1, who owns an object, and claims of
//! addresses. Watched by the manager; data that decisions are made of.

mod address;
mod cluster;
mod machine;

pub use address::{AddressReference, AddressSpec, ClaimSpec, ClaimStatus, IpAddress, IpAddressClaim};
pub use cluster::Cluster;
pub use machine::Machine;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::{Deserialize, Serialize};

use crate::names;

/// An object of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    /// Its API group, without a version.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// A reference on the wire: the group stands alone in v1beta2 and before a version in v1beta1.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct WireReference {
    #[serde(skip_serializing_if = "Option::is_none")]
    api_group: Option<String>,
    #[serde(skip_serializing)]
    api_version: Option<String>,
    kind: String,
    name: String,
}

impl WireReference {
    /// Nothing, if it names nothing: v1beta2 has empty references where v1beta1 had none.
    fn into_reference(self) -> Option<Reference> {
        let group = self.api_group.or_else(|| Some(group_of(&self.api_version?).to_owned())).unwrap_or_default();
        (!self.name.is_empty()).then_some(Reference { group, kind: self.kind, name: self.name })
    }
}

impl From<Reference> for WireReference {
    fn from(reference: Reference) -> Self {
        Self { api_group: Some(reference.group), api_version: None, kind: reference.kind, name: reference.name }
    }
}

fn group_of(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

/// The owner of an object that is a Cluster API object of this kind, in whatever version. Whether it calls itself the controller differs from
/// version to version and says nothing.
pub fn owner<'a>(metadata: &'a ObjectMeta, kind: &str) -> Option<&'a OwnerReference> {
    let owners = metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.kind == kind && group_of(&owner.api_version) == names::CLUSTER_API_GROUP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_14_an_owner_is_found_by_group_and_kind_whatever_its_version_and_flags() {
        let reference = |api_version: &str, kind: &str, name: &str, controller| OwnerReference {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            controller,
            ..OwnerReference::default()
        };
        for (api_version, controller) in
            [("cluster.x-k8s.io/v1beta1", Some(true)), ("cluster.x-k8s.io/v1beta2", None), ("cluster.x-k8s.io/v1", Some(false))]
        {
            let metadata = ObjectMeta {
                owner_references: Some(vec![
                    reference("apps/v1", "Machine", "other-group", Some(true)),
                    reference("infrastructure.cluster.x-k8s.io/v1beta1", "Machine", "longer-group", Some(true)),
                    reference(api_version, "MachineSet", "other-kind", Some(true)),
                    reference(api_version, "Machine", "it", controller),
                ]),
                ..ObjectMeta::default()
            };
            assert_eq!(owner(&metadata, "Machine").unwrap().name, "it", "{api_version}");
            assert_eq!(owner(&metadata, "Cluster"), None);
        }
        assert_eq!(owner(&ObjectMeta::default(), "Machine"), None);
    }
}
