//! How a kubeconfig becomes a client: over the network in production, onto a simulated API server in a simulation.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::describe::describe;

/// Makes a client of a kubeconfig. Nothing is sent yet.
pub type ConnectWorkload = Arc<dyn Fn(&[u8]) -> Result<Client, UnusableKubeconfig> + Send + Sync>;

/// An API server in reach answers a connection within this time.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// A kubeconfig that makes no client. Nothing of its content is told, as it holds a key.
#[derive(Debug, thiserror::Error)]
pub enum UnusableKubeconfig {
    /// It cannot be read.
    #[error("it is not a kubeconfig in YAML or JSON")]
    Malformed,
    /// Whoever may write the Secret would run commands or read files in the manager's place.
    #[error("it has `{field}`, which would use commands or files of the manager; put the certificate, key or token itself into it")]
    Outside {
        /// What it has.
        field: &'static str,
    },
    /// Something is missing in it.
    #[error("it is incomplete: {words}")]
    Incomplete {
        /// What.
        words: String,
    },
    /// Certificate, key or proxy are of no use.
    #[error("its certificates, key or proxy cannot be used")]
    Credentials,
}

/// Clients over the network.
pub fn over_the_network() -> ConnectWorkload {
    Arc::new(|kubeconfig| {
        // Whoever came first has chosen the same one: the workspace has a single provider.
        drop(rustls::crypto::ring::default_provider().install_default());
        let kubeconfig = read(kubeconfig)?;
        let proxied = kubeconfig.clusters.iter().filter_map(|named| named.cluster.as_ref()).any(|cluster| cluster.proxy_url.is_some());
        // Nothing is waited for: files would be read at once, and there are none.
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).now_or_never();
        let config = config.ok_or(UnusableKubeconfig::Malformed)?;
        let mut config = config.map_err(|error| UnusableKubeconfig::Incomplete { words: describe(&error) })?;
        // The way is tried again as a whole, with its own delays.
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT_WITHIN);
        if !proxied {
            // A proxy of the environment leads out of the data centre, where these clusters are not.
            config.proxy_url = None;
        }
        Client::try_from(config).map_err(|_| UnusableKubeconfig::Credentials)
    })
}

fn read(bytes: &[u8]) -> Result<Kubeconfig, UnusableKubeconfig> {
    let text = str::from_utf8(bytes).map_err(|_| UnusableKubeconfig::Malformed)?;
    let kubeconfig = Kubeconfig::from_yaml(text).map_err(|_| UnusableKubeconfig::Malformed)?;
    let users = kubeconfig.auth_infos.iter().filter_map(|named| named.auth_info.as_ref());
    let clusters = kubeconfig.clusters.iter().filter_map(|named| named.cluster.as_ref());
    let of_users = users.flat_map(|user| {
        [
            ("exec", user.exec.is_some()),
            ("auth-provider", user.auth_provider.is_some()),
            ("tokenFile", user.token_file.is_some()),
            ("client-certificate", user.client_certificate.is_some()),
            ("client-key", user.client_key.is_some()),
        ]
    });
    let of_clusters = clusters.map(|cluster| ("certificate-authority", cluster.certificate_authority.is_some()));
    let outside = of_users.chain(of_clusters).find(|(_, present)| *present);
    match outside {
        Some((field, _)) => Err(UnusableKubeconfig::Outside { field }),
        None => Ok(kubeconfig),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn kubeconfig(cluster: &Value, user: &Value) -> String {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        })
        .to_string()
    }

    fn refused(text: &str) -> String {
        let error = over_the_network()(text.as_bytes()).err().expect("it must be refused");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("canary"), "{shown}");
        shown
    }

    #[tokio::test]
    async fn a_kubeconfig_may_not_name_commands_or_files() {
        let server = json!({"server": "https://127.0.0.1:1"});
        for (field, user) in [
            ("exec", json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "canary", "interactiveMode": "Never"}})),
            ("auth-provider", json!({"auth-provider": {"name": "gcp", "config": {"cmd-path": "canary"}}})),
            ("tokenFile", json!({"tokenFile": "/canary"})),
            ("client-certificate", json!({"client-certificate": "/canary"})),
            ("client-key", json!({"client-key": "/canary"})),
        ] {
            assert!(refused(&kubeconfig(&server, &user)).contains(&format!("`{field}`")), "{field}");
        }
        let file = json!({"server": "https://127.0.0.1:1", "certificate-authority": "/canary"});
        assert!(refused(&kubeconfig(&file, &json!({"token": "canary"}))).contains("`certificate-authority`"));
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_kubeconfig_is_told_without_its_content() {
        assert!(refused("token: [canary").contains("not a kubeconfig"));
        assert!(refused("canary").contains("not a kubeconfig"));
        assert!(refused("{}").contains("incomplete"));
        assert!(refused(&kubeconfig(&json!({}), &json!({"token": "canary"}))).contains("cluster url is missing"));
        let key = json!({"client-certificate-data": "Y2FuYXJ5", "client-key-data": "Y2FuYXJ5"});
        assert!(refused(&kubeconfig(&json!({"server": "https://127.0.0.1:1"}), &key)).contains("cannot be used"));
        let token = kubeconfig(&json!({"server": "https://127.0.0.1:1"}), &json!({"token": "canary"}));
        assert!(over_the_network()(token.as_bytes()).is_ok());
    }
}
