//! What machines of a template will be like at least: the autoscaler starts a group from zero by it.

use std::collections::BTreeMap;

use api::{MaasMachineSpec, MaasMachineTemplateStatus, NodeInfo};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// The smallest machine that fits, as far as the template says. Nothing of what it does not say is guessed.
pub fn status(spec: &MaasMachineSpec) -> MaasMachineTemplateStatus {
    let mut capacity = BTreeMap::new();
    if spec.cpu() > 0 {
        capacity.insert("cpu".to_owned(), Quantity(spec.cpu().to_string()));
    }
    if spec.memory().0 > 0 {
        capacity.insert("memory".to_owned(), Quantity(format!("{}Mi", spec.memory())));
    }
    if let Some(disk) = spec.disk() {
        capacity.insert("ephemeral-storage".to_owned(), Quantity(format!("{disk}G")));
    }
    let architecture = spec.architecture.as_deref().and_then(architecture);
    let node_info = architecture
        .map(|architecture| NodeInfo { architecture: Some(architecture.to_owned()), operating_system: Some("linux".to_owned()) });
    MaasMachineTemplateStatus { capacity, node_info }
}

/// What Kubernetes calls an architecture of MAAS, such as `amd64/generic`.
fn architecture(name: &str) -> Option<&'static str> {
    match name.split('/').next()? {
        "amd64" => Some("amd64"),
        "arm64" => Some("arm64"),
        "ppc64el" => Some("ppc64le"),
        "s390x" => Some("s390x"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_39_a_template_says_what_its_machines_have_at_least() {
        let spec = MaasMachineSpec {
            min_cpu: Some(8),
            min_memory: Some(16_384),
            min_disk_size: Some(100),
            architecture: Some("arm64/generic".to_owned()),
            ..MaasMachineSpec::default()
        };
        let status = status(&spec);
        let amount = |name: &str| status.capacity.get(name).map(|amount| amount.0.as_str());
        assert_eq!((amount("cpu"), amount("memory"), amount("ephemeral-storage")), (Some("8"), Some("16384Mi"), Some("100G")));
        assert_eq!(status.node_info.unwrap().architecture.as_deref(), Some("arm64"));
    }

    #[test]
    fn what_a_template_does_not_say_is_not_guessed() {
        assert_eq!(status(&MaasMachineSpec::default()), MaasMachineTemplateStatus::default());
    }
}
