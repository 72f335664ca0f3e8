//! The command line of `systemctl`.

use std::time::Duration;

use crate::init::control::{Power, Verb};

/// What is to be done.
#[derive(Debug, Clone)]
pub enum Action {
    /// Ask PID 1 and report outcomes; the word is for messages ("start").
    Job(Verb, &'static str),
    /// `enable`, with `--now` also start.
    Enable,
    /// `disable`, with `--now` also stop.
    Disable,
    /// `disable` and `enable`.
    Reenable,
    /// `mask`.
    Mask,
    /// `unmask`.
    Unmask,
    /// `preset`.
    Preset,
    /// `preset-all`.
    PresetAll,
    /// `is-active`.
    IsActive,
    /// `is-failed`.
    IsFailed,
    /// `is-enabled`.
    IsEnabled,
    /// `is-system-running`.
    IsSystemRunning,
    /// `status`.
    Status,
    /// `show`.
    Show,
    /// `cat`.
    Cat,
    /// `list-units`.
    ListUnits,
    /// `list-unit-files`.
    ListUnitFiles,
    /// `get-default`.
    GetDefault,
    /// `--version`.
    Version,
}

/// Options that change what is done.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is one switch of the command line")]
pub struct Options {
    /// `--no-block`.
    pub no_block: bool,
    /// `--quiet`.
    pub quiet: bool,
    /// `--now`.
    pub now: bool,
    /// `--runtime`.
    pub runtime: bool,
    /// `--all`.
    pub all: bool,
    /// `--value`.
    pub value: bool,
    /// `--no-legend`, `--plain`.
    pub no_legend: bool,
    /// `--property`.
    pub properties: Vec<String>,
    /// `--signal`.
    pub signal: Option<String>,
    /// `--kill-whom=main`.
    pub main_only: bool,
    /// `--state`.
    pub states: Vec<String>,
    /// `--type`.
    pub types: Vec<String>,
    /// `--lines`.
    pub lines: Option<usize>,
}

/// A whole command line.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// What.
    pub action: Action,
    /// How.
    pub options: Options,
    /// On what.
    pub units: Vec<String>,
}

/// Reads a command line; a complaint names what is not known here.
pub fn read(arguments: &[String]) -> Result<Invocation, String> {
    let mut options = Options::default();
    let mut words = Vec::new();
    let mut rest = arguments.iter();
    let mut version = false;
    while let Some(argument) = rest.next() {
        if !argument.starts_with('-') || argument == "-" {
            words.push(argument.clone());
            continue;
        }
        let (option, mut value) = match argument.split_once('=') {
            Some((option, value)) => (option, Some(value.to_owned())),
            None => (argument.as_str(), None),
        };
        let (option, attached) = short_value(option);
        value = value.or(attached);
        version |= option == "--version";
        let mut wanted = || value.take().or_else(|| rest.next().cloned()).ok_or_else(|| format!("option {option} needs a value"));
        apply(&mut options, option, &mut wanted)?;
    }
    let units = words.split_off(words.len().min(1));
    let action = match words.first() {
        _ if version => Action::Version,
        None => Action::ListUnits,
        Some(verb) => action(verb, &options).ok_or_else(|| format!("verb {verb} is not known here"))?,
    };
    Ok(Invocation { action, options, units })
}

/// `-pActiveState` is `-p ActiveState`.
fn short_value(option: &str) -> (&str, Option<String>) {
    let takes_value = ["-p", "-t", "-s", "-n", "-o"].iter().any(|short| option.starts_with(short));
    if takes_value && option.len() > 2 && !option.starts_with("--") { (&option[..2], Some(option[2..].to_owned())) } else { (option, None) }
}

fn apply(options: &mut Options, option: &str, wanted: &mut dyn FnMut() -> Result<String, String>) -> Result<(), String> {
    let list = |text: String| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    match option {
        "--no-block" => options.no_block = true,
        "-q" | "--quiet" => options.quiet = true,
        "--now" => options.now = true,
        "--runtime" => options.runtime = true,
        "-a" | "--all" => options.all = true,
        "--value" => options.value = true,
        "--no-legend" | "--plain" | "--legend" => options.no_legend = true,
        "-p" | "--property" => options.properties.extend(list(wanted()?)),
        "-P" => {
            options.properties.extend(list(wanted()?));
            options.value = true;
        }
        "-s" | "--signal" => options.signal = Some(wanted()?),
        "--kill-whom" | "--kill-who" => options.main_only = wanted()? == "main",
        "--state" => options.states.extend(list(wanted()?)),
        "-t" | "--type" => options.types.extend(list(wanted()?)),
        "-n" | "--lines" => options.lines = wanted()?.parse().ok(),
        "--failed" => options.states.push("failed".to_owned()),
        // How much is printed, and to whom: nothing of it applies here.
        "--no-pager"
        | "--system"
        | "--force"
        | "-f"
        | "-l"
        | "--full"
        | "--no-ask-password"
        | "--no-wall"
        | "--no-reload"
        | "--no-warn"
        | "--wait"
        | "--show-types"
        | "-i"
        | "--ignore-dependencies"
        | "--version"
        | "-ff" => {}
        "-o" | "--output" | "--job-mode" | "--preset-mode" => drop(wanted()?),
        other => return Err(format!("option {other} is not known here")),
    }
    Ok(())
}

fn action(verb: &str, options: &Options) -> Option<Action> {
    let job = |verb, word| Some(Action::Job(verb, word));
    match verb {
        "start" => job(Verb::Start, "start"),
        "stop" => job(Verb::Stop, "stop"),
        "restart" => job(Verb::Restart, "restart"),
        "try-restart" | "condrestart" | "try-reload-or-restart" | "reload-or-try-restart" => job(Verb::TryRestart, "restart"),
        "reload" => job(Verb::Reload, "reload"),
        "reload-or-restart" | "force-reload" => job(Verb::ReloadOrRestart, "reload or restart"),
        "isolate" => job(Verb::Isolate, "isolate"),
        "kill" => {
            job(Verb::Kill { signal: options.signal.clone().unwrap_or_else(|| "TERM".to_owned()), main_only: options.main_only }, "kill")
        }
        "reset-failed" => job(Verb::ResetFailed, "reset failed state of"),
        "daemon-reload" | "daemon-reexec" => job(Verb::DaemonReload, "reload"),
        "poweroff" | "halt" | "exit" => job(Verb::Power(Power::Off, Duration::ZERO), "power off"),
        "reboot" | "kexec" | "soft-reboot" => job(Verb::Power(Power::Reboot, Duration::ZERO), "reboot"),
        "enable" => Some(Action::Enable),
        "disable" => Some(Action::Disable),
        "reenable" => Some(Action::Reenable),
        "mask" => Some(Action::Mask),
        "unmask" => Some(Action::Unmask),
        "preset" => Some(Action::Preset),
        "preset-all" => Some(Action::PresetAll),
        "is-active" => Some(Action::IsActive),
        "is-failed" => Some(Action::IsFailed),
        "is-enabled" => Some(Action::IsEnabled),
        "is-system-running" => Some(Action::IsSystemRunning),
        "status" => Some(Action::Status),
        "show" => Some(Action::Show),
        "cat" => Some(Action::Cat),
        "list-units" => Some(Action::ListUnits),
        "list-unit-files" => Some(Action::ListUnitFiles),
        "get-default" => Some(Action::GetDefault),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(text: &str) -> Result<Invocation, String> {
        read(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_may_stand_anywhere() {
        let invocation = reading("--no-block restart -q kubelet --now containerd").unwrap();
        assert!(invocation.options.no_block && invocation.options.quiet && invocation.options.now);
        assert!(matches!(invocation.action, Action::Job(Verb::Restart, _)));
        assert_eq!(invocation.units, ["kubelet", "containerd"]);
    }

    #[test]
    fn values_stand_behind_or_within_an_option() {
        for text in ["show -p ActiveState,SubState a", "show -pActiveState,SubState a", "show --property=ActiveState,SubState a"] {
            assert_eq!(reading(text).unwrap().options.properties, ["ActiveState", "SubState"], "{text}");
        }
        assert!(reading("show -p").is_err());
    }

    #[test]
    fn what_is_not_known_is_named() {
        assert_eq!(reading("frobnicate x").unwrap_err(), "verb frobnicate is not known here");
        assert_eq!(reading("start --host=other x").unwrap_err(), "option --host is not known here");
    }
}
