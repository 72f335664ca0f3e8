//! Runs, made on both cores, and what they showed together.

use std::{
    fmt,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use simulation::explorer::{ClusterScenario, ClusterStory, Matrix, Outcome, Scenario, Story, Troubles, run, run_cluster};

/// What a run is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tale {
    /// Machines.
    Machines(Story),
    /// A cluster's name or address.
    Cluster(ClusterStory),
}

impl Tale {
    pub fn all() -> Vec<Self> {
        Story::ALL.map(Self::Machines).into_iter().chain(ClusterStory::ALL.map(Self::Cluster)).collect()
    }

    pub fn run(self, seed: u64, troubles: Troubles) -> Run {
        Run { tale: self, seed, troubles }
    }
}

/// One run to be made, with the rules as they are.
#[derive(Debug, Clone)]
pub struct Run {
    pub tale: Tale,
    pub seed: u64,
    pub troubles: Troubles,
}

impl Run {
    pub fn make(&self) -> Outcome {
        match self.tale {
            Tale::Machines(story) => run(&Scenario::new(self.seed, story, self.troubles.clone())),
            Tale::Cluster(story) => run_cluster(&ClusterScenario::new(self.seed, story, self.troubles.clone())),
        }
    }

    /// Reads what `Display` wrote.
    pub fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ' ');
        let name = parts.next()?;
        let tale = Tale::all().into_iter().find(|tale| format!("{tale:?}") == name)?;
        Some(tale.run(parts.next()?.parse().ok()?, Troubles::read(parts.next()?)?))
    }
}

impl fmt::Display for Run {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} {} {}", self.tale, self.seed, self.troubles)
    }
}

/// What runs showed together.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    pub runs: usize,
    pub matrix: Matrix,
    /// The run with most calls, and how many those were.
    pub longest: (u64, String),
    /// The run with most calls within 20 seconds, and how many those were.
    pub busiest: (usize, String),
}

impl Tally {
    fn count(&mut self, run: &Run, outcome: &Outcome) {
        self.runs += 1;
        self.matrix.add(&outcome.matrix);
        if outcome.calls > self.longest.0 {
            self.longest = (outcome.calls, run.to_string());
        }
        if outcome.busiest > self.busiest.0 {
            self.busiest = (outcome.busiest, run.to_string());
        }
    }

    pub fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.matrix.add(&other.matrix);
        self.longest = self.longest.clone().max(other.longest);
        self.busiest = self.busiest.clone().max(other.busiest);
    }
}

/// Of how many runs one is made: all of them in a build with optimisations, a few in one without.
pub fn share() -> usize {
    if cfg!(debug_assertions) { 61 } else { 1 }
}

/// So many runs that violate something are told; then it ends.
const TOLD: usize = 10;

/// Makes all of them on both cores; those that violate something are told with what is needed to see them again.
pub fn explore(runs: &[Run]) -> Tally {
    let (next, shown) = (AtomicUsize::new(0), Mutex::new(Vec::<String>::new()));
    let make_some = || {
        let mut tally = Tally::default();
        while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = run.make();
            tally.count(run, &outcome);
            let mut shown = shown.lock().unwrap();
            if !outcome.violations.is_empty() {
                let violations: Vec<String> = outcome.violations.iter().map(ToString::to_string).collect();
                shown.push(format!("EXPLORER_TELL=1 EXPLORER_RUN='{run}'\n    {}", violations.join("\n    ")));
            }
            if shown.len() >= TOLD {
                break;
            }
        }
        tally
    };
    let tally = std::thread::scope(|scope| {
        let threads = [scope.spawn(make_some), scope.spawn(make_some)];
        threads.into_iter().fold(Tally::default(), |mut tally, thread| {
            tally.add(thread.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause)));
            tally
        })
    });
    let shown = shown.into_inner().unwrap();
    assert!(shown.is_empty(), "{} runs violate something:\n{}", shown.len(), shown.join("\n"));
    tally
}
