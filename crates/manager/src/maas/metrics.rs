//! What is counted about MAAS, under `metalshift_maas_*`. The [`super::guard`] counts calls, the feed its lag, the accounts themselves.

use crate::metrics::MachineMetrics;
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
use std::time::Duration;

use super::MaasAccounts;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndpointLabel {
    endpoint: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabel {
    endpoint: String,
    operation: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabel {
    endpoint: String,
    operation: String,
    outcome: &'static str,
}

/// The metrics of one manager's access to MAAS; clones share them.
#[derive(Debug, Clone)]
pub struct MaasMetrics {
    calls: Family<CallLabel, Counter>,
    duration: Family<OperationLabel, Histogram>,
    lag: Family<EndpointLabel, Histogram>,
    feed_failures: Family<EndpointLabel, Counter>,
    held_back: Family<EndpointLabel, Gauge>,
    accounts: Gauge,
    machines: MachineMetrics,
}

impl Default for MaasMetrics {
    fn default() -> Self {
        Self {
            calls: Family::default(),
            // 5 ms to about 160 s: from a read of one object to a write MAAS tries for as long as it may.
            duration: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.005, 2.0, 16))),
            // MAAS writes times to the second, so less than one cannot be told apart.
            lag: Family::new_with_constructor(|| Histogram::new(exponential_buckets(1.0, 2.0, 10))),
            feed_failures: Family::default(),
            held_back: Family::default(),
            accounts: Gauge::default(),
            machines: MachineMetrics::default(),
        }
    }
}

impl MaasMetrics {
    /// Puts them on the page of this registry.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self { machines: MachineMetrics::register(registry), ..Self::default() };
        registry.register("maas_calls", "Calls of MAAS that ended, by operation and outcome", metrics.calls.clone());
        registry.register_with_unit("maas_call_duration", "Time until MAAS answered", Unit::Seconds, metrics.duration.clone());
        registry.register_with_unit("maas_event_lag", "Age of the newest event of a poll", Unit::Seconds, metrics.lag.clone());
        registry.register("maas_feed_failures", "Polls of the event log that failed", metrics.feed_failures.clone());
        registry.register("maas_held_back", "Whether calls end at once because MAAS does not answer", metrics.held_back.clone());
        registry.register("maas_accounts", "Users of MAAS this process works as", metrics.accounts.clone());
        metrics
    }

    /// What is counted about the machines that are asked of MAAS.
    pub(crate) fn machines(&self) -> &MachineMetrics {
        &self.machines
    }

    pub(super) fn called(&self, endpoint: &str, operation: &str, outcome: &'static str, took: Option<Duration>) {
        let (endpoint, operation) = (endpoint.to_owned(), operation.to_owned());
        self.calls.get_or_create(&CallLabel { endpoint: endpoint.clone(), operation: operation.clone(), outcome }).inc();
        if let Some(took) = took {
            self.duration.get_or_create(&OperationLabel { endpoint, operation }).observe(took.as_secs_f64());
        }
    }

    pub(super) fn event_seen(&self, endpoint: &str, age: Duration) {
        self.lag.get_or_create(&EndpointLabel { endpoint: endpoint.to_owned() }).observe(age.as_secs_f64());
    }

    pub(super) fn feed_failed(&self, endpoint: &str) {
        self.feed_failures.get_or_create(&EndpointLabel { endpoint: endpoint.to_owned() }).inc();
    }

    pub(super) fn held_back(&self, endpoint: &str, held_back: bool) {
        self.held_back.get_or_create(&EndpointLabel { endpoint: endpoint.to_owned() }).set(i64::from(held_back));
    }

    pub(super) fn accounts(&self, accounts: usize) {
        self.accounts.set(i64::try_from(accounts).unwrap_or(i64::MAX));
    }
}

impl MaasAccounts {
    /// What is counted about the machines that are asked of these accounts.
    pub(crate) fn machine_metrics(&self) -> &MachineMetrics {
        self.metrics().machines()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn everything_about_maas_is_on_the_page_of_the_manager() {
        let metrics = Metrics::default();
        let maas = metrics.maas();
        maas.called("http://maas", "POST machines/{}/?op=deploy", "success", Some(Duration::from_millis(30)));
        maas.called("http://maas", "GET zones/", "held_back", None);
        maas.event_seen("http://maas", Duration::from_secs(1));
        maas.feed_failed("http://maas");
        maas.held_back("http://maas", true);
        maas.accounts(2);
        let page = metrics.page().unwrap();
        for line in [
            r#"metalshift_maas_calls_total{endpoint="http://maas",operation="POST machines/{}/?op=deploy",outcome="success"} 1"#,
            r#"metalshift_maas_calls_total{endpoint="http://maas",operation="GET zones/",outcome="held_back"} 1"#,
            r#"metalshift_maas_call_duration_seconds_count{endpoint="http://maas",operation="POST machines/{}/?op=deploy"} 1"#,
            r#"metalshift_maas_event_lag_seconds_sum{endpoint="http://maas"} 1.0"#,
            r#"metalshift_maas_feed_failures_total{endpoint="http://maas"} 1"#,
            r#"metalshift_maas_held_back{endpoint="http://maas"} 1"#,
            "metalshift_maas_accounts 2",
        ] {
            assert!(page.contains(line), "{line} is not in\n{page}");
        }
        assert!(!page.contains(r#"duration_seconds_count{endpoint="http://maas",operation="GET zones/"}"#), "nothing was sent:\n{page}");
    }
}
