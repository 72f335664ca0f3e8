//! The world of one run: an API server, a MAAS, people who want machines, and processes of the real manager that can be killed.

use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::SignedDuration;
use maas_client::{Client, ExposeSecret};
use maas_emulator::{Clock as MaasClock, Emulator, Fleet, Options};
use manager::{
    Clock, Controllers, Jitter, Listeners, Provider, Settings, cluster,
    maas::{Connect, MaasAccess},
    machine::Rules,
    workload::ConnectWorkload,
};
use tokio::{sync::Notify, time::sleep};

use super::{
    matrix::Matrix,
    trouble::{CallKind, Troubles},
    wire::{Kill, WINDOW, Wire},
    witness::{Violation, Witness},
};
use crate::{ApiServer, Faults};

/// How long a process takes to come back after it was killed.
const RESTART: Duration = Duration::from_secs(3);

/// By so many seconds the clock of a process is ahead or behind at most.
const MOST_SKEW: u64 = 60;

/// No run needs more calls within [`WINDOW`]: more than that is a storm. A process that starts anew makes far fewer.
const MOST_IN_WINDOW: usize = 400;
/// No run needs more calls in all. The longest have about 1,800, nearly all of which only ask what is new, once a second; a story that
/// recovers from several hangs takes some more time.
const MOST_CALLS: u64 = 5_000;

/// What a run showed.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What must not have happened.
    pub violations: Vec<Violation>,
    /// What went wrong on the way.
    pub matrix: Matrix,
    /// How many calls the controllers made.
    pub calls: u64,
    /// How many of them within 20 seconds, when there were most.
    pub busiest: usize,
    /// What each of them was, in order.
    pub kinds: Vec<CallKind>,
    /// How many of each kind.
    pub calls_by_kind: BTreeMap<CallKind, u64>,
    /// The digest of all calls to Kubernetes.
    pub digest: String,
}

/// Everything there is in one run.
#[derive(Clone)]
pub struct World {
    /// Kubernetes.
    pub server: ApiServer,
    /// The cluster that runs on the machines.
    pub workload: ApiServer,
    /// MAAS.
    pub emulator: Emulator,
    /// Who looks at everything.
    pub witness: Witness,
    /// What the controllers' calls pass.
    pub wire: Wire,
    /// The rules about clusters.
    pub cluster_rules: cluster::Rules,
    clock: Clock,
    seed: u64,
    lives: Arc<AtomicU64>,
    nonces: Arc<AtomicU64>,
}

impl World {
    /// A world with these servers, in which these things go wrong.
    pub fn new(fleet: &str, seed: u64, troubles: Troubles, faults: Faults) -> Self {
        let epoch = jiff::Timestamp::from_second(1_800_000_000).unwrap_or_default();
        let clock = Clock::starting_at(epoch);
        let options = Options { clock: MaasClock::running(epoch), seed, ..Options::default() };
        let fleet = Fleet::from_yaml(fleet).expect("the fleet of the explorer is well-formed");
        let emulator = Emulator::new(fleet, options).expect("the fleet of the explorer is consistent");
        let (server, workload) = (ApiServer::new(clock, faults), ApiServer::new(clock, faults));
        let witness = Witness::new(server.clone(), emulator.clone());
        let wire = Wire::new(workload.clone(), witness.clone(), troubles, seed);
        Self {
            server,
            workload,
            emulator,
            witness,
            wire,
            cluster_rules: cluster::Rules::default(),
            clock,
            seed,
            lives: Arc::default(),
            nonces: Arc::default(),
        }
    }

    /// A client nothing happens to: people's, and Cluster API's.
    pub fn people(&self) -> kube::Client {
        self.server.client("people")
    }

    /// The run is over: says what it showed and lets go of what takes room. Processes that were cut off keep the rest of their world alive.
    pub(super) fn outcome(&self) -> Outcome {
        let (calls, busiest) = (self.wire.calls(), self.wire.busiest());
        if busiest > MOST_IN_WINDOW {
            self.witness.violated(format!("a storm: {busiest} calls within {WINDOW:?}, and {MOST_IN_WINDOW} are enough"));
        }
        if calls > MOST_CALLS {
            self.witness.violated(format!("{calls} calls were made in one run, and {MOST_CALLS} are enough"));
        }
        for server in [&self.server, &self.workload] {
            server.forget_history();
        }
        drop(self.workload.trace().finish());
        self.emulator.journal(maas_emulator::journal::Journal::clear);
        Outcome {
            violations: self.witness.violations(),
            matrix: self.wire.matrix(),
            calls,
            busiest,
            kinds: self.wire.kinds(),
            calls_by_kind: self.wire.calls_by_kind(),
            digest: self.server.trace().finish(),
        }
    }

    /// A process that is started again whenever it ends or is killed, for ever.
    pub async fn manage_for_ever(&self, rules: &Rules) {
        loop {
            let kill = Kill::new(Notify::new());
            let life = self.lives.fetch_add(1, Ordering::Relaxed);
            tokio::select! {
                biased;
                () = kill.notified() => {}
                () = self.manage(life, &kill, rules.clone()) => {}
            }
            sleep(RESTART).await;
        }
    }

    async fn manage(&self, life: u64, kill: &Kill, rules: Rules) {
        let client = self.wire.kubernetes(&format!("process-{life}"), kill);
        let jitter = Jitter::seeded(self.seed ^ (life << 32));
        // No two processes run by the same clock.
        let skew =
            i64::try_from(jitter.draw("clock", 0) % (2 * MOST_SKEW)).unwrap_or_default() - i64::try_from(MOST_SKEW).unwrap_or_default();
        let clock = self.clock.ahead_by(SignedDuration::from_secs(skew));
        let settings = Settings { sync_period: Duration::from_mins(10), ..Settings::new(clock, jitter) };
        let mut controllers = Controllers::new(client, settings);
        let environment = MaasAccess::from_environment(|name| match name {
            "MAAS_ENDPOINT" => Some("http://maas.test:5240/MAAS".to_owned()),
            "MAAS_API_KEY" => Some(Fleet::DEFAULT_KEY.to_owned()),
            _ => None,
        });
        let environment = environment.expect("the access of the explorer is well-formed");
        let provider = Provider {
            environment,
            connect_maas: self.connect(&format!("process-{life}"), kill),
            connect_workload: self.connect_workload(&format!("process-{life}"), kill),
            sweep_period: Duration::from_mins(10),
            machine_concurrency: NonZeroUsize::MIN.saturating_add(9),
            machine_rules: rules,
            cluster_rules: self.cluster_rules.clone(),
        };
        provider.add_to(&mut controllers);
        drop(controllers.run(Listeners::default(), std::future::pending()).await);
    }

    /// Whatever the kubeconfig says: there is one workload cluster.
    fn connect_workload(&self, process: &str, kill: &Kill) -> ConnectWorkload {
        let (wire, process, kill) = (self.wire.clone(), process.to_owned(), Arc::clone(kill));
        Arc::new(move |_| Ok(wire.workload(&process, &kill)))
    }

    fn connect(&self, process: &str, kill: &Kill) -> Connect {
        let (world, process, kill) = (self.clone(), process.to_owned(), Arc::clone(kill));
        Arc::new(move |credentials| {
            let (clock, nonces) = (world.clock, Arc::clone(&world.nonces));
            let builder = Client::builder(credentials.endpoint.as_str(), credentials.key.expose_secret())?
                .clock(move || u64::try_from(clock.now().as_second()).unwrap_or_default())
                .randomness(move || u128::from(nonces.fetch_add(1, Ordering::Relaxed)));
            Ok((builder, world.wire.maas(&process, &kill)))
        })
    }
}
