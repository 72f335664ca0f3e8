//! One run: people want machines, keep them, pause, and give them back, while things go wrong.

use std::time::Duration;

use manager::{Jitter, machine::Rules};

use super::{
    people::{NAMESPACE, People},
    pool::Pool,
    trouble::Troubles,
    world::{Outcome, World},
};
use crate::Faults;

/// Servers that are free; one that somebody of the same user holds, and one of another user.
fn fleet(story: Story) -> String {
    let free = if story == Story::Scarce { 1 } else { 4 };
    format!(
        "
subnets: [{{id: 1, cidr: 10.30.0.0/24, name: racks}}]
machines:
  - {{hostname: free-, count: {free}, cpus: 4, memory: 8192}}
  - {{hostname: same-user, cpus: 4, memory: 8192, status: allocated, owner: admin}}
  - {{hostname: other-user, cpus: 4, memory: 8192, status: deployed, owner: somebody}}
users:
  - {{name: admin, superuser: true, keys: [{{key: \"{}\"}}]}}
  - {{name: somebody}}
timings: {{deploy: [8, 20], power_off: [0.5, 1.5]}}
",
        maas_emulator::Fleet::DEFAULT_KEY
    )
}

/// What happens beside the troubles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Story {
    /// Create, keep, delete.
    Plain,
    /// Two processes act at the same time, with caches that lag.
    TwoLeaders,
    /// One server cannot be deployed.
    BadServer,
    /// Everything is deleted in the middle of its creation.
    DeletedEarly,
    /// The cluster is paused, then everything is deleted, then it goes on.
    Paused,
    /// Somebody gives another object's server our claim as its agent name.
    Namesake,
    /// A server is released by hand and taken by somebody else of the same user.
    TakenAway,
    /// There is one server for two objects: one of them waits until the other is gone.
    Scarce,
    /// All servers lose their power, and are switched on again.
    PowerLost,
    /// A server that was handed over is released by hand, deleted, or said to have failed: its object never gets another.
    GoneWrong,
    /// The interfaces of the servers get fixed addresses before they are deployed, and one server cannot be deployed.
    Wired,
    /// The servers become nodes of the workload cluster, which have to be told which machines they are.
    Joined,
    /// A server becomes a node while it is installed, and then fails: the node goes before the server does.
    JoinedEarly,
    /// The servers get addresses from a pool, and an object that goes in the middle comes back under its name. The claim that another one
    /// would need is a person's.
    Pooled,
}

impl Story {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Plain,
        Self::TwoLeaders,
        Self::BadServer,
        Self::DeletedEarly,
        Self::Paused,
        Self::Namesake,
        Self::TakenAway,
        Self::Scarce,
        Self::PowerLost,
        Self::GoneWrong,
        Self::Wired,
        Self::Joined,
        Self::JoinedEarly,
        Self::Pooled,
    ];
}

/// One run to be made.
#[derive(Clone)]
pub struct Scenario {
    /// The seed of everything.
    pub seed: u64,
    /// What happens.
    pub story: Story,
    /// What goes wrong.
    pub troubles: Troubles,
    /// The rules.
    pub rules: Rules,
}

impl Scenario {
    /// A run with the rules as they are.
    pub fn new(seed: u64, story: Story, troubles: Troubles) -> Self {
        Self { seed, story, troubles, rules: Rules::default() }
    }
}

/// Makes a run, in a paused world of its own.
pub fn run(scenario: &Scenario) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime can be made");
    runtime.block_on(play(scenario.clone()))
}

async fn play(scenario: Scenario) -> Outcome {
    let Scenario { seed, story, troubles, rules } = scenario;
    let lag = if story == Story::TwoLeaders { Duration::from_secs(8) } else { Duration::from_millis(200) };
    let faults = Faults { jitter: Jitter::seeded(seed), slowest: Duration::from_millis(50), watch_lag: lag, ..Faults::none() };
    let world = World::new(&fleet(story), seed, troubles, faults);
    let people = People::new(&world, seed);
    people.prepare(story).await;
    let second = async {
        if story == Story::TwoLeaders {
            world.manage_for_ever(&rules).await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    let pool = async {
        if story == Story::Pooled {
            Pool::new(&world, NAMESPACE, seed).serve().await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    let first = world.manage_for_ever(&rules);
    tokio::select! {
        biased;
        () = people.live(story) => {}
        () = first => {}
        () = second => {}
        () = pool => {}
    }
    world.outcome()
}
