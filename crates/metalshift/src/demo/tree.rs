//! A cluster as a tree: where each machine is in its life, on which server, how long already and how long still. Pure; the screen shows it.
//!
//! What a person waits for comes first in a line, so that it is there on a terminal of 80 columns too; why it waits is cut before that.

use std::fmt::Write as _;

use api::{MaasMachine, Phase};
use jiff::Timestamp;
use kube::ResourceExt as _;

use super::screen::Line;

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
    /// Since when.
    pub since: Option<Timestamp>,
    /// When the phase has to be over, or the server is given back.
    pub latest_end: Option<Timestamp>,
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
            since: status.phase_since.map(|since| since.0),
            latest_end: status.expected_end.map(|end| end.0),
            failed: status.attempts.into_iter().map(|attempt| attempt.hostname.unwrap_or(attempt.system_id)).collect(),
        }
    }

    fn is_done(&self) -> bool {
        self.phase == Some(Phase::Deployed)
    }

    fn line(&self, cluster: &str, clock: Clock) -> Line {
        // The tree begins with the cluster's name.
        let name = self.name.strip_prefix(&format!("{cluster}-")).unwrap_or(&self.name);
        let phase = self.phase.map_or_else(|| "-".to_owned(), |phase| format!("{phase:?}"));
        let before = format!("{name:<19} {:<10} {phase:<10}", self.server);
        let mut after = self.zone.clone();
        if !self.failed.is_empty() {
            let _ = write!(after, " (failed before: {})", self.failed.join(", "));
        }
        if !self.is_done() && !self.reason.is_empty() {
            let words: String = self.message.chars().take(LONGEST_MESSAGE).collect();
            let _ = write!(after, " {}: {words}", self.reason);
        }
        let times = self.times(clock);
        let gap = if times.is_empty() { String::new() } else { format!(" {times:<21}") };
        Line { text: format!("{before}{gap} {}", after.trim_start()).trim_end().to_owned(), news: format!("{before} {after}") }
    }

    /// How long it has been deployed already, and when that should end: judged by the others, or else by what it may take.
    fn times(&self, clock: Clock) -> String {
        let (Some(Phase::Deploying), Some(since)) = (self.phase, self.since) else { return String::new() };
        let so_far = (clock.now.as_second() - since.as_second()).max(0);
        let end = match (clock.usual, self.latest_end) {
            (Some(usual), _) if usual > so_far => format!("about {} left", duration(usual - so_far)),
            (Some(_), _) => "longer than most".to_owned(),
            (None, Some(latest)) => format!("at most {}", duration((latest.as_second() - clock.now.as_second()).max(0))),
            (None, None) => return duration(so_far),
        };
        format!("{}, {end}", duration(so_far))
    }
}

/// What the times in a tree are judged by.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    pub now: Timestamp,
    /// How many seconds a deployment takes here, if that is known.
    pub usual: Option<i64>,
}

fn duration(seconds: i64) -> String {
    if seconds < 120 { format!("{seconds} s") } else { format!("{} min", seconds / 60) }
}

/// The tree, a line each.
pub fn lines(cluster: &str, endpoint: &str, leaves: &[Leaf], clock: Clock) -> Vec<Line> {
    let mut lines = vec![Line::from(format!("{cluster} {endpoint}").trim_end().to_owned())];
    let groups = [("control plane", true), ("workers", false)].map(|(title, control_plane)| {
        let mut members: Vec<&Leaf> = leaves.iter().filter(|leaf| leaf.control_plane == control_plane).collect();
        members.sort_by(|one, other| one.name.cmp(&other.name));
        (title, members)
    });
    let groups: Vec<_> = groups.into_iter().filter(|(_, members)| !members.is_empty()).collect();
    for (number, (title, members)) in groups.iter().enumerate() {
        let (branch, stem) = if number + 1 == groups.len() { ("└─", "  ") } else { ("├─", "│ ") };
        let done = members.iter().filter(|leaf| leaf.is_done()).count();
        lines.push(Line::from(format!("{branch} {title}: {done} of {} deployed", members.len())));
        for (number, leaf) in members.iter().enumerate() {
            let twig = if number + 1 == members.len() { "└─" } else { "├─" };
            let line = leaf.line(cluster, clock);
            lines.push(Line { text: format!("{stem} {twig} {}", line.text), news: format!("{stem} {twig} {}", line.news) });
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
            since: Some(Timestamp::from_second(48).unwrap()),
            latest_end: Some(Timestamp::from_second(3648).unwrap()),
            failed: Vec::new(),
        }
    }

    fn shown(leaves: &[Leaf], usual: Option<i64>) -> Vec<String> {
        let clock = Clock { now: Timestamp::from_second(60).unwrap(), usual };
        lines("demo", "https://demo.maas:6443", leaves, clock).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn what_is_done_says_no_more_and_what_is_not_says_how_long_still_and_why() {
        let mut second = leaf("demo-w2", false, Phase::Deploying);
        second.failed = vec!["a-small-03".to_owned()];
        let leaves = [second, leaf("demo-w1", false, Phase::Deployed), leaf("demo-c1", true, Phase::Deployed)];
        let trimmed: Vec<String> =
            shown(&leaves, Some(42)).iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            trimmed,
            [
                "demo https://demo.maas:6443",
                "├─ control plane: 1 of 1 deployed",
                "│ └─ c1 a-small-01 Deployed zone-a",
                "└─ workers: 1 of 2 deployed",
                "├─ w1 a-small-01 Deployed zone-a",
                "└─ w2 a-small-01 Deploying 12 s, about 30 s left zone-a (failed before: a-small-03) MachineDeploying: MAAS installs it",
            ]
        );
    }

    #[test]
    fn the_end_is_judged_by_the_deployments_before_and_without_one_by_what_is_allowed() {
        for (usual, expected) in [(None, "12 s, at most 59 min"), (Some(40), "12 s, about 28 s left"), (Some(12), "12 s, longer than most")]
        {
            let line = shown(&[leaf("demo-w2", false, Phase::Deploying)], usual).pop().unwrap();
            assert!(line.contains(expected), "{line}");
        }
        let line = shown(&[leaf("demo-w2", false, Phase::Allocating)], Some(40)).pop().unwrap();
        assert!(!line.contains(" s"), "nobody knows when a server will be free: {line}");
    }

    #[test]
    fn eighty_columns_are_enough_for_machine_phase_progress_and_end_and_120_for_where_and_what_failed() {
        let mut machine = leaf("demo-workers-d62x9-k2f4s", false, Phase::Deploying);
        machine.failed = vec!["a-small-03".to_owned()];
        let line = shown(&[machine], Some(100)).pop().unwrap();
        // As the screen draws it.
        let of = |columns: usize| line.chars().take(columns - 1 - 7).collect::<String>();
        assert!(of(80).contains("workers-d62x9-k2f4s a-small-01 Deploying  12 s, about 88 s left"), "{}", of(80));
        assert!(of(120).contains("zone-a (failed before: a-small-03)"), "{}", of(120));
    }

    #[test]
    fn times_are_no_news() {
        let of = |usual| {
            let clock = Clock { now: Timestamp::from_second(60).unwrap(), usual };
            lines("demo", "", &[leaf("demo-w2", false, Phase::Deploying)], clock).pop().unwrap()
        };
        assert_ne!(of(None).text, of(Some(40)).text);
        assert_eq!(of(None).news, of(Some(40)).news);
    }
}
