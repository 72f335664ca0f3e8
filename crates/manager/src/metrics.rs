//! What the manager counts, in the text format of `OpenMetrics`. Names begin with `metalshift_`; `kind` is the kind's name everywhere.

mod machines;

pub(crate) use machines::{Happened, MachineMetrics};

use crate::{maas::MaasMetrics, queue::Queue};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
        info::Info,
    },
    registry::{Registry, Unit},
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// How a reconcile ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It did what it could; it may have asked to run again later.
    Success,
    /// It returned an error.
    Error,
    /// It took longer than its controller allows.
    Timeout,
    /// It panicked, which was contained.
    Panic,
}

impl Outcome {
    const fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Panic => "panic",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchLabel {
    watch: String,
}

type Queues = Vec<(&'static str, Arc<Queue>)>;

/// All metrics of one manager; clones share them.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    reconciles: Family<OutcomeLabel, Counter>,
    duration: Family<KindLabel, Histogram>,
    active: Family<KindLabel, Gauge>,
    queued: Family<KindLabel, Gauge>,
    scheduled: Family<KindLabel, Gauge>,
    queues: Arc<Mutex<Queues>>,
    panics: Family<KindLabel, Counter>,
    watch_failures: Family<WatchLabel, Counter>,
    leader: Gauge,
    maas: MaasMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("metalshift");
        // 5 ms to about 80 s: from a cache hit to a reconcile that waits for a slow server until its timeout.
        let duration = Family::<KindLabel, Histogram>::new_with_constructor(|| Histogram::new(exponential_buckets(0.005, 2.0, 15)));
        let (reconciles, active, queued, panics) = (Family::default(), Family::default(), Family::default(), Family::default());
        let (scheduled, watch_failures, leader) = (Family::default(), Family::default(), Gauge::default());
        registry.register("reconciles", "Reconciles that ended, by kind and outcome", Family::clone(&reconciles));
        registry.register_with_unit("reconcile_duration", "Time a reconcile took", Unit::Seconds, Family::clone(&duration));
        registry.register("reconciles_active", "Reconciles running now", Family::clone(&active));
        registry.register("queue_depth", "Objects due for a reconcile that wait for their turn", Family::clone(&queued));
        registry.register("queue_scheduled", "Objects to be reconciled later", Family::clone(&scheduled));
        registry.register("reconcile_panics", "Reconciles that panicked and were contained", Family::clone(&panics));
        registry.register("watch_failures", "Watches that failed and were tried again", Family::clone(&watch_failures));
        registry.register("is_leader", "Whether this process may act (1) or waits (0)", Gauge::clone(&leader));
        registry.register("build", "Which program this is", Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]));
        let maas = MaasMetrics::register(&mut registry);
        Self {
            registry: Arc::new(registry),
            reconciles,
            duration,
            active,
            queued,
            scheduled,
            queues: Arc::default(),
            panics,
            watch_failures,
            leader,
            maas,
        }
    }
}

impl Metrics {
    /// The part about MAAS.
    pub fn maas(&self) -> &MaasMetrics {
        &self.maas
    }

    /// A reconcile began.
    pub fn reconcile_began(&self, kind: &'static str) {
        self.active.get_or_create(&KindLabel { kind }).inc();
    }

    /// A reconcile ended.
    pub fn reconcile_ended(&self, kind: &'static str, outcome: Outcome, took: Duration) {
        self.active.get_or_create(&KindLabel { kind }).dec();
        self.reconciles.get_or_create(&OutcomeLabel { kind, outcome: outcome.label() }).inc();
        self.duration.get_or_create(&KindLabel { kind }).observe(took.as_secs_f64());
        if outcome == Outcome::Panic {
            self.panics.get_or_create(&KindLabel { kind }).inc();
        }
    }

    /// From now on the length of this queue is on the page, as it is when the page is read.
    pub(crate) fn shows_queue(&self, kind: &'static str, queue: &Arc<Queue>) {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).push((kind, Arc::clone(queue)));
    }

    /// A watch failed.
    pub fn watch_failed(&self, watch: &str) {
        self.watch_failures.get_or_create(&WatchLabel { watch: watch.to_owned() }).inc();
    }

    /// Whether this process may act.
    pub fn leads(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// The page a scrape reads.
    pub fn page(&self) -> Result<String, std::fmt::Error> {
        for (kind, queue) in self.queues.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let (due, later) = queue.depth();
            self.queued.get_or_create(&KindLabel { kind }).set(i64::try_from(due).unwrap_or(i64::MAX));
            self.scheduled.get_or_create(&KindLabel { kind }).set(i64::try_from(later).unwrap_or(i64::MAX));
        }
        let mut page = String::new();
        encode(&mut page, &self.registry)?;
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_page_shows_a_queue_as_it_is_when_the_page_is_read() {
        let (metrics, queue) = (Metrics::default(), Arc::new(Queue::default()));
        metrics.shows_queue("widget", &queue);
        queue.add(crate::ObjectKey::cluster_scoped("due"));
        queue.add_at(crate::ObjectKey::cluster_scoped("later"), tokio::time::Instant::now() + Duration::from_mins(1));
        let page = metrics.page().unwrap();
        assert!(page.contains(r#"metalshift_queue_depth{kind="widget"} 1"#), "{page}");
        assert!(page.contains(r#"metalshift_queue_scheduled{kind="widget"} 1"#), "{page}");
    }

    /// A family without entries is not on the page, so what is registered is read where that is written.
    #[test]
    fn everything_that_is_registered_is_explained_in_the_documentation() {
        let sources = [include_str!("metrics.rs"), include_str!("maas/metrics.rs"), include_str!("metrics/machines.rs")];
        let code = sources.iter().filter_map(|source| source.split("#[cfg(test)]").next());
        let registered: Vec<&str> = code
            .flat_map(|code| code.split("registry.register").skip(1))
            .filter_map(|call| call.split_once('"')?.1.split('"').next())
            .collect();
        assert!(registered.len() > 15, "{registered:?}");
        let documentation = include_str!("../../../docs/reference/metrics.md");
        let mut documented: Vec<&str> = documentation
            .lines()
            .filter_map(|line| line.strip_prefix("| `metalshift_")?.split('`').next())
            .map(|name| name.strip_suffix("_seconds").unwrap_or(name))
            .collect();
        documented.sort_unstable();
        let mut expected = registered;
        expected.sort_unstable();
        assert_eq!(documented, expected, "docs/reference/metrics.md and what is registered");
    }

    #[test]
    fn a_reconcile_is_seen_on_the_page() {
        let metrics = Metrics::default();
        metrics.reconcile_began("widget");
        metrics.reconcile_ended("widget", Outcome::Panic, Duration::from_millis(7));
        metrics.leads(true);
        let page = metrics.page().unwrap();
        for line in [
            r#"metalshift_reconciles_total{kind="widget",outcome="panic"} 1"#,
            r#"metalshift_reconcile_panics_total{kind="widget"} 1"#,
            r#"metalshift_reconcile_duration_seconds_count{kind="widget"} 1"#,
            r#"metalshift_reconciles_active{kind="widget"} 0"#,
            "metalshift_is_leader 1",
            &format!(r#"metalshift_build_info{{version="{}"}} 1"#, env!("CARGO_PKG_VERSION")),
        ] {
            assert!(page.contains(line), "{line} is not on\n{page}");
        }
    }
}
