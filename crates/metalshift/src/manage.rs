//! `metalshift manage`: the controllers as a long-running process. Flags and variables are those of the Go provider and of Cluster API's
//! managers, so that their manifests start this program unchanged; what has no meaning here is accepted and said once in the log.

use anyhow::Context as _;
use clap::{ArgAction, Args};
use manager::{
    Clock, Controllers, Jitter, LeaseSettings, ListenOn, Listeners, LogFormat, MaasAccess, Namespaces, Provider, Settings, connect,
    leftover_webhooks, maas, machine, parse_go_duration, start_logs, workload,
};
use std::{fs, num::NonZeroUsize, path::PathBuf, time::Duration};
use tokio::signal::unix::{SignalKind, signal};

/// Run the controllers
#[derive(Debug, Clone, Args)]
#[allow(clippy::struct_excessive_bools, reason = "flags of a command line are what they are")]
pub struct ManageArgs {
    /// The cluster to work on; else KUBECONFIG, else the service account of the pod
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Look at these namespaces only: comma-separated or repeated; empty means all (also from `WATCH_NAMESPACE`)
    #[arg(long, value_name = "NAMES", env = "NAMESPACE", action = ArgAction::Append)]
    namespace: Vec<Namespaces>,
    /// Look only at objects whose label `cluster.x-k8s.io/watch-filter` has this value
    #[arg(long, value_name = "VALUE", value_parser = label_value)]
    watch_filter: Option<String>,
    /// The longest an object goes without a reconcile; 0 means that only changes lead to one
    #[arg(long, value_name = "DURATION", default_value = "120m", value_parser = parse_go_duration)]
    sync_period: Duration,
    /// Machines reconciled at once
    #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    machine_concurrency: u16,
    /// Act only while holding the leader lease
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = ArgAction::Set, value_parser = clap::builder::BoolishValueParser::new())]
    leader_elect: bool,
    /// The name of the leader lease
    #[arg(long, value_name = "NAME", default_value = LeaseSettings::DEFAULT_NAME)]
    leader_election_id: String,
    /// The namespace of the leader lease; else the pod's own
    #[arg(long, value_name = "NAMESPACE")]
    leader_election_namespace: Option<String>,
    /// How long others wait for a leader that went silent
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = parse_go_duration)]
    leader_elect_lease_duration: Duration,
    /// How long a leader goes on without renewing; shorter than the lease duration
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_go_duration)]
    leader_elect_renew_deadline: Duration,
    /// The time between attempts to get or renew the lease
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_go_duration)]
    leader_elect_retry_period: Duration,
    /// Where /healthz and /readyz answer; 0 switches them off
    #[arg(long, visible_alias = "health-probe-bind-address", value_name = "ADDRESS", default_value = ":9440")]
    health_addr: ListenOn,
    /// Where /metrics answers; 0 switches it off
    #[arg(long, visible_alias = "metrics-bind-address", value_name = "ADDRESS", default_value = ":8080")]
    metrics_bind_addr: ListenOn,
    /// How long reconciles in flight may take to end after a signal to stop
    #[arg(long, value_name = "DURATION", default_value = "8s", value_parser = parse_go_duration)]
    grace_period: Duration,
    /// The form of the log: text or json
    #[arg(long, alias = "logging-format", value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
    /// How much to log: 0 to 3 information, 4 and 5 debugging, more is tracing; `RUST_LOG` overrides it
    #[arg(short, long = "v", value_name = "NUMBER", default_value_t = 0)]
    v: u8,
    #[command(flatten)]
    accepted: AcceptedArgs,
}

/// Flags of other programs that have no effect here; hidden, accepted, and named once in the log with the reason.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Accepted without effect")]
struct AcceptedArgs {
    #[arg(long, hide = true)]
    webhook_port: Option<String>,
    #[arg(long, hide = true)]
    webhook_cert_dir: Option<String>,
    #[arg(long, hide = true)]
    cluster_role: Option<String>,
    #[arg(long, hide = true, action = ArgAction::Append)]
    feature_gates: Vec<String>,
    #[arg(long = "add_dir_header", alias = "add-dir-header", hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    add_dir_header: Option<String>,
    #[arg(long = "alsologtostderr", hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    also_log_to_stderr: Option<String>,
    #[arg(long = "log_backtrace_at", alias = "log-backtrace-at", hide = true)]
    log_backtrace_at: Option<String>,
    #[arg(long = "log_dir", alias = "log-dir", hide = true)]
    log_dir: Option<String>,
    #[arg(long = "log_file", alias = "log-file", hide = true)]
    log_file: Option<String>,
    #[arg(long = "log_file_max_size", alias = "log-file-max-size", hide = true)]
    log_file_max_size: Option<String>,
    #[arg(long = "logtostderr", hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    log_to_stderr: Option<String>,
    #[arg(long = "one_output", alias = "one-output", hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    one_output: Option<String>,
    #[arg(long = "skip_headers", alias = "skip-headers", hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    skip_headers: Option<String>,
    #[arg(long = "skip_log_headers", alias = "skip-log-headers", hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    skip_log_headers: Option<String>,
    #[arg(long = "stderrthreshold", hide = true)]
    stderr_threshold: Option<String>,
    #[arg(long = "vmodule", hide = true)]
    vmodule: Option<String>,
}

/// What can be the value of a label; the API server would refuse every watch with another.
fn label_value(text: &str) -> Result<String, String> {
    let inside = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let outside = |letter: char| letter.is_ascii_alphanumeric();
    let fits = text.len() <= 63 && text.chars().all(inside) && text.starts_with(outside) && text.ends_with(outside);
    if text.is_empty() || fits {
        Ok(text.to_owned())
    } else {
        Err("a label has at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit".to_owned())
    }
}

impl AcceptedArgs {
    /// What was given and why it does nothing, for one log line.
    fn told(&self) -> Vec<&'static str> {
        let klog = [
            &self.add_dir_header,
            &self.also_log_to_stderr,
            &self.log_backtrace_at,
            &self.log_dir,
            &self.log_file,
            &self.log_file_max_size,
            &self.log_to_stderr,
            &self.one_output,
            &self.skip_headers,
            &self.skip_log_headers,
            &self.stderr_threshold,
            &self.vmodule,
        ];
        let mut told = Vec::new();
        if self.webhook_port.is_some() || self.webhook_cert_dir.is_some() {
            told.push("--webhook-port, --webhook-cert-dir: there are no webhooks, the API server validates by the rules in the CRDs");
        }
        if self.cluster_role.is_some() {
            told.push("--cluster-role: one program serves both roles");
        }
        if !self.feature_gates.is_empty() {
            told.push("--feature-gates: nothing is gated");
        }
        if klog.iter().any(|flag| flag.is_some()) {
            told.push("klog flags: logs go to standard error, --log-format and --v shape them");
        }
        told
    }
}

impl ManageArgs {
    fn namespaces(&self) -> anyhow::Result<Namespaces> {
        let from_environment = std::env::var("WATCH_NAMESPACE").ok().filter(|_| self.namespace.is_empty());
        let from_environment = from_environment.map(|list| list.parse()).transpose();
        let from_environment = from_environment.map_err(|error| usage(&format!("WATCH_NAMESPACE: {error}")))?;
        Ok(Namespaces::union(self.namespace.iter().cloned().chain(from_environment)))
    }

    /// What no single flag can tell.
    fn check_election(&self) -> anyhow::Result<()> {
        let times = [self.leader_elect_retry_period, self.leader_elect_renew_deadline, self.leader_elect_lease_duration];
        if !self.leader_elect || (times.is_sorted_by(|one, next| one < next) && times[2] >= Duration::from_secs(1)) {
            return Ok(());
        }
        let rule = "the times of the leader election must grow: --leader-elect-retry-period, --leader-elect-renew-deadline, --leader-elect-lease-duration (at least 1s)";
        Err(usage(rule).into())
    }

    /// The namespace of the provider: that of its lease, or of its pod. A process outside of a cluster has none.
    fn own_namespace(&self) -> Option<String> {
        let pod = || fs::read_to_string("/var/run/secrets/kubernetes.io/serviceaccount/namespace").ok();
        self.leader_election_namespace.clone().or_else(pod).map(|namespace| namespace.trim().to_owned())
    }

    fn lease(&self, pod_namespace: &str, jitter: Jitter) -> Option<LeaseSettings> {
        if !self.leader_elect {
            return None;
        }
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_else(|_| "metalshift".to_owned());
        let namespace = self.leader_election_namespace.clone().unwrap_or_else(|| pod_namespace.to_owned());
        Some(LeaseSettings {
            name: self.leader_election_id.clone(),
            duration: self.leader_elect_lease_duration,
            renew_deadline: self.leader_elect_renew_deadline,
            retry_period: self.leader_elect_retry_period,
            // The host name alone would let a restarted container take its predecessor's lease while that is still being killed.
            ..LeaseSettings::new(namespace, format!("{}_{:016x}", host.trim(), jitter.draw("identity", 0)))
        })
    }
}

/// A mistake of who calls, told as clap tells those that it finds itself.
fn usage(sentence: &str) -> clap::Error {
    clap::Error::raw(clap::error::ErrorKind::ValueValidation, format!("{sentence}\n"))
}

/// Runs until a signal, or until the process must not go on.
pub async fn run(args: ManageArgs) -> anyhow::Result<()> {
    start_logs(args.log_format, args.v);
    let namespaces = args.namespaces()?;
    args.check_election()?;
    let access = MaasAccess::from_environment(|name| std::env::var(name).ok())?.map(|access| access.renewed_from(args.own_namespace()));
    let told = args.accepted.told();
    if !told.is_empty() {
        tracing::info!("accepted without effect: {}", told.join("; "));
    }
    let stop = stop_signal()?;
    let listeners = Listeners::bind(&args.health_addr, &args.metrics_bind_addr).await?;
    let client = connect(args.kubeconfig.as_deref()).await?;
    let jitter = Jitter::from_system();
    let settings = Settings {
        namespaces,
        watch_filter: args.watch_filter.clone().filter(|value| !value.is_empty()),
        sync_period: args.sync_period,
        grace_period: args.grace_period,
        lease: args.lease(client.default_namespace(), jitter),
        ..Settings::new(Clock::System, jitter)
    };
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        namespaces = %settings.namespaces,
        watch_filter = settings.watch_filter,
        leader_elect = args.leader_elect,
        machine_concurrency = args.machine_concurrency,
        maas = access.as_ref().map_or("from Secrets", MaasAccess::endpoint),
        "starts"
    );
    let mut controllers = Controllers::new(client.clone(), settings);
    controllers.add_task("the webhooks of the Go provider", move |stop| leftover_webhooks::remove(client, stop));
    let provider = Provider {
        environment: access,
        connect_maas: maas::over_the_network(),
        connect_workload: workload::over_the_network(),
        sweep_period: Duration::from_mins(10),
        machine_concurrency: NonZeroUsize::new(args.machine_concurrency.into()).unwrap_or(NonZeroUsize::MIN),
        machine_rules: machine::Rules::default(),
        cluster_rules: manager::cluster::Rules::default(),
    };
    provider.add_to(&mut controllers);
    controllers.run(listeners, stop).await.context("the manager ended")
}

/// Resolves when somebody asks the process to end.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    Ok(async move {
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        manage: ManageArgs,
    }

    fn parse(arguments: &[&str]) -> ManageArgs {
        Command::try_parse_from([&["manage"], arguments].concat()).map_or_else(|error| panic!("{error}"), |command| command.manage)
    }

    #[test]
    fn the_arguments_of_the_hosted_deployments_are_taken() {
        let args = parse(&["--v=2", "--leader-elect=true", "--sync-period=15m", "--namespace=clusters-a"]);
        assert_eq!((args.v, args.leader_elect, args.sync_period), (2, true, Duration::from_mins(15)));
        assert_eq!(args.namespaces().unwrap().to_string(), "clusters-a");
        let lease = args.lease("pod-namespace", Jitter::seeded(1)).unwrap();
        assert_eq!((lease.namespace.as_str(), lease.name.as_str()), ("pod-namespace", "controller-leader-election-capmaas"));
    }

    #[test]
    fn go_forms_of_booleans_and_short_flags_are_taken() {
        assert!(parse(&["--leader-elect"]).leader_elect);
        assert!(!parse(&["--leader-elect=false"]).leader_elect);
        assert!(!parse(&[]).leader_elect);
        assert_eq!(parse(&["-v=4"]).v, 4);
        assert_eq!(parse(&["--metrics-bind-address=0"]).metrics_bind_addr, ListenOn::Nowhere);
    }

    #[test]
    fn a_watch_filter_that_is_no_label_is_a_usage_error() {
        for good in ["", "a", "blue.team_1-x", &"x".repeat(63)] {
            assert_eq!(parse(&["--watch-filter", good]).watch_filter.as_deref(), Some(good));
        }
        for bad in ["a b", "a=b", "-a", "a-", "ü", &"x".repeat(64)] {
            let refused = Command::try_parse_from(["manage", &format!("--watch-filter={bad}")]).unwrap_err();
            assert_eq!(refused.exit_code(), 2, "{bad}");
        }
    }

    #[test]
    fn an_empty_namespace_means_all_and_many_are_one_set() {
        assert_eq!(parse(&["--namespace="]).namespaces().unwrap(), Namespaces::All);
        assert_eq!(parse(&["--namespace=b,a", "--namespace", "c"]).namespaces().unwrap().to_string(), "a,b,c");
    }

    #[test]
    fn flags_without_effect_are_taken_and_each_is_explained() {
        let args = parse(&[
            "--webhook-port=0",
            "--cluster-role=hcp",
            "--feature-gates=A=true,B=false",
            "--logtostderr",
            "--log-dir=/x",
            "--skip_headers=true",
        ]);
        let told = args.accepted.told().join("; ");
        for flag in ["--webhook-port", "--cluster-role", "--feature-gates", "klog"] {
            assert!(told.contains(flag), "{flag} is not in {told}");
        }
        assert!(parse(&[]).accepted.told().is_empty());
    }

    #[test]
    fn election_times_in_the_wrong_order_are_a_usage_error() {
        parse(&["--leader-elect"]).check_election().unwrap();
        parse(&["--leader-elect-renew-deadline=20s"]).check_election().unwrap();
        for wrong in ["--leader-elect-renew-deadline=20s", "--leader-elect-renew-deadline=15s", "--leader-elect-retry-period=10s"] {
            let refused = parse(&["--leader-elect", wrong]).check_election().unwrap_err();
            assert_eq!(refused.downcast_ref::<clap::Error>().map(clap::Error::exit_code), Some(2), "{wrong}");
            assert!(refused.to_string().contains("--leader-elect-renew-deadline"), "{refused}");
        }
    }
}
