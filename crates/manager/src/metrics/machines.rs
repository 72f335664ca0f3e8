//! What is counted about machines, under `metalshift_machine_*`: how long each phase of their lives takes, how attempts end, and how many
//! servers are avoided. The passes over machines tell it from statuses as they are shown; no rule rests on it.

use api::{MaasMachineStatus, Phase};
use jiff::Timestamp;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// So many images get a label of their own: anybody who may make machines can name as many as they like.
const MOST_IMAGES: usize = 32;
/// The label of all other images.
const OTHER_IMAGE: &str = "other";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabel {
    phase: String,
    zone: String,
    image: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabel {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndpointLabel {
    endpoint: String,
}

/// The metrics of one manager's machines; clones share them.
#[derive(Debug, Clone)]
pub struct MachineMetrics {
    phases: Family<PhaseLabel, Histogram>,
    attempts: Family<AttemptLabel, Counter>,
    avoided: Family<EndpointLabel, Gauge>,
    images: Arc<Mutex<BTreeSet<String>>>,
}

impl Default for MachineMetrics {
    fn default() -> Self {
        Self {
            // 1 s to about 2 h 15 min: from an allocation to a machine with many disks that are erased.
            phases: Family::new_with_constructor(|| Histogram::new(exponential_buckets(1.0, 2.0, 14))),
            attempts: Family::default(),
            avoided: Family::default(),
            images: Arc::default(),
        }
    }
}

impl MachineMetrics {
    /// Puts them on the page of this registry.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let phases = metrics.phases.clone();
        registry.register_with_unit("machine_phase_duration", "Time machines spent in a phase that ended", Unit::Seconds, phases);
        registry.register("machine_attempts", "Attempts to deploy a machine that ended, by outcome", metrics.attempts.clone());
        registry.register("machines_avoided", "Machines that failed lately, when one was last looked for", metrics.avoided.clone());
        metrics
    }

    /// So many servers of this MAAS are the last resort now, since they failed lately.
    pub(crate) fn avoids(&self, endpoint: &str, servers: usize) {
        self.avoided.get_or_create(&EndpointLabel { endpoint: endpoint.to_owned() }).set(i64::try_from(servers).unwrap_or(i64::MAX));
    }

    fn image(&self, image: &str) -> String {
        let mut images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        if images.contains(image) || (images.len() < MOST_IMAGES && images.insert(image.to_owned())) {
            return image.to_owned();
        }
        OTHER_IMAGE.to_owned()
    }
}

/// What happened to one machine in one pass. It counts once it is shown, so that a pass which has to be repeated does not count twice.
#[derive(Debug, Default)]
pub(crate) struct Happened {
    phases: Vec<(PhaseLabel, Duration)>,
    failed: u64,
    succeeded: u64,
}

impl Happened {
    /// A status follows another one.
    pub fn saw(&mut self, before: Option<&MaasMachineStatus>, after: Option<&MaasMachineStatus>) {
        let (Some(before), Some(after)) = (before, after) else { return };
        self.failed += u64::from(after.attempt_count.unwrap_or_default().saturating_sub(before.attempt_count.unwrap_or_default()));
        let (Some(ended), Some(begun)) = (before.phase, after.phase) else { return };
        if ended == begun {
            return;
        }
        self.succeeded += u64::from(ended == Phase::Deploying && begun == Phase::Deployed);
        let time = |status: &MaasMachineStatus| status.phase_since.as_ref().map(|time| time.0);
        if let (Some(from), Some(to)) = (time(before), time(after)) {
            let zone = before.failure_domain.clone().or_else(|| after.failure_domain.clone()).unwrap_or_default();
            let image = before.image.clone().or_else(|| after.image.clone()).unwrap_or_default();
            self.phases.push((PhaseLabel { phase: format!("{ended:?}"), zone, image }, lasted(from, to)));
        }
    }

    /// It is shown, or the object is gone with all there was to show.
    pub fn count(self, metrics: &MachineMetrics) {
        for (label, lasted) in self.phases {
            let image = metrics.image(&label.image);
            metrics.phases.get_or_create(&PhaseLabel { image, ..label }).observe(lasted.as_secs_f64());
        }
        for (outcome, number) in [("failed", self.failed), ("succeeded", self.succeeded)] {
            metrics.attempts.get_or_create(&AttemptLabel { outcome }).inc_by(number);
        }
    }
}

/// Clocks may have been set back in between.
fn lasted(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn status(phase: Phase, since: i64, zone: Option<&str>) -> MaasMachineStatus {
        MaasMachineStatus {
            phase: Some(phase),
            phase_since: Some(Time(Timestamp::from_second(since).unwrap())),
            failure_domain: zone.map(str::to_owned),
            image: Some("ubuntu/jammy".to_owned()),
            ..MaasMachineStatus::default()
        }
    }

    #[test]
    fn phases_and_attempts_are_on_the_page_once_they_are_shown() {
        let metrics = Metrics::default();
        let life = [
            status(Phase::Allocating, 0, None),
            status(Phase::Deploying, 4, Some("az1")),
            MaasMachineStatus { attempt_count: Some(1), ..status(Phase::Releasing, 64, Some("az1")) },
            MaasMachineStatus { attempt_count: Some(1), ..status(Phase::Deploying, 70, Some("az2")) },
            MaasMachineStatus { attempt_count: Some(1), ..status(Phase::Deployed, 300, Some("az2")) },
        ];
        let mut happened = Happened::default();
        happened.saw(None, life.first());
        life.windows(2).for_each(|pair| happened.saw(pair.first(), pair.last()));
        happened.saw(life.last(), life.last());
        assert!(!metrics.page().unwrap().contains("ubuntu/jammy"));
        happened.count(metrics.maas().machines());
        metrics.maas().machines().avoids("http://maas", 3);
        let page = metrics.page().unwrap();
        for line in [
            r#"metalshift_machine_phase_duration_seconds_sum{phase="Allocating",zone="az1",image="ubuntu/jammy"} 4.0"#,
            r#"metalshift_machine_phase_duration_seconds_sum{phase="Deploying",zone="az1",image="ubuntu/jammy"} 60.0"#,
            r#"metalshift_machine_phase_duration_seconds_sum{phase="Deploying",zone="az2",image="ubuntu/jammy"} 230.0"#,
            r#"metalshift_machine_phase_duration_seconds_count{phase="Releasing",zone="az1",image="ubuntu/jammy"} 1"#,
            r#"metalshift_machine_attempts_total{outcome="failed"} 1"#,
            r#"metalshift_machine_attempts_total{outcome="succeeded"} 1"#,
            r#"metalshift_machines_avoided{endpoint="http://maas"} 3"#,
        ] {
            assert!(page.contains(line), "{line} is not in\n{page}");
        }
    }

    #[test]
    fn images_beyond_a_number_share_a_label() {
        let metrics = MachineMetrics::default();
        for number in 0..MOST_IMAGES {
            assert_eq!(metrics.image(&format!("custom/{number}")), format!("custom/{number}"));
        }
        assert_eq!((metrics.image("custom/one-more").as_str(), metrics.image("custom/0").as_str()), ("other", "custom/0"));
    }
}
