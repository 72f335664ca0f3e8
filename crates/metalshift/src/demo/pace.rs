//! How long deployments took in this demo, and so how long one that runs will take. Pure; the tree shows it.

use std::collections::BTreeMap;

use api::{MaasMachine, Phase};
use jiff::Timestamp;
use kube::ResourceExt as _;

/// The deployments seen so far.
#[derive(Debug, Default)]
pub struct Pace {
    /// When those that run began, by the name of their object.
    began: BTreeMap<String, Timestamp>,
    /// How many seconds the others took, in order.
    took: Vec<i64>,
}

impl Pace {
    /// Looks at a machine; each deployment counts once, and one that failed does not.
    pub fn see(&mut self, machine: &MaasMachine) {
        let Some(status) = &machine.status else { return };
        let (name, since) = (machine.name_any(), status.phase_since.as_ref().map(|time| time.0));
        match (status.phase, since) {
            (Some(Phase::Deploying), Some(since)) => {
                self.began.insert(name, since);
            }
            (Some(Phase::Deployed), Some(since)) => {
                if let Some(began) = self.began.remove(&name) {
                    self.took.push((since.as_second() - began.as_second()).max(1));
                    self.took.sort_unstable();
                }
            }
            _ => {
                self.began.remove(&name);
            }
        }
    }

    /// How many seconds a deployment usually takes, if one was seen.
    pub fn usual(&self) -> Option<i64> {
        self.took.get(self.took.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn machine(name: &str, phase: &str, since: i64) -> MaasMachine {
        let status = json!({"ready": false, "phase": phase, "phaseSince": Timestamp::from_second(since).unwrap().to_string()});
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"image": "ubuntu/noble"}, "status": status})).unwrap()
    }

    #[test]
    fn what_is_usual_is_the_middle_of_the_deployments_that_were_seen_from_beginning_to_end() {
        let mut pace = Pace::default();
        pace.see(&machine("seen late", "Deployed", 500));
        assert_eq!(pace.usual(), None);
        for (name, took) in [("a", 40), ("b", 4), ("c", 6)] {
            pace.see(&machine(name, "Deploying", 100));
            pace.see(&machine(name, "Deployed", 100 + took));
            pace.see(&machine(name, "Deployed", 100 + took));
        }
        pace.see(&machine("failed", "Deploying", 100));
        pace.see(&machine("failed", "Allocating", 101));
        pace.see(&machine("failed", "Deployed", 102));
        assert_eq!(pace.usual(), Some(6));
    }
}
