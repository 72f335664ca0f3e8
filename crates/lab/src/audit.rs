//! The API server's own record of every call: the best witness of what a controller reads and writes. Tests ask for it.

use crate::{LabDirectory, LabError};
use std::fs;

/// Bodies only where they matter, because the record of a busy lab grows quickly.
const POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1",
  "kind": "Policy",
  "omitStages": ["RequestReceived"],
  "rules": [
    {"level": "Request", "resources": [{"group": "infrastructure.cluster.x-k8s.io"}, {"group": "ipam.cluster.x-k8s.io"}]},
    {"level": "Request", "verbs": ["patch"], "resources": [{"group": "cluster.x-k8s.io", "resources": ["machines/status"]}]},
    {"level": "Metadata"}
  ]
}"#;

/// What the API server has to be told.
pub fn arguments(directory: &LabDirectory) -> Result<[String; 2], LabError> {
    let policy = directory.path().join("audit-policy.json");
    fs::write(&policy, POLICY).map_err(LabError::io("write", &policy))?;
    Ok([format!("--audit-policy-file={}", policy.display()), format!("--audit-log-path={}", directory.audit_log().display())])
}
