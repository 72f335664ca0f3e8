//! What only an admission policy can check: that templates do not change, but for the dry runs in which Cluster API's topology controller compares
//! them. Servers have it since Kubernetes 1.30. Used by the generator of manifests and by tests.

use k8s_openapi::{
    api::admissionregistration::v1::{
        MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
        ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec, Validation,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::names;

/// Name of the policy and of its binding.
pub const TEMPLATE_IMMUTABILITY: &str = "template-immutability.infrastructure.cluster.x-k8s.io";

/// Refuses changes of what a template says of its machines, clusters or remediations.
pub fn template_immutability() -> (ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding) {
    let text = |text: &str| text.to_owned();
    let texts = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    let metadata = || ObjectMeta {
        name: Some(text(TEMPLATE_IMMUTABILITY)),
        labels: Some([(text(names::PROVIDER), text(names::PROVIDER_NAME))].into()),
        ..ObjectMeta::default()
    };
    let changes = NamedRuleWithOperations {
        api_groups: texts(&[names::GROUP]),
        api_versions: texts(&["*"]),
        operations: texts(&["UPDATE"]),
        resources: texts(&["maasclustertemplates", "maasmachinetemplates", "maasremediationtemplates"]),
        ..NamedRuleWithOperations::default()
    };
    let unchanged = Validation {
        expression: format!(
            "object.spec.template.spec == oldObject.spec.template.spec || \
             (has(request.dryRun) && request.dryRun && has(object.metadata.annotations) && '{}' in object.metadata.annotations)",
            names::TOPOLOGY_DRY_RUN
        ),
        message: Some(text(
            "spec.template.spec cannot be changed: make a template with another name and refer to that; after a change of machines Cluster API replaces them",
        )),
        ..Validation::default()
    };
    let policy = ValidatingAdmissionPolicy {
        metadata: metadata(),
        spec: Some(ValidatingAdmissionPolicySpec {
            failure_policy: Some(text("Fail")),
            match_constraints: Some(MatchResources { resource_rules: Some(vec![changes]), ..MatchResources::default() }),
            validations: Some(vec![unchanged]),
            ..ValidatingAdmissionPolicySpec::default()
        }),
        status: None,
    };
    let binding = ValidatingAdmissionPolicyBinding {
        metadata: metadata(),
        spec: Some(ValidatingAdmissionPolicyBindingSpec {
            policy_name: Some(text(TEMPLATE_IMMUTABILITY)),
            validation_actions: texts(&["Deny"]),
            ..ValidatingAdmissionPolicyBindingSpec::default()
        }),
    };
    (policy, binding)
}
