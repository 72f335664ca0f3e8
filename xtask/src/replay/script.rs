//! The script of a replay: what recordings do not hold. It is data, in `script.yaml`; this reads it and finds what is due.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;

use super::recordings::Recording;

const TEXT: &str = include_str!("script.yaml");

/// All of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    pub runs: Vec<Run>,
    pub seed: Invented,
    pub left_out: Vec<LeftOut>,
    pub added: Vec<Added>,
    pub steps: Vec<Step>,
}

/// Exchanges from this number on begin again from the seed.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    pub from: u16,
    /// Unix time of its beginning.
    pub clock: i64,
}

/// What the seed holds and no recording shows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invented {
    /// The number of the last event before the first request.
    pub events: u32,
    pub devices: Vec<BTreeMap<String, String>>,
    pub timings: Value,
}

/// A recording that is not compared, or only in part.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    pub name: String,
    #[serde(default)]
    pub keys: Vec<String>,
    pub reason: String,
}

/// A field each exchange of a recording had and the recording lacks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Added {
    pub name: String,
    pub field: String,
    pub values: Vec<String>,
}

/// Things to do before the first exchange whose number is not below `before`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub before: u16,
    #[serde(rename = "do")]
    pub actions: Vec<Action>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A request that was not recorded.
    Call(Call),
    /// Time that passes, in seconds.
    Wait(f64),
    /// The time it is, as Unix time.
    Clock(i64),
    /// Something that goes wrong from now on, in the emulator's words.
    Fault(Value),
    /// Nothing goes wrong any more.
    Clear(Cleared),
    /// Somebody who was not there from the beginning is there now, with the key that requests of that name are signed with.
    Join(String),
    /// A state written past the API.
    Set(Set),
    /// All links of an interface are taken away and one is made.
    Relink(Relink),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cleared {
    Faults,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub user: String,
    #[serde(default = "post")]
    pub method: String,
    pub path: String,
    pub op: Option<String>,
    #[serde(default)]
    pub form: BTreeMap<String, String>,
}

fn post() -> String {
    "POST".to_owned()
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    pub machine: String,
    pub status: Option<String>,
    pub power: Option<bool>,
    pub discovered: Option<Discovered>,
}

/// An address that was seen on an interface.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Discovered {
    pub interface: String,
    pub address: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relink {
    pub user: String,
    pub machine: String,
    pub interface: String,
    pub mode: String,
    pub subnet: Option<String>,
}

impl Script {
    pub fn read() -> anyhow::Result<Self> {
        serde_saphyr::from_str(TEXT).context("could not read the script of the replay")
    }

    /// The run an exchange belongs to.
    pub fn run_of(&self, number: u16) -> Option<Run> {
        self.runs.iter().filter(|run| run.from <= number).max_by_key(|run| run.from).copied()
    }

    /// What is due before `number` and was not before `previous`; steps of earlier runs are not.
    pub fn due(&self, previous: Option<u16>, number: u16) -> impl Iterator<Item = &Action> {
        let begin = self.run_of(number).map_or(0, |run| run.from);
        let done = previous.filter(|previous| *previous >= begin);
        let due = move |step: &&Step| step.before >= begin && step.before <= number && done.is_none_or(|done| step.before > done);
        self.steps.iter().filter(due).flat_map(|step| &step.actions)
    }

    /// Those who are not there from the beginning.
    pub fn joining(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().flat_map(|step| &step.actions).filter_map(|action| match action {
            Action::Join(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// The words about a recording that is not compared at all.
    pub fn left_out(&self, recording: &Recording) -> Option<&str> {
        let whole = |left_out: &&LeftOut| left_out.name == recording.name && left_out.keys.is_empty();
        self.left_out.iter().find(whole).map(|left_out| left_out.reason.as_str())
    }

    /// The keys of a recording's bodies that are not compared.
    pub fn keys_left_out(&self, recording: &Recording) -> &[String] {
        self.left_out.iter().find(|left_out| left_out.name == recording.name).map_or(&[], |left_out| &left_out.keys)
    }

    /// Gives requests the fields their recordings lack.
    pub fn add_fields(&self, recordings: &mut [Recording]) {
        for added in &self.added {
            for recording in recordings.iter_mut().filter(|recording| recording.name == added.name) {
                for (exchange, value) in recording.exchanges.iter_mut().zip(&added.values) {
                    exchange.request.form.push((added.field.clone(), value.clone()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(steps: &str) -> Script {
        let mut script = Script::read().unwrap();
        script.steps = serde_saphyr::from_str(steps).unwrap();
        script
    }

    fn waits(script: &Script, previous: Option<u16>, number: u16) -> Vec<String> {
        let seconds = |action: &Action| if let Action::Wait(seconds) = action { Some(seconds.to_string()) } else { None };
        script.due(previous, number).filter_map(seconds).collect()
    }

    #[test]
    fn the_script_is_readable_and_in_order() {
        let script = Script::read().unwrap();
        assert!(script.steps.is_sorted_by_key(|step| step.before));
        assert!(script.runs.is_sorted_by_key(|run| run.from));
    }

    #[test]
    fn steps_are_due_once_and_before_the_exchange_that_follows() {
        let script = script("[{before: 5, do: [{wait: 1}]}, {before: 7, do: [{wait: 2}]}, {before: 530, do: [{wait: 3}]}]");
        let nothing: [&str; 0] = [];
        assert_eq!(waits(&script, None, 4), nothing);
        assert_eq!(waits(&script, Some(4), 5), ["1"]);
        assert_eq!(waits(&script, Some(5), 6), nothing);
        assert_eq!(waits(&script, Some(4), 9), ["1", "2"]);
        assert_eq!(waits(&script, Some(9), 525), nothing, "a new run does not make up for the steps of the last");
        assert_eq!(waits(&script, Some(9), 531), ["3"]);
    }
}
