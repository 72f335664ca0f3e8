//! A cluster as a tree: where each machine is in its life, on which server, and until when that may take. Pure; the screen shows it.

use std::fmt::Write as _;

use api::{MaasMachine, Phase};
use jiff::Timestamp;
use kube::ResourceExt as _;

/// What is behind it is in `kubectl describe`.
const LONGEST_MESSAGE: usize = 70;

/// A machine as the tree shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// Whether it belongs to the control plane.
    pub control_plane: bool,
    /// The object.
    pub name: String,
    /// The server in MAAS.
    pub server: String,
    /// Its zone.
    pub zone: String,
    /// Where it is in its life.
    pub phase: Option<Phase>,
    /// Why it is not further.
    pub reason: String,
    /// The same in words.
    pub message: String,
    /// When the phase should be over.
    pub expected_end: Option<Timestamp>,
    /// Servers that failed before.
    pub failed: Vec<String>,
}

impl Leaf {
    /// What an object says.
    pub fn of(machine: &MaasMachine) -> Self {
        let status = machine.status.clone().unwrap_or_default();
        let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready");
        Self {
            control_plane: machine.labels().contains_key(api::names::CONTROL_PLANE),
            name: machine.name_any(),
            server: status.hostname.unwrap_or_default(),
            zone: status.failure_domain.unwrap_or_default(),
            phase: status.phase,
            reason: ready.map(|ready| ready.reason.clone()).unwrap_or_default(),
            message: ready.map(|ready| ready.message.clone()).unwrap_or_default(),
            expected_end: status.expected_end.map(|end| end.0),
            failed: status.attempts.into_iter().map(|attempt| attempt.hostname.unwrap_or(attempt.system_id)).collect(),
        }
    }

    fn is_done(&self) -> bool {
        self.phase == Some(Phase::Deployed)
    }

    fn line(&self, now: Timestamp) -> String {
        let phase = self.phase.map_or_else(|| "-".to_owned(), |phase| format!("{phase:?}"));
        let mut line = format!("{:<34} {:<11} {:<7} {phase:<9}", self.name, self.server, self.zone);
        if !self.is_done() {
            let words: String = self.message.chars().take(LONGEST_MESSAGE).collect();
            let _ = write!(line, " {}: {words}", self.reason);
        }
        if let Some(left) = self.expected_end.map(|end| end.as_second() - now.as_second()).filter(|left| *left > 0 && !self.is_done()) {
            let _ = write!(line, ", at most {} more", duration(left));
        }
        if !self.failed.is_empty() {
            let _ = write!(line, " (failed before: {})", self.failed.join(", "));
        }
        line.trim_end().to_owned()
    }
}

fn duration(seconds: i64) -> String {
    if seconds < 120 { format!("{seconds} s") } else { format!("{} min", seconds / 60) }
}

/// The tree, a line each.
pub fn lines(cluster: &str, endpoint: &str, leaves: &[Leaf], now: Timestamp) -> Vec<String> {
    let mut lines = vec![format!("{cluster} {endpoint}").trim_end().to_owned()];
    let groups = [("control plane", true), ("workers", false)].map(|(title, control_plane)| {
        let mut members: Vec<&Leaf> = leaves.iter().filter(|leaf| leaf.control_plane == control_plane).collect();
        members.sort_by(|one, other| one.name.cmp(&other.name));
        (title, members)
    });
    let groups: Vec<_> = groups.into_iter().filter(|(_, members)| !members.is_empty()).collect();
    for (number, (title, members)) in groups.iter().enumerate() {
        let (branch, stem) = if number + 1 == groups.len() { ("└─", "  ") } else { ("├─", "│ ") };
        let done = members.iter().filter(|leaf| leaf.is_done()).count();
        lines.push(format!("{branch} {title}: {done} of {} deployed", members.len()));
        for (number, leaf) in members.iter().enumerate() {
            let twig = if number + 1 == members.len() { "└─" } else { "├─" };
            lines.push(format!("{stem} {twig} {}", leaf.line(now)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(name: &str, control_plane: bool, phase: Phase) -> Leaf {
        Leaf {
            control_plane,
            name: name.to_owned(),
            server: "a-small-01".to_owned(),
            zone: "zone-a".to_owned(),
            phase: Some(phase),
            reason: "MachineDeploying".to_owned(),
            message: "MAAS installs it".to_owned(),
            expected_end: Some(Timestamp::from_second(90).unwrap()),
            failed: Vec::new(),
        }
    }

    #[test]
    fn what_is_done_says_no_more_and_what_is_not_says_why_and_until_when() {
        let mut second = leaf("w2", false, Phase::Deploying);
        second.failed = vec!["a-small-03".to_owned()];
        let leaves = [second, leaf("w1", false, Phase::Deployed), leaf("c1", true, Phase::Deployed)];
        let lines = lines("demo", "https://demo.maas:6443", &leaves, Timestamp::from_second(60).unwrap());
        let trimmed: Vec<String> = lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            trimmed,
            [
                "demo https://demo.maas:6443",
                "├─ control plane: 1 of 1 deployed",
                "│ └─ c1 a-small-01 zone-a Deployed",
                "└─ workers: 1 of 2 deployed",
                "├─ w1 a-small-01 zone-a Deployed",
                "└─ w2 a-small-01 zone-a Deploying MachineDeploying: MAAS installs it, at most 30 s more (failed before: a-small-03)",
            ]
        );
    }
}
