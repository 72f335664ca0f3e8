//! What `systemctl` prints about running units, in the form scripts look for.

use std::fmt::Write;

use super::arguments::Options;
use crate::init::control::Report;
use crate::init::unit::condition::glob;
use crate::init::unit::install::EnabledState;

/// `systemctl status`.
pub fn status(report: &Report, enabled: EnabledState, log: &[String]) -> String {
    let dot = match report.active.as_str() {
        "active" => "●",
        "failed" => "×",
        _ => "○",
    };
    let file = report.fragment.as_deref().unwrap_or("-");
    let mut text = format!("{dot} {} - {}\n     Loaded: {} ({file}; {})", report.name, report.description, report.load, enabled.word());
    if let Some((first, others)) = report.drop_ins.split_first() {
        // Writing to a text cannot fail.
        let _ = write!(text, "\n    Drop-In: {first}");
        for other in others {
            let _ = write!(text, "\n             {other}");
        }
    }
    let result = if report.result == "success" { String::new() } else { format!(" (Result: {})", report.result) };
    let _ = write!(text, "\n     Active: {} ({}){result} since {}", report.active, report.sub, report.since);
    if let Some(condition) = &report.unmet_condition {
        let _ = write!(text, "\n  Condition: start condition failed\n             {condition} was not met");
    }
    if let Some(pid) = report.main_process {
        let _ = write!(text, "\n   Main PID: {pid}");
    } else if let Some(exit) = &report.last_exit {
        let _ = write!(text, "\n    Process: ended with {exit}");
    }
    if !report.text.is_empty() {
        let _ = write!(text, "\n     Status: \"{}\"", report.text);
    }
    if !log.is_empty() {
        let _ = write!(text, "\n\n{}", log.join("\n"));
    }
    text
}

/// `systemctl show`.
pub fn properties(report: &Report, enabled: EnabledState, options: &Options) -> String {
    let all = [
        ("Id", report.name.to_string()),
        ("Names", report.name.to_string()),
        ("Description", report.description.clone()),
        ("LoadState", report.load.clone()),
        ("ActiveState", report.active.clone()),
        ("SubState", report.sub.clone()),
        ("UnitFileState", if enabled == EnabledState::NotFound { String::new() } else { enabled.word().to_owned() }),
        ("FragmentPath", report.fragment.clone().unwrap_or_default()),
        ("DropInPaths", report.drop_ins.join(" ")),
        ("MainPID", report.main_process.unwrap_or(0).to_string()),
        ("ExecMainPID", report.main_process.unwrap_or(0).to_string()),
        ("ExecMainStatus", report.exit_status.to_string()),
        ("NRestarts", report.restarts.to_string()),
        ("Result", report.result.clone()),
        ("StatusText", report.text.clone()),
        ("NeedDaemonReload", if report.changed_on_disk { "yes" } else { "no" }.to_owned()),
        ("ConditionResult", if report.unmet_condition.is_some() { "no" } else { "yes" }.to_owned()),
        ("StateChangeTimestamp", report.since.to_string()),
    ];
    let shown = all.iter().filter(|(name, _)| options.properties.is_empty() || options.properties.iter().any(|property| property == name));
    shown.map(|(name, value)| if options.value { value.clone() } else { format!("{name}={value}") }).collect::<Vec<_>>().join("\n")
}

/// `systemctl list-units`.
pub fn list(reports: &[Report], options: &Options, patterns: &[String]) -> String {
    let shown: Vec<&Report> = reports
        .iter()
        .filter(|report| options.all || !options.states.is_empty() || report.active != "inactive")
        .filter(|report| {
            options.states.is_empty() || options.states.iter().any(|state| [&report.active, &report.sub, &report.load].contains(&state))
        })
        .filter(|report| options.types.is_empty() || options.types.iter().any(|kind| kind == report.name.suffix()))
        .filter(|report| patterns.is_empty() || patterns.iter().any(|pattern| glob(pattern, report.name.as_str())))
        .collect();
    let width = shown.iter().map(|report| report.name.as_str().len()).max().unwrap_or(4).max(4);
    let mut lines: Vec<String> = shown
        .iter()
        .map(|report| {
            format!("{:width$} {:9} {:12} {:12} {}", report.name.as_str(), report.load, report.active, report.sub, report.description)
        })
        .collect();
    if !options.no_legend {
        lines.insert(0, format!("{:width$} {:9} {:12} {:12} DESCRIPTION", "UNIT", "LOAD", "ACTIVE", "SUB"));
        lines.push(format!("{} loaded units listed.", shown.len()));
    }
    lines.join("\n")
}
