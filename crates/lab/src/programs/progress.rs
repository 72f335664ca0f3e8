//! What a person reads while programs are built: the step and the time left. `build` reports it, the caller shows it.

use std::fmt;
use std::time::Duration;

/// A line about a build; it replaces the line before it on a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Another process builds the same programs; this one waits until it is through.
    Waiting {
        /// Who that is, such as `process 4711`.
        holder: String,
    },
    /// A step runs. Reported about once a second.
    Building {
        /// Number of the step, from 1.
        step: usize,
        /// How many steps there are in this run.
        of: usize,
        /// What is built.
        name: String,
        /// Since the first step of this run began.
        elapsed: Duration,
        /// Until the last step is expected to be done.
        left: Duration,
        /// True the first time a step is reported: what to print where lines cannot be replaced.
        begins: bool,
    },
}

impl Progress {
    /// Whether it says something that the line before did not: what to print where lines cannot be replaced.
    pub fn is_news(&self) -> bool {
        match self {
            Self::Waiting { .. } => true,
            Self::Building { begins, .. } => *begins,
        }
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting { holder } => write!(formatter, "waiting for {holder}, which builds the same programs"),
            Self::Building { step, of, name, elapsed, left, .. } => {
                write!(formatter, "building {name} ({step}/{of}), {} elapsed, about {} left", Spoken(*elapsed), Spoken(*left))
            }
        }
    }
}

/// A duration as people say it: seconds, or minutes and seconds.
struct Spoken(Duration);

impl fmt::Display for Spoken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.as_secs() / 60, self.0.as_secs() % 60) {
            (0, seconds) => write!(formatter, "{seconds} s"),
            (minutes, seconds) => write!(formatter, "{minutes} min {seconds:02} s"),
        }
    }
}

/// Guesses the time left from what steps took before and from how fast this run is.
#[derive(Debug)]
pub(super) struct Estimate {
    expected: Vec<Duration>,
    finished: usize,
    expected_so_far: Duration,
    took_so_far: Duration,
}

impl Estimate {
    /// With the expected duration of each step that will run.
    pub(super) fn new(expected: Vec<Duration>) -> Self {
        Self { expected, finished: 0, expected_so_far: Duration::ZERO, took_so_far: Duration::ZERO }
    }

    /// The running step is done.
    pub(super) fn step_took(&mut self, took: Duration) {
        self.expected_so_far += self.expected.get(self.finished).copied().unwrap_or_default();
        self.took_so_far += took;
        self.finished += 1;
    }

    /// The running step has run so long and a part of its work, 0 to 1, is seen to be done.
    pub(super) fn left(&self, running: Duration, done: f64) -> Duration {
        let done = done.clamp(0.0, 1.0);
        let running = running.as_secs_f64();
        let pace = self.pace();
        let expected = self.expected.get(self.finished).copied().unwrap_or_default().as_secs_f64() * pace;
        // A step that outlasts its plan is expected to go on for a tenth of what it took, so that the line never promises "now".
        let by_plan = (expected - running).max(running / 10.0);
        let by_speed = if done > 0.0 { running * (1.0 - done) / done } else { by_plan };
        // The further the step is, by its work or by its plan, the more its own speed counts.
        let trust = done.max(running / expected.max(1.0)).min(1.0);
        let step = by_plan * (1.0 - trust) + by_speed * trust;
        let later: Duration = self.expected.iter().skip(self.finished + 1).sum();
        // One second at least: nothing that still runs has no time left.
        Duration::from_secs_f64((step + later.as_secs_f64() * pace).max(1.0))
    }

    /// How this run compares with the expectation; short steps say too little to go by.
    fn pace(&self) -> f64 {
        const ENOUGH: Duration = Duration::from_secs(20);
        if self.expected_so_far < ENOUGH {
            return 1.0;
        }
        (self.took_so_far.as_secs_f64() / self.expected_so_far.as_secs_f64()).clamp(0.02, 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(list: &[u64]) -> Vec<Duration> {
        list.iter().copied().map(Duration::from_secs).collect()
    }

    #[test]
    fn the_line_names_the_step_and_the_time_left() {
        let line = Progress::Building {
            step: 2,
            of: 8,
            name: "kubernetes".to_owned(),
            elapsed: Duration::from_secs(71),
            left: Duration::from_secs(9),
            begins: false,
        };
        assert_eq!(line.to_string(), "building kubernetes (2/8), 1 min 11 s elapsed, about 9 s left");
        assert!(!line.is_news());
    }

    #[test]
    fn at_the_start_the_whole_plan_is_left() {
        assert_eq!(Estimate::new(seconds(&[450, 50])).left(Duration::ZERO, 0.0), Duration::from_secs(500));
    }

    #[test]
    fn a_machine_twice_as_fast_has_half_the_time_left() {
        let mut estimate = Estimate::new(seconds(&[400, 100]));
        estimate.step_took(Duration::from_secs(200));
        assert_eq!(estimate.left(Duration::ZERO, 0.0), Duration::from_secs(50));
    }

    #[test]
    fn work_seen_done_outweighs_the_plan() {
        let estimate = Estimate::new(seconds(&[400]));
        // Nine tenths after 45 seconds: about five seconds to go, though the plan says six minutes.
        let left = estimate.left(Duration::from_secs(45), 0.9);
        assert!(left < Duration::from_mins(1), "{left:?} left");
        // A tenth after the planned time: nine times as long again.
        assert_eq!(estimate.left(Duration::from_secs(400), 0.1), Duration::from_hours(1));
        // Nothing to be seen after the planned time: it takes longer than thought, not no time.
        assert_eq!(estimate.left(Duration::from_secs(500), 0.0), Duration::from_secs(50));
    }
}
