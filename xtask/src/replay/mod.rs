//! `cargo xtask replay`: holds the emulator to recordings of a real MAAS. The recordings themselves are not part of the repository.

mod addresses;
mod compare;
mod constraints;
mod mapping;
mod oauth;
mod ordered;
mod places;
#[cfg(test)]
mod planted;
mod play;
mod races;
mod recordings;
mod rename;
#[cfg(test)]
mod renumbered;
mod report;
mod request;
mod script;
mod seed;
mod seed_machines;
mod uploads;
mod walk;

use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use clap::Args;

use self::{
    play::{Outcome, Played},
    recordings::Recording,
    rename::Rename,
    script::Script,
};
use crate::output::{data, say};

/// What to replay.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Directories with recordings of one session; their files are merged by number
    #[arg(required = true, value_name = "DIRECTORY")]
    directories: Vec<PathBuf>,
    /// Fail when less than this share of the recordings agrees
    #[arg(long, value_name = "PERCENT")]
    at_least: Option<f64>,
    /// Give hosts, system ids, users, addresses and keys other names, chosen by this seed; the result must not depend on it
    #[arg(long, value_name = "SEED")]
    rename: Option<u64>,
    /// Report only these numbers; everything is replayed all the same
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS")]
    only: Vec<u16>,
    /// Show also what agrees
    #[arg(long)]
    verbose: bool,
}

/// Replays and reports.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (recordings, script) = prepare(&arguments.directories, arguments.rename)?;
    let played = play(&recordings, &script)?;
    report(arguments, &recordings, &played);
    let score = report::score(&played);
    data(format!("{} of {} recordings agree: {:.2} %", score.agree, score.compared, score.percent()));
    judge(&played, arguments.at_least)
}

/// Fails when too little agrees, or when the state the recordings were compared in was not the one they were made in.
fn judge(played: &Played, at_least: Option<f64>) -> anyhow::Result<()> {
    ensure!(played.refused.is_empty(), "{} steps of the script were refused: the state is not what it should be", played.refused.len());
    if let Some(least) = at_least {
        ensure!(report::score(played).percent() >= least, "less than {least} % agree");
    }
    Ok(())
}

/// Reads everything and gives it other names if asked to.
fn prepare(directories: &[PathBuf], rename: Option<u64>) -> anyhow::Result<(Vec<Recording>, Script)> {
    let mut recordings = recordings::read(directories)?;
    let mut script = Script::read()?;
    uploads::replace_digests(&mut recordings);
    if let Some(seed) = rename {
        let rename = Rename::new(&recordings, seed);
        rename.recordings(&mut recordings);
        rename.script(&mut script);
    }
    script.add_fields(&mut recordings);
    Ok((recordings, script))
}

fn play(recordings: &[Recording], script: &Script) -> anyhow::Result<Played> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().context("could not start a runtime")?;
    runtime.block_on(play::play(recordings, script))
}

fn report(arguments: &Arguments, recordings: &[Recording], played: &Played) {
    let both = recordings.iter().zip(&played.outcomes);
    let wanted =
        both.filter(|(recording, _): &(&Recording, &Outcome)| arguments.only.is_empty() || arguments.only.contains(&recording.number));
    report::differences(wanted, arguments.verbose).iter().for_each(data);
    for refused in &played.refused {
        say(format!("a step of the script was refused {refused}"));
    }
    data(format!("\n{}\n", report::table(recordings, played)));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What the emulator has promised.
    const LEAST: f64 = 99.0;

    #[test]
    fn a_replay_fails_when_a_step_is_refused_or_too_little_agrees() {
        let played = |refused: &[&str]| Played {
            outcomes: vec![Outcome::Compared(Vec::new()), Outcome::LeftOut("by name".into())],
            refused: refused.iter().map(|words| (*words).to_owned()).collect(),
        };
        assert!(judge(&played(&[]), Some(100.0)).is_ok());
        assert!(judge(&played(&[]), Some(100.5)).is_err());
        assert!(judge(&played(&["before 001: no"]), None).is_err());
    }

    #[test]
    fn the_emulator_agrees_as_promised_whatever_things_are_called() {
        let Some(directory) = planted::directory() else { return };
        let agreeing = |rename: Option<u64>| {
            let (recordings, script) = prepare(std::slice::from_ref(&directory), rename).unwrap();
            let played = play(&recordings, &script).unwrap();
            assert_eq!(played.refused, [""; 0], "steps of the script were refused");
            let agrees = |outcome: &Outcome| matches!(outcome, Outcome::Compared(differences) if differences.is_empty());
            let numbers =
                recordings.iter().zip(&played.outcomes).filter(|(_, outcome)| agrees(outcome)).map(|(recording, _)| recording.number);
            (report::score(&played), numbers.collect::<BTreeSet<_>>())
        };
        let (score, before) = agreeing(None);
        assert!(score.percent() >= LEAST, "only {:.2} % agree: `cargo xtask replay` shows what does not", score.percent());
        for seed in [1, 2] {
            let after = agreeing(Some(seed)).1;
            let changed: Vec<&u16> = before.symmetric_difference(&after).collect();
            assert!(changed.is_empty(), "other names (seed {seed}) change what becomes of {changed:?}");
        }
    }
}
