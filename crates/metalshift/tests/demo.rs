//! `metalshift demo`, as somebody runs it: it holds, it notices every sabotage, and an interrupted one leaves nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

#[path = "../../lab/tests/waiting/mod.rs"]
mod waiting;

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Output, Stdio},
};

use waiting::is_root;

const PROGRAM: &str = env!("CARGO_BIN_EXE_metalshift");
/// What the demo shows, in its order.
const STEPS: [&str; 7] = ["lab", "provider", "kill", "cluster", "answer", "bad-server", "delete"];

fn demo(name: &str, arguments: &[&str]) -> Command {
    // It ends with the thread of its test, however that ends; its lab is removed by hand then.
    let mut command = Command::new("setpriv");
    let name = format!("{name}-{}", std::process::id());
    command.args(["--pdeathsig", "TERM", "--", PROGRAM, "demo", "--name", &name]).args(arguments).stdin(Stdio::null());
    command
}

fn run(name: &str, arguments: &[&str]) -> Output {
    demo(name, arguments).output().unwrap()
}

/// What became of each step.
fn outcomes(output: &Output) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = |step: &&str| {
        let line = text.lines().find(|line| line.split("  ").map(str::trim).any(|word| word == *step))?;
        let outcome = ["holds", "FAILED", "not tried"].into_iter().find(|word| line.trim_start().starts_with(word))?;
        Some(((*step).to_owned(), outcome.to_owned()))
    };
    STEPS.iter().filter_map(line).collect()
}

/// Nothing of this lab is there any more.
fn assert_gone(name: &str) {
    let name = format!("{name}-{}", std::process::id());
    let status = Command::new(PROGRAM).args(["lab", "status", "--name", &name]).output().unwrap();
    assert!(!status.status.success(), "{}", String::from_utf8_lossy(&status.stdout));
}

#[test]
fn every_step_holds_with_machines_that_boot() {
    if !is_root("machines need root") {
        return;
    }
    let output = run("demo-real", &["--level", "nodes"]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    assert_eq!(outcomes(&output), STEPS.map(|step| (step.to_owned(), "holds".to_owned())), "{words}");
    assert_gone("demo-real");
}

#[test]
fn every_step_holds_without_root_too_and_the_demo_says_what_is_simulated() {
    let output = run("demo-sim", &["--level", "capi"]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    assert_eq!(outcomes(&output), STEPS.map(|step| (step.to_owned(), "holds".to_owned())), "{words}");
    assert!(words.contains("machines and nodes of this demo are simulated"), "{words}");
    assert_gone("demo-sim");
}

#[test]
fn a_sabotaged_step_is_noticed_and_nothing_is_left() {
    // Each is a demo of its own, and some wait a minute for what never comes: METALSHIFT_SABOTAGE=all tries every step.
    let all = std::env::var("METALSHIFT_SABOTAGE").is_ok_and(|which| which == "all");
    let tried = STEPS.iter().filter(|step| all || matches!(**step, "lab" | "bad-server"));
    for step in tried {
        let name = format!("d-{step}");
        let level = if *step == "answer" { "nodes" } else { "capi" };
        let output = run(&name, &["--level", level, "--sabotage", step]);
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(words.contains(&format!("step {step} did not hold")), "{words}");
        let failed: Vec<_> = outcomes(&output).into_iter().filter(|(_, outcome)| outcome == "FAILED").collect();
        assert_eq!(failed, [((*step).to_owned(), "FAILED".to_owned())], "{words}");
        assert_gone(&name);
    }
}

#[test]
fn an_interrupted_demo_removes_everything() {
    let mut process = demo("demo-int", &["--level", "capi"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
    lines.find(|line| line.contains("kill: ")).expect("the demo came as far as to the kill");
    let interrupted = Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let rest: Vec<String> = lines.collect();
    assert_eq!(process.wait().unwrap().code(), Some(1), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("the demo was interrupted; everything of it was removed")), "{rest:?}");
    assert_gone("demo-int");
}
