//! The Cluster API managers with their kinds, webhooks and conversion registered as a real installation has them, only that the
//! API server calls the managers on loopback instead of through a Service.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig},
    apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions,
};
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
    core::Resource,
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::Instant;

use crate::{
    LabError,
    control_plane::{Addresses, local},
    inventory::{self, Entry},
    pki::Authority,
    private_file::write_private,
    probe::Probe,
    process::Component,
    programs::{ClusterApiPart, Program, Programs},
};

/// Cluster topology and Ignition are what our users' templates use; the rate limit of one reconcile a second only slows a lab.
const FEATURE_GATES: [(&str, bool); 3] =
    [("ClusterTopology", true), ("KubeadmBootstrapFormatIgnition", true), ("ReconcilerRateLimiting", false)];
/// Kinds in flight at once; more only queue inside the API server.
const PARALLEL_REQUESTS: usize = 8;

/// How long the API server may take to serve new kinds.
const ESTABLISHED_WITHIN: Duration = Duration::from_mins(1);

const PARTS: [(ClusterApiPart, Program, &str, Entry); 3] = [
    (
        ClusterApiPart::Core,
        Program::ClusterApi,
        "cluster-api",
        Entry { label: "cluster-api", name: "cluster-api", kind: "CoreProvider", namespace: "capi-system" },
    ),
    (
        ClusterApiPart::Bootstrap,
        Program::KubeadmBootstrap,
        "kubeadm-bootstrap",
        Entry { label: "bootstrap-kubeadm", name: "kubeadm", kind: "BootstrapProvider", namespace: "capi-kubeadm-bootstrap-system" },
    ),
    (
        ClusterApiPart::ControlPlane,
        Program::KubeadmControlPlane,
        "kubeadm-control-plane",
        Entry {
            label: "control-plane-kubeadm",
            name: "kubeadm",
            kind: "ControlPlaneProvider",
            namespace: "capi-kubeadm-control-plane-system",
        },
    ),
];

/// A provider of Cluster API: its process, and what of it is installed in the cluster.
struct Provider {
    component: Component,
    entry: Entry,
    manifests: PathBuf,
    webhook_port: u16,
}

/// The three providers, ready to be installed and started.
pub(crate) struct ClusterApi {
    providers: Vec<Provider>,
    authority: ByteString,
}

/// The gates a manager is started with. One that a person gave may be of a release that does not know all of them, and would not start.
fn feature_gates(programs: &Programs, program: Program) -> String {
    let help = || Command::new(programs.path(program)).arg("--help").output().map(|output| [output.stdout, output.stderr].concat());
    let help = programs.is_given(program).then(help).and_then(Result::ok);
    let help = help.map(|help| String::from_utf8_lossy(&help).into_owned());
    let known = FEATURE_GATES.iter().filter(|(gate, _)| help.as_ref().is_none_or(|help| help.contains(&format!("{gate}="))));
    known.map(|(gate, open)| format!("{gate}={open}")).collect::<Vec<_>>().join(",")
}

impl ClusterApi {
    pub fn prepare(
        programs: &Programs,
        addresses: Addresses,
        authority: &Authority,
        kubeconfig: &Path,
        certificates: &Path,
    ) -> Result<Self, LabError> {
        let directory = certificates.join("webhooks");
        fs::create_dir_all(&directory).map_err(LabError::io("create", &directory))?;
        let serving = authority.server("cluster-api-webhooks", &["127.0.0.1"])?;
        write_private(&directory.join("tls.crt"), &serving.certificate)?;
        write_private(&directory.join("tls.key"), &serving.key)?;
        let providers = (0..)
            .zip(PARTS)
            .map(|(index, (part, program, name, entry))| {
                let webhook_port = addresses.cluster_api + 3 * index;
                let (health, diagnostics) = (webhook_port + 1, webhook_port + 2);
                let component = Component {
                    name: name.to_owned(),
                    program: programs.path(program).to_owned(),
                    arguments: vec![
                        format!("--kubeconfig={}", kubeconfig.display()),
                        format!("--webhook-cert-dir={}", directory.display()),
                        format!("--webhook-port={webhook_port}"),
                        format!("--health-addr=127.0.0.1:{health}"),
                        format!("--diagnostics-address=127.0.0.1:{diagnostics}"),
                        "--insecure-diagnostics".into(),
                        "--leader-elect=false".into(),
                        format!("--feature-gates={}", feature_gates(programs, program)),
                        "--v=2".into(),
                    ],
                    address: format!("https://127.0.0.1:{webhook_port}"),
                    probe: Probe::Http { address: local(health), path: "/readyz" },
                };
                Provider { component, entry, manifests: programs.manifests(part).unwrap_or_default(), webhook_port }
            })
            .collect();
        Ok(Self { providers, authority: ByteString(authority.certificate().into_bytes()) })
    }

    pub fn components(&self) -> impl Iterator<Item = &Component> {
        self.providers.iter().map(|provider| &provider.component)
    }

    /// Creates the kinds; the managers can start as soon as this is done.
    pub async fn install_kinds(&self, client: &Client) -> Result<(), LabError> {
        let mut kinds = inventory::kinds()?;
        for provider in &self.providers {
            for path in yaml_files(&provider.manifests.join("crd"))? {
                let text = fs::read_to_string(&path).map_err(LabError::io("read", &path))?;
                let mut kind: apiextensions::CustomResourceDefinition = parse(&path, &text)?;
                self.convert_through(provider, &mut kind);
                label(provider, &mut kind);
                kinds.push(kind);
            }
        }
        let count = kinds.len();
        create_all(client, kinds).await?;
        wait_established(client, count).await?;
        inventory::note(client, self.providers.iter().map(|provider| &provider.entry)).await
    }

    /// Registers the admission webhooks. They refuse everything while their manager does not answer, so this comes last.
    pub async fn register_webhooks(&self, client: &Client) -> Result<(), LabError> {
        for provider in &self.providers {
            let path = provider.manifests.join("webhooks.yaml");
            let text = fs::read_to_string(&path).map_err(LabError::io("read", &path))?;
            // One file holds documents of two kinds; each is read as what it says it is.
            let (mutating, validating): (Vec<&str>, Vec<&str>) =
                text.split("\n---\n").partition(|document| document.contains("kind: MutatingWebhookConfiguration"));
            for document in mutating {
                let mut configuration: MutatingWebhookConfiguration = parse(&path, document)?;
                label(provider, &mut configuration);
                configuration.metadata.name = Some(format!("{}-mutating", provider.component.name));
                for webhook in configuration.webhooks.iter_mut().flatten() {
                    self.call_on_loopback(provider, &mut webhook.client_config);
                }
                create_all(client, vec![configuration]).await?;
            }
            for document in validating {
                let mut configuration: ValidatingWebhookConfiguration = parse(&path, document)?;
                label(provider, &mut configuration);
                configuration.metadata.name = Some(format!("{}-validating", provider.component.name));
                for webhook in configuration.webhooks.iter_mut().flatten() {
                    self.call_on_loopback(provider, &mut webhook.client_config);
                }
                create_all(client, vec![configuration]).await?;
            }
        }
        Ok(())
    }

    fn convert_through(&self, provider: &Provider, kind: &mut apiextensions::CustomResourceDefinition) {
        kind.spec.conversion = Some(apiextensions::CustomResourceConversion {
            strategy: "Webhook".to_owned(),
            webhook: Some(apiextensions::WebhookConversion {
                conversion_review_versions: vec!["v1".to_owned()],
                client_config: Some(apiextensions::WebhookClientConfig {
                    url: Some(format!("https://127.0.0.1:{}/convert", provider.webhook_port)),
                    ca_bundle: Some(self.authority.clone()),
                    service: None,
                }),
            }),
        });
    }

    fn call_on_loopback(&self, provider: &Provider, client_config: &mut WebhookClientConfig) {
        let path = client_config.service.take().and_then(|service| service.path).unwrap_or_default();
        client_config.url = Some(format!("https://127.0.0.1:{}{path}", provider.webhook_port));
        client_config.ca_bundle = Some(self.authority.clone());
    }
}

/// The labels an installation by clusterctl leaves: the provider, and for providers the API versions of each contract.
fn label<K: Resource>(provider: &Provider, object: &mut K) {
    let labels = object.meta_mut().labels.get_or_insert_default();
    labels.insert("cluster.x-k8s.io/provider".to_owned(), provider.entry.label.to_owned());
    labels.insert("clusterctl.cluster.x-k8s.io".to_owned(), String::new());
    if provider.entry.label != "cluster-api" {
        labels.insert("cluster.x-k8s.io/v1beta1".to_owned(), "v1beta1".to_owned());
        labels.insert("cluster.x-k8s.io/v1beta2".to_owned(), "v1beta2".to_owned());
    }
}

async fn create_all<K>(client: &Client, objects: Vec<K>) -> Result<(), LabError>
where
    K: Resource<Scope = kube::core::ClusterResourceScope, DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let api = Api::<K>::all(client.clone());
    stream::iter(&objects)
        .map(|object| {
            let api = api.clone();
            async move {
                let name = object.meta().name.clone().unwrap_or_default();
                api.create(&PostParams::default(), object).await.map_err(LabError::kubernetes(format!("create {} {name}", K::kind(&()))))
            }
        })
        .buffer_unordered(PARALLEL_REQUESTS)
        .try_for_each(|_| async { Ok(()) })
        .await
}

/// A manager that starts before its kinds are served gives up at once.
async fn wait_established(client: &Client, count: usize) -> Result<(), LabError> {
    let api = Api::<apiextensions::CustomResourceDefinition>::all(client.clone());
    let established = |kind: &apiextensions::CustomResourceDefinition| {
        let conditions = kind.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.type_ == "Established" && condition.status == "True")
    };
    let deadline = Instant::now() + ESTABLISHED_WITHIN;
    loop {
        let kinds = api.list(&ListParams::default()).await.map_err(LabError::kubernetes("list the kinds of Cluster API"))?;
        let served = kinds.iter().filter(|kind| established(kind)).count();
        if served >= count {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(LabError::ComponentFailed {
                component: "cluster-api".to_owned(),
                reason: format!("only {served} of its {count} kinds are served after {} s", ESTABLISHED_WITHIN.as_secs()),
                log_tail: String::new(),
            });
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn yaml_files(directory: &Path) -> Result<Vec<PathBuf>, LabError> {
    let entries = fs::read_dir(directory).map_err(LabError::io("read", directory))?;
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    files.sort();
    Ok(files)
}

fn parse<K: DeserializeOwned>(path: &Path, document: &str) -> Result<K, LabError> {
    serde_saphyr::from_str(document.trim_start_matches("---\n"))
        .map_err(|error| LabError::Manifest { path: path.to_owned(), reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::programs::{Found, Source};

    #[test]
    fn a_manager_of_another_release_is_asked_which_gates_it_knows() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cluster-api");
        fs::write(&path, "#!/bin/sh\necho '--feature-gates  ClusterTopology=true|false (ALPHA - default=false)' >&2\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let gates = |source| {
            let programs = Programs::with(Program::ClusterApi, Found { path: path.clone(), source });
            feature_gates(&programs, Program::ClusterApi)
        };
        assert_eq!(gates(Source::Explicit), "ClusterTopology=true");
        assert_eq!(gates(Source::Cache), "ClusterTopology=true,KubeadmBootstrapFormatIgnition=true,ReconcilerRateLimiting=false");
    }
}
