//! `metalshift lab status`.

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use comfy_table::{Table, presets};
use lab::{ComponentState, ComponentStatus, Control, LabDirectory, LabError, LabStatus, MachineState, MachineStatus};
use serde_json::json;

use super::Which;
use crate::output;

/// What to show and how.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,
    /// Every lab on this machine
    #[arg(long, conflicts_with = "name")]
    all: bool,
    /// Form of the output
    #[arg(long, short, value_enum, default_value_t = Form::Table)]
    output: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Table,
    Json,
}

/// Shows it.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    if arguments.all {
        return show_all(arguments.output).await;
    }
    let directory = arguments.which.directory();
    let status = Control::of(&directory).status().await?;
    match arguments.output {
        Form::Json => output::data(serde_json::to_string_pretty(&status).context("could not write the status as JSON")?),
        Form::Table => output::data(table(&status)),
    }
    Ok(())
}

async fn show_all(form: Form) -> anyhow::Result<()> {
    let mut statuses = Vec::new();
    let mut rows = vec![["LAB", "LEVEL", "STATE", "COMPONENTS", "MACHINES", "SINCE"].map(str::to_owned)];
    for directory in LabDirectory::all() {
        let name = directory.name().to_string();
        let status = match Control::of(&directory).status().await {
            Ok(status) => status,
            Err(error) => {
                let state = match error {
                    LabError::Silent { .. } => format!("does not answer; `metalshift lab down --name {name}` ends it"),
                    LabError::NotPermitted { .. } => "somebody else's; only its owner and root may look".to_owned(),
                    _ if directory.is_owned() || directory.is_beginning() => "starting".to_owned(),
                    _ => format!("left behind by a killed run; `metalshift lab down --name {name}` removes it"),
                };
                rows.push([name.as_str(), "-", &state, "-", "-", "-"].map(str::to_owned));
                statuses.push(json!({"name": name, "state": state}));
                continue;
            }
        };
        let mut described = serde_json::to_value(&status).context("could not write the status as JSON")?;
        described["state"] = "up".into();
        statuses.push(described);
        let since = status.ready_since.map_or_else(|| "-".to_owned(), age);
        let (components, machines) = (status.components.len().to_string(), status.machines.len().to_string());
        let state = format!("up{}", exceptions(&status.components));
        rows.push([name, status.level.to_string(), state, components, machines, since]);
    }
    match form {
        Form::Json => output::data(serde_json::to_string_pretty(&statuses).context("could not write the status as JSON")?),
        Form::Table if rows.len() == 1 => output::note("there are no labs; `metalshift lab up` starts one"),
        Form::Table => output::data(plain(rows)),
    }
    Ok(())
}

fn table(status: &LabStatus) -> String {
    let mut rows = vec![["COMPONENT", "STATE", "ADDRESS", "MEMORY", "SINCE"].map(str::to_owned)];
    rows.extend(status.components.iter().map(component_row));
    rows.extend(status.machines.iter().map(|machine| machine_row(&status.name, machine)));
    let memory: u64 = status.components.iter().filter_map(|component| component.memory_bytes).sum::<u64>()
        + status.machines.iter().filter_map(|machine| machine.memory_bytes).sum::<u64>();
    let since = status
        .ready_since
        .map_or_else(|| "starting".to_owned(), |since| format!("up for {}{}", age(since), exceptions(&status.components)));
    format!("lab {}, level {}, {since}, {} of memory\n\n{}", status.name, status.level, mebibytes(memory), plain(rows))
}

fn word(state: ComponentState) -> &'static str {
    match state {
        ComponentState::Starting => "starting",
        ComponentState::Running => "running",
        ComponentState::Unhealthy => "unhealthy",
        ComponentState::Restarting => "restarting",
    }
}

/// Which components of a lab that is up do not run, as the end of a sentence; nothing if all do.
fn exceptions(components: &[ComponentStatus]) -> String {
    let states = [ComponentState::Unhealthy, ComponentState::Restarting, ComponentState::Starting];
    let counted = states.map(|state| (components.iter().filter(|component| component.state == state).count(), word(state)));
    let counted: Vec<String> = counted.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!(", {count} {word}")).collect();
    if counted.is_empty() { String::new() } else { format!("{} of {} components", counted.concat(), components.len()) }
}

fn component_row(component: &ComponentStatus) -> [String; 5] {
    let state = word(component.state);
    let state = match &component.trouble {
        // Of one that runs, one answer may be late.
        Some(trouble) if component.state != ComponentState::Running => {
            format!("{state} for {} ({} looks: {})", age(trouble.since), trouble.failed_looks, trouble.words)
        }
        _ => state.to_owned(),
    };
    let state = match (&component.last_exit, component.restarts) {
        (Some(exit), restarts) if restarts > 0 => format!("{state} (died {restarts}x, last with {exit})"),
        _ => state,
    };
    row(&component.name, state, component.address.clone(), component.memory_bytes, component.since)
}

fn machine_row(lab: &str, machine: &MachineStatus) -> [String; 5] {
    let state = match machine.state {
        MachineState::Off => match &machine.detail {
            Some(how) => format!("died with {how}, see `metalshift lab logs --name {lab} {}`", machine.name),
            None => "off".to_owned(),
        },
        MachineState::Booting => "booting".to_owned(),
        MachineState::Running => "running".to_owned(),
        MachineState::Failed => format!("boot failed, see `metalshift lab logs --name {lab} {}`", machine.name),
    };
    row(&machine.name, state, machine.address.to_string(), machine.memory_bytes, machine.since)
}

fn row(name: &str, state: String, address: String, memory: Option<u64>, since: lab::Timestamp) -> [String; 5] {
    [name.to_owned(), state, address, memory.map_or_else(|| "-".to_owned(), mebibytes), age(since)]
}

fn plain<const COLUMNS: usize>(rows: Vec<[String; COLUMNS]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for row in rows {
        // Before it is aligned.
        table.add_row(row.map(|cell| output::callable(&cell)));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

/// How long ago, in the two largest units.
fn age(since: lab::Timestamp) -> String {
    let seconds = lab::Timestamp::now().duration_since(since).as_secs().max(0);
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, seconds) => format!("{seconds}s"),
        (0, 0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (0, hours, minutes, _) => format!("{hours}h{minutes:02}m"),
        (days, hours, ..) => format!("{days}d{hours:02}h"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lab::{Level, Timestamp, Trouble};

    use super::*;

    #[test]
    fn the_table_shows_what_runs_where_with_how_much_memory_since_when_and_how_often_it_died() {
        let ago = |seconds| Timestamp::now() - Duration::from_secs(seconds);
        let component = |name: &str, state, restarts| ComponentStatus {
            name: name.to_owned(),
            state,
            address: format!("https://{name}:1"),
            process_id: Some(7),
            memory_bytes: Some((63 << 20) + 1),
            since: ago(125),
            restarts,
            last_exit: (restarts > 0).then(|| "signal 9".to_owned()),
            trouble: None,
        };
        let trouble = Trouble { since: ago(21), failed_looks: 3, words: "no answer within 5 s".to_owned() };
        let refused = Trouble { since: ago(9), failed_looks: 18, words: "connection refused".to_owned() };
        let started_again = ComponentStatus { trouble: Some(refused), ..component("coredns", ComponentState::Starting, 1) };
        let silent = ComponentStatus { trouble: Some(trouble), ..component("maas", ComponentState::Unhealthy, 0) };
        let machine = |name: &str, state, detail: Option<&str>| MachineStatus {
            name: name.to_owned(),
            tag: None,
            state,
            address: [10, 88, 0, 2].into(),
            process_id: None,
            memory_bytes: None,
            since: ago(2 * 86_400 + 3 * 3600),
            detail: detail.map(str::to_owned),
        };
        let status = LabStatus {
            name: "rack-7".to_owned(),
            level: Level::Nodes,
            ready_since: Some(ago(3725)),
            components: vec![component("etcd", ComponentState::Running, 0), started_again, silent],
            machines: vec![
                machine("node-1", MachineState::Off, None),
                machine("node-2", MachineState::Off, Some("signal 9")),
                machine("node-3", MachineState::Failed, Some("no")),
            ],
        };
        let shown = table(&status);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0], "lab rack-7, level nodes, up for 1h02m, 1 unhealthy, 1 starting of 3 components, 190 MiB of memory");
        assert_eq!(exceptions(&status.components[..1]), "", "all of them run");
        let cells = |line: &str| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(cells(lines[2]), ["COMPONENT", "STATE", "ADDRESS", "MEMORY", "SINCE"]);
        assert_eq!(cells(lines[3]), ["etcd", "running", "https://etcd:1", "64 MiB", "2m05s"]);
        let starting = "starting for 9s (18 looks: connection refused) (died 1x, last with signal 9)";
        assert_eq!(cells(lines[4]), ["coredns", starting, "https://coredns:1", "64 MiB", "2m05s"]);
        let unhealthy = "unhealthy for 21s (3 looks: no answer within 5 s)";
        assert_eq!(cells(lines[5]), ["maas", unhealthy, "https://maas:1", "64 MiB", "2m05s"]);
        assert_eq!(cells(lines[6]), ["node-1", "off", "10.88.0.2", "-", "2d03h"]);
        let logs = |machine: &str| output::callable(&format!("see `metalshift lab logs --name rack-7 {machine}`"));
        assert!(lines[7].contains(&format!("died with signal 9, {}", logs("node-2"))), "{shown}");
        assert!(lines[8].contains(&format!("boot failed, {}", logs("node-3"))), "{shown}");
        let at = |line: &str, word: &str| line.find(word).unwrap();
        assert_eq!(at(lines[2], "ADDRESS"), at(lines[3], "https://"), "columns stand below each other:\n{shown}");
    }
}
