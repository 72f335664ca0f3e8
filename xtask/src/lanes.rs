//! Runs test programs side by side: most of them wait for labs most of the time, and one after the other would take twice as long.
//! Used by `test`.

use std::{
    process::{Command, Output},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};

use crate::{build::TestProgram, output::say};

/// How many run at the same time. Each runs as many of its tests at once as there are processors, and more of them would wait for each
/// other: a third was tried on two processors, and labs did not come up in time.
const LANES: usize = 2;
/// The longest begin first, so that none of them is left over at the end, when everything else is through.
const FIRST: [(&str, &str); 6] = [
    ("metalshift", "real_clusters"),
    ("metalshift", "demo"),
    ("metalshift", "packaging"),
    ("manager", "provider"),
    ("metalshift", "kubeadm"),
    ("metalshift", "maas_machines"),
];
/// These compare the host with itself, and others have labs, namespaces and mounts.
const ALONE: [(&str, &str); 1] = [("metalshift", "killed")];

/// Runs all of them by their commands, whatever becomes of some.
pub fn run(mut programs: Vec<TestProgram>, command: impl Fn(&TestProgram) -> Command + Sync) -> anyhow::Result<()> {
    programs.sort_by_key(|program| FIRST.iter().position(|name| program.is(*name)).unwrap_or(FIRST.len()));
    let (alone, together) = programs.into_iter().partition(|program| ALONE.iter().any(|name| program.is(*name)));
    let mut outcomes = side_by_side(together, LANES, &command);
    outcomes.extend(side_by_side(alone, 1, &command));
    ensure!(!outcomes.is_empty(), "cargo built no tests");
    say(slowest(&outcomes));
    let failed: Vec<&str> = outcomes.iter().filter(|outcome| outcome.failed).map(|outcome| outcome.name.as_str()).collect();
    ensure!(failed.is_empty(), "tests failed in {}", failed.join(", "));
    Ok(())
}

#[derive(Debug)]
struct Outcome {
    name: String,
    took: Duration,
    failed: bool,
}

fn side_by_side(programs: Vec<TestProgram>, lanes: usize, command: &(impl Fn(&TestProgram) -> Command + Sync)) -> Vec<Outcome> {
    let waiting = Mutex::new(programs.into_iter());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let lane = || std::iter::from_fn(next).map(|program| run_one(&program, command(&program))).collect::<Vec<_>>();
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
        lanes.into_iter().flat_map(|lane| lane.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// Runs it and shows its words when it has ended, so that they do not get between those of others.
fn run_one(program: &TestProgram, mut command: Command) -> Outcome {
    let began = Instant::now();
    let output = command.output().context("could not be run");
    let outcome =
        Outcome { name: program.to_string(), took: began.elapsed(), failed: !output.as_ref().is_ok_and(|output| output.status.success()) };
    say(format!("\n--- {} ({:.1} s)\n{}", outcome.name, outcome.took.as_secs_f64(), words(output)));
    outcome
}

fn words(output: anyhow::Result<Output>) -> String {
    match output {
        Ok(output) => [output.stderr, output.stdout].map(|words| String::from_utf8_lossy(&words).into_owned()).concat().trim().to_owned(),
        Err(error) => format!("{error:#}"),
    }
}

/// Where the time of the tests went.
fn slowest(outcomes: &[Outcome]) -> String {
    let mut outcomes: Vec<&Outcome> = outcomes.iter().collect();
    outcomes.sort_by_key(|outcome| std::cmp::Reverse(outcome.took));
    let lines = outcomes.iter().take(10).map(|outcome| format!("{:>8.1} s  {}", outcome.took.as_secs_f64(), outcome.name));
    format!("\nthe slowest of {} test programs:\n{}", outcomes.len(), lines.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::test_program;

    fn program(package: &str, executable: &str) -> TestProgram {
        TestProgram { package: package.to_owned(), name: "tests".to_owned(), executable: executable.into(), directory: "/".into() }
    }

    #[test]
    fn all_are_run_and_those_that_failed_are_named() {
        let programs = ["/bin/true", "/bin/false", "/bin/true", "/no/such/program", "/bin/true"];
        let programs = programs.iter().enumerate().map(|(number, path)| program(&format!("package-{number}"), path)).collect();
        let error = run(programs, test_program).unwrap_err().to_string();
        let mut named: Vec<&str> = error.strip_prefix("tests failed in ").unwrap().split(", ").collect();
        named.sort_unstable();
        assert_eq!(named, ["package-1/tests", "package-3/tests"]);
        run(vec![program("package", "/bin/true")], test_program).unwrap();
    }

    #[test]
    fn no_tests_at_all_are_no_success() {
        assert_eq!(run(Vec::new(), test_program).unwrap_err().to_string(), "cargo built no tests");
    }
}
