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
        rows.push([name, status.level.to_string(), "up".to_owned(), components, machines, since]);
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
    let since = status.ready_since.map_or_else(|| "starting".to_owned(), |since| format!("up for {}", age(since)));
    format!("lab {}, level {}, {since}, {} of memory\n\n{}", status.name, status.level, mebibytes(memory), plain(rows))
}

fn component_row(component: &ComponentStatus) -> [String; 5] {
    let state = match component.state {
        ComponentState::Starting => "starting",
        ComponentState::Running => "running",
        ComponentState::Restarting => "restarting",
    };
    let state = match (&component.last_exit, component.restarts) {
        (Some(exit), restarts) if restarts > 0 => format!("{state} (died {restarts}x, last with {exit})"),
        _ => state.to_owned(),
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
        table.add_row(row);
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
