//! Kubeconfigs as kubectl, our clients and the Kubernetes programs read them.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::json;

use crate::pki::Credentials;

/// A kubeconfig with everything inside, for one cluster and one user.
pub(crate) fn render(cluster: &str, server: &str, authority: &str, user: &str, credentials: &Credentials) -> String {
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"server": server, "certificate-authority-data": BASE64.encode(authority)}}],
        "users": [{"name": user, "user": {
            "client-certificate-data": BASE64.encode(&credentials.certificate),
            "client-key-data": BASE64.encode(&credentials.key),
        }}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": user}}],
        "current-context": cluster,
    });
    // JSON is YAML, so a document that cannot be written as YAML (it never was seen) still is a kubeconfig.
    serde_saphyr::to_string(&document).unwrap_or_else(|_| document.to_string())
}
