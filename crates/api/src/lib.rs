//! The kinds of the MAAS provider, the parts of Cluster API it reads, conditions and names: data only.
//!
//! Everybody who decides or acts uses it; it knows nobody. What two spellings of one wish mean is decided here and nowhere else: the
//! accessors of [`MaasMachineSpec`] and [`MaasClusterSpec`] read a manifest of any generation, and nothing else looks at both spellings.
//!
//! Install [`definitions`], not what a kind says of itself: labels and corrections of the schema are added there.
#![allow(clippy::duplicated_attributes, reason = "columns of a kind look alike")]

pub mod admission;
mod annotation;
pub mod cluster_api;
pub mod condition;
mod definitions;
mod endpoint;
mod endpoint_intent;
mod failure_domains;
mod intent;
mod lxd;
mod maas_cluster;
mod maas_cluster_template;
mod maas_machine;
mod maas_machine_status;
mod maas_machine_template;
mod maas_remediation;
mod maas_remediation_template;
mod machine_wishes;
pub mod names;
mod network;
mod number;
mod provider_id;
mod provisioning;
mod system_id;
mod template_metadata;
mod text;
mod units;

pub use annotation::AnnotationRead;
pub use definitions::definitions;
pub use endpoint::{AddressChoice, ApiEndpoint, EndpointMode, EndpointSettings, Vip};
pub use endpoint_intent::{EndpointIntent, EndpointIntentRead, EndpointOrder, EndpointOrderKind};
pub use failure_domains::{FailureDomain, FailureDomainDetails, FailureDomains};
pub use intent::{Claim, Intent, IntentRead, InvalidClaim, LinkedAddress};
pub use lxd::{ClusterLxdConfig, Lxd, LxdConfig, LxdNetwork, LxdStorage, NicType, ProvisioningMode, VmConfig};
pub use maas_cluster::{
    ClusterInitialization, ClusterNetworkStatus, IdentityKind, IdentityRef, MaasCluster, MaasClusterSpec, MaasClusterStatus,
};
pub use maas_cluster_template::{MaasClusterTemplate, MaasClusterTemplateResource, MaasClusterTemplateSpec};
pub use maas_machine::{MaasMachine, MaasMachineSpec};
pub use maas_machine_status::{
    AddressType, Attempt, MAX_ATTEMPTS_KEPT, MaasMachineStatus, MachineAddress, MachineInitialization, Phase, VmResourceUsage,
};
pub use maas_machine_template::{
    MaasMachineTemplate, MaasMachineTemplateResource, MaasMachineTemplateSpec, MaasMachineTemplateStatus, NodeInfo,
};
pub use maas_remediation::{
    MaasRemediation, MaasRemediationSpec, MaasRemediationStatus, RemediationPhase, RemediationStrategy, RemediationType,
};
pub use maas_remediation_template::{MaasRemediationTemplate, MaasRemediationTemplateResource, MaasRemediationTemplateSpec};
pub use machine_wishes::{Image, Mode};
pub use network::{AddressPool, LinkMode, NetworkInterface, StaticIp};
pub use provider_id::{InvalidProviderId, ProviderId};
pub use provisioning::{Deadlines, Erase, Provisioning, Swap};
pub use system_id::SystemId;
pub use template_metadata::TemplateMetadata;
pub use units::{GigaBytes, MebiBytes};
