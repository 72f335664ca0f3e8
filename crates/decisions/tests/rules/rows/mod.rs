//! The rows of Cluster API's contract that rules alone can show. A check takes the rules: the real ones in the test that is named after
//! its row, and in each test called `planted_row_…` rules with one mistake in them, which exactly that row's check has to find. A mistake is a
//! change of the facts before the rules see them, or of the plan they made.

mod clusters;
mod machines;
mod planted_in_clusters;
mod planted_in_machines;

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
    sync::Once,
};

use decisions::{cluster, machine};
use jiff::Timestamp;

/// The rules, as they are or with a mistake.
pub struct Rules {
    /// What becomes of facts about a machine before the rules see them.
    pub machine_seen: fn(&mut machine::Facts),
    /// What becomes of a plan about a machine.
    pub machine_planned: fn(&machine::Facts, &mut machine::Plan),
    /// What becomes of facts about a cluster before the rules see them.
    pub cluster_seen: fn(&mut cluster::Facts),
    /// What becomes of a plan about a cluster.
    pub cluster_planned: fn(&cluster::Facts, &mut cluster::Plan),
}

pub const REAL: Rules = Rules { machine_seen: |_| (), machine_planned: |_, _| (), cluster_seen: |_| (), cluster_planned: |_, _| () };

impl Rules {
    fn machine(&self, facts: &machine::Facts, now: Timestamp) -> machine::Plan {
        let mut seen = facts.clone();
        (self.machine_seen)(&mut seen);
        let mut plan = machine::decide(&seen, now);
        (self.machine_planned)(facts, &mut plan);
        plan
    }

    fn asks_maas_about_machine(&self, facts: &machine::Facts) -> bool {
        let mut seen = facts.clone();
        (self.machine_seen)(&mut seen);
        seen.concerns_maas()
    }

    fn cluster(&self, facts: &cluster::Facts, now: Timestamp) -> cluster::Plan {
        let mut seen = facts.clone();
        (self.cluster_seen)(&mut seen);
        let mut plan = cluster::decide(&seen, now);
        (self.cluster_planned)(facts, &mut plan);
        plan
    }
}

/// Panics unless the rules obey a row of the contract.
type Check = fn(&Rules);

/// Panics unless this mistake is found by a check of this row and by no other.
fn only(row: u32, mistake: &Rules) {
    let checks = machines::CHECKS.into_iter().chain(clusters::CHECKS);
    let found: Vec<u32> = checks.filter(|(_, check)| quietly_fails(*check, mistake)).map(|(row, _)| row).collect();
    assert_eq!(found, [row], "the rows whose checks found the mistake");
}

fn quietly_fails(check: Check, rules: &Rules) -> bool {
    thread_local! {
        static QUIET: Cell<bool> = const { Cell::new(false) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                usual(panic);
            }
        }));
    });
    QUIET.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(|| check(rules)));
    QUIET.set(false);
    outcome.is_err()
}
