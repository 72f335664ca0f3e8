//! The manager does its work on a bad day: calls fail, answers get lost, watches break, reconciles panic, the leader dies.

use crate::scenario::{WIDGETS, Widget, in_paused_time, twelve_busy_minutes};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use kube::{Api, ResourceExt, api::ListParams};
use manager::{Jitter, LeaseSettings};
use simulation::Faults;

#[test]
fn everything_is_reconciled_deleted_and_handed_over_all_the_same() {
    in_paused_time(async {
        for seed in 0..10 {
            let server = Box::pin(twelve_busy_minutes(seed, Jitter::seeded(seed))).await;
            server.set_faults(Faults::none());
            let client = server.client("afterwards");
            let widgets = Api::<Widget>::default_namespaced(client.clone()).list(&ListParams::default()).await.unwrap().items;
            let children = Api::<ConfigMap>::default_namespaced(client.clone()).list(&ListParams::default()).await.unwrap().items;
            assert_eq!(widgets.len(), WIDGETS - (1..WIDGETS).step_by(3).count(), "seed {seed}");
            for widget in &widgets {
                assert_eq!(
                    widget.status.as_ref().map(|status| status.observed_size),
                    Some(widget.spec.size),
                    "seed {seed}: {}",
                    widget.name_any()
                );
            }
            let of_widgets: Vec<String> = widgets.iter().map(ResourceExt::name_any).collect();
            assert_eq!(children.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), of_widgets, "seed {seed}");
            let lease = Api::<Lease>::default_namespaced(client).get(LeaseSettings::DEFAULT_NAME).await.unwrap().spec.unwrap();
            assert_eq!(lease.holder_identity.as_deref(), Some(""), "seed {seed}: the lease was given back at the end");
            assert!(lease.lease_transitions >= Some(1), "seed {seed}: the second took over from the first");
        }
    });
}
