//! Gives volume claims of the lab's `StorageClass` a directory on the node their pod was put on.

use std::time::Duration;

use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::{
    Api, Client, Resource as _,
    api::{DeleteParams, PostParams},
    runtime::{
        WatchStreamExt as _,
        events::{Event, EventType, Recorder},
        watcher,
    },
};
use serde_json::json;

const CLASS: &str = "standard";
const PROVISIONER: &str = "lab.metalshift.io/directory";
/// The scheduler writes here which node the first pod of a claim goes to.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// Serves claims and removes released volumes until the lab ends.
pub(super) async fn provision(client: Client) {
    let claims = Api::<PersistentVolumeClaim>::all(client.clone());
    let volumes = Api::<PersistentVolume>::all(client.clone());
    let recorder = Recorder::new(client.clone(), PROVISIONER.into());
    let serve_claims = async {
        let mut stream = std::pin::pin!(watcher(claims, watcher::Config::default()).default_backoff().applied_objects());
        while let Some(claim) = next(&mut stream).await {
            if is_ours(&claim) && wants_device(&claim) {
                // Without the event the claim waits all the same.
                let _ = recorder.publish(&no_devices(), &claim.object_ref(&())).await;
            }
            if let Some(volume) = volume_for(&claim)
                && let Err(error) = volumes.create(&PostParams::default(), &volume).await
                && !matches!(&error, kube::Error::Api(status) if status.code == 409)
            {
                tracing::warn!(%error, "a volume could not be created");
            }
        }
    };
    let remove_released = async {
        let mut stream = std::pin::pin!(watcher(volumes.clone(), watcher::Config::default()).default_backoff().applied_objects());
        while let Some(volume) = next(&mut stream).await {
            let released = volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Released");
            let ours = volume.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref()) == Some(CLASS);
            if let (true, true, Some(name)) = (released, ours, volume.metadata.name) {
                let _ = volumes.delete(&name, &DeleteParams::default()).await;
            }
        }
    };
    tokio::join!(serve_claims, remove_released);
}

/// The next object; errors of a watch are repeated by the watch itself.
async fn next<K>(stream: &mut (impl futures::Stream<Item = Result<K, watcher::Error>> + Unpin)) -> Option<K> {
    loop {
        match stream.try_next().await {
            Ok(object) => return object,
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Whether a claim waits for a volume of ours.
fn is_ours(claim: &PersistentVolumeClaim) -> bool {
    claim.spec.as_ref().is_some_and(|spec| spec.storage_class_name.as_deref() == Some(CLASS) && spec.volume_name.is_none())
}

/// Directories are no devices: who asks for one waits, as where no storage has any, rather than getting a volume it can never be bound to.
fn wants_device(claim: &PersistentVolumeClaim) -> bool {
    claim.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref()) == Some("Block")
}

fn no_devices() -> Event {
    Event {
        type_: EventType::Warning,
        reason: "ProvisioningFailed".to_owned(),
        note: Some("volumes of a lab are directories: ask for volumeMode Filesystem".to_owned()),
        action: "Provision".to_owned(),
        secondary: None,
    }
}

/// The volume a waiting claim gets, once it is known where its pod will run.
fn volume_for(claim: &PersistentVolumeClaim) -> Option<PersistentVolume> {
    if !is_ours(claim) || wants_device(claim) {
        return None;
    }
    let spec = claim.spec.as_ref()?;
    let node = claim.metadata.annotations.as_ref()?.get(SELECTED_NODE)?;
    let (uid, name, namespace) = (claim.metadata.uid.as_ref()?, claim.metadata.name.as_ref()?, claim.metadata.namespace.as_ref()?);
    serde_json::from_value(json!({
        "metadata": {"name": format!("pvc-{uid}"), "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
        "spec": {
            "storageClassName": CLASS,
            "persistentVolumeReclaimPolicy": "Delete",
            "accessModes": spec.access_modes,
            "volumeMode": "Filesystem",
            "capacity": spec.resources.as_ref().and_then(|resources| resources.requests.clone()),
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": name, "namespace": namespace, "uid": uid},
            "hostPath": {"path": format!("/var/lib/metalshift/volumes/pvc-{uid}"), "type": "DirectoryOrCreate"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]},
            ]}]}},
        },
    }))
    .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(value: serde_json::Value) -> PersistentVolumeClaim {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_claim_whose_node_is_known_gets_a_volume_there() {
        let claim = claim(json!({
            "metadata": {"name": "data", "namespace": "shop", "uid": "7", "annotations": {SELECTED_NODE: "worker-1"}},
            "spec": {"storageClassName": "standard", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }));
        let volume = serde_json::to_value(volume_for(&claim).unwrap()).unwrap();
        assert_eq!(volume["spec"]["claimRef"]["name"], "data");
        assert_eq!(volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0]["values"][0], "worker-1");
        assert_eq!(volume["spec"]["capacity"]["storage"], "1Gi");
    }

    #[test]
    fn a_claim_of_another_class_or_without_a_node_gets_none() {
        assert!(volume_for(&claim(json!({"metadata": {"name": "a"}, "spec": {"storageClassName": "standard"}}))).is_none());
        let other = json!({"metadata": {"name": "a", "annotations": {SELECTED_NODE: "n"}}, "spec": {"storageClassName": "fast"}});
        assert!(volume_for(&claim(other)).is_none());
    }

    #[test]
    fn a_claim_that_wants_a_device_gets_no_directory_in_its_place() {
        let with_mode = |mode: &str| {
            claim(json!({
                "metadata": {"name": "data", "namespace": "shop", "uid": "7", "annotations": {SELECTED_NODE: "worker-1"}},
                "spec": {"storageClassName": "standard", "accessModes": ["ReadWriteOnce"], "volumeMode": mode},
            }))
        };
        assert!(volume_for(&with_mode("Block")).is_none() && wants_device(&with_mode("Block")));
        assert!(volume_for(&with_mode("Filesystem")).is_some() && !wants_device(&with_mode("Filesystem")));
    }
}
