//! One thing goes wrong, at every single call of create, keep and delete.

use simulation::explorer::{Fate, Matrix, Scenario, Story, Trouble, Troubles, run};

/// Runs all of them on both cores; the first that violates anything is told with what is needed to see it again.
pub fn explore(scenarios: impl IntoIterator<Item = Scenario>) -> Matrix {
    let scenarios: Vec<Scenario> = scenarios.into_iter().collect();
    let half = scenarios.len().div_ceil(2).max(1);
    let run_all = |part: &[Scenario]| {
        let mut matrix = Matrix::default();
        for scenario in part {
            let outcome = run(scenario);
            let told: Vec<String> = outcome.violations.iter().map(ToString::to_string).collect();
            assert!(told.is_empty(), "seed {}, {:?}, {:?}: {told:#?}", scenario.seed, scenario.story, scenario.troubles);
            matrix.add(&outcome.matrix);
        }
        matrix
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = scenarios.chunks(half).map(|part| scope.spawn(move || run_all(part))).collect();
        threads.into_iter().fold(Matrix::default(), |mut matrix, thread| {
            matrix.add(&thread.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause)));
            matrix
        })
    })
}

/// Of how many runs one is made: all of them in a build with optimisations, a few in one without.
pub fn share() -> usize {
    if cfg!(debug_assertions) { 61 } else { 1 }
}

#[test]
fn every_call_may_meet_every_fate() {
    let calls = run(&Scenario::new(1, Story::Plain, Troubles::None)).calls;
    let all = (1..=calls).flat_map(|call| Fate::ALL.map(|fate| Troubles::One(Trouble { call, fate })));
    let matrix = explore(all.step_by(share()).map(|troubles| Scenario::new(1, Story::Plain, troubles)));
    eprintln!("{matrix}");
}
