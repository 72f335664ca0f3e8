//! The `[Service]` section as typed settings.

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;

use super::command::{self, CommandLine};
use super::condition::truth;
use super::environment;
use super::name::UnitName;
use super::span::{self, Span};
use super::specifier::{self, Machine};

/// When a service counts as started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServiceType {
    /// As soon as its process exists.
    #[default]
    Simple,
    /// When its program runs.
    Exec,
    /// When all its commands have ended.
    Oneshot,
    /// When it says `READY=1`.
    Notify,
    /// When its first process has ended.
    Forking,
}

/// When a service is started again by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Restart {
    /// Never.
    #[default]
    No,
    /// After a clean end.
    OnSuccess,
    /// After a bad exit status, a signal or a timeout.
    OnFailure,
    /// After a signal or a timeout.
    OnAbnormal,
    /// After a signal.
    OnAbort,
    /// Always.
    Always,
}

/// Whom a stop ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KillMode {
    /// All processes of the service.
    #[default]
    ControlGroup,
    /// The main process politely, the others at once when it has ended.
    Mixed,
    /// The main process alone.
    Process,
    /// Nobody.
    None,
}

/// Where a variable comes from, in the order written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvironmentSource {
    /// `Environment=`.
    Variable(String, String),
    /// `EnvironmentFile=`; whether it may be missing.
    File(PathBuf, bool),
}

/// The settings.
#[derive(Debug, Clone)]
pub struct Service {
    /// `Type=`.
    pub kind: ServiceType,
    /// `ExecCondition=`.
    pub exec_condition: Vec<CommandLine>,
    /// `ExecStartPre=`.
    pub exec_start_pre: Vec<CommandLine>,
    /// `ExecStart=`.
    pub exec_start: Vec<CommandLine>,
    /// `ExecStartPost=`.
    pub exec_start_post: Vec<CommandLine>,
    /// `ExecReload=`.
    pub exec_reload: Vec<CommandLine>,
    /// `ExecStop=`.
    pub exec_stop: Vec<CommandLine>,
    /// `ExecStopPost=`.
    pub exec_stop_post: Vec<CommandLine>,
    /// Variables.
    pub environment: Vec<EnvironmentSource>,
    /// `UnsetEnvironment=`.
    pub unset_environment: Vec<String>,
    /// `WorkingDirectory=`; whether it may be missing.
    pub working_directory: Option<(PathBuf, bool)>,
    /// `User=`.
    pub user: Option<String>,
    /// `Group=`.
    pub group: Option<String>,
    /// `SupplementaryGroups=`.
    pub supplementary_groups: Vec<String>,
    /// `UMask=`.
    pub umask: Option<String>,
    /// `OOMScoreAdjust=`.
    pub oom_score_adjust: Option<i32>,
    /// `Nice=`.
    pub nice: Option<i32>,
    /// `Limit…=` as arguments of prlimit.
    pub limits: Vec<String>,
    /// `RuntimeDirectory=`, `StateDirectory=`, …: the variable that names them to the service, and the absolute path.
    pub directories: Vec<(&'static str, PathBuf)>,
    /// `PIDFile=`.
    pub pid_file: Option<PathBuf>,
    /// `RemainAfterExit=`.
    pub remain_after_exit: bool,
    /// `Restart=`.
    pub restart: Restart,
    /// `RestartSec=`.
    pub restart_after: Duration,
    /// `SuccessExitStatus=`.
    pub success_exit_status: Vec<String>,
    /// `RestartPreventExitStatus=`.
    pub restart_prevent_exit_status: Vec<String>,
    /// `RestartForceExitStatus=`.
    pub restart_force_exit_status: Vec<String>,
    /// `TimeoutStartSec=`; a oneshot has none of itself.
    pub start_timeout: Option<Span>,
    /// `TimeoutStopSec=`.
    pub stop_timeout: Span,
    /// `KillMode=`.
    pub kill_mode: KillMode,
    /// `KillSignal=`.
    pub kill_signal: Signal,
    /// `SendSIGKILL=`.
    pub send_sigkill: bool,
    /// `StandardOutput=` names the console.
    pub to_console: bool,
    /// Why it cannot be started at all.
    pub refusal: Option<String>,
}

impl Default for Service {
    fn default() -> Self {
        Self {
            kind: ServiceType::default(),
            exec_condition: Vec::new(),
            exec_start_pre: Vec::new(),
            exec_start: Vec::new(),
            exec_start_post: Vec::new(),
            exec_reload: Vec::new(),
            exec_stop: Vec::new(),
            exec_stop_post: Vec::new(),
            environment: Vec::new(),
            unset_environment: Vec::new(),
            working_directory: None,
            user: None,
            group: None,
            supplementary_groups: Vec::new(),
            umask: None,
            oom_score_adjust: None,
            nice: None,
            limits: Vec::new(),
            directories: Vec::new(),
            pid_file: None,
            remain_after_exit: false,
            restart: Restart::default(),
            restart_after: Duration::from_millis(100),
            success_exit_status: Vec::new(),
            restart_prevent_exit_status: Vec::new(),
            restart_force_exit_status: Vec::new(),
            start_timeout: None,
            stop_timeout: DEFAULT_TIMEOUT,
            kill_mode: KillMode::default(),
            kill_signal: Signal::TERM,
            send_sigkill: true,
            to_console: false,
            refusal: None,
        }
    }
}

const DEFAULT_TIMEOUT: Span = Span::Limited(Duration::from_secs(90));

/// Directives whose absence of effect nobody could notice: accounting, names in a journal.
const MEANINGLESS: [&str; 11] = [
    "TasksAccounting",
    "CPUAccounting",
    "MemoryAccounting",
    "IOAccounting",
    "BlockIOAccounting",
    "SyslogIdentifier",
    "SyslogFacility",
    "SyslogLevel",
    "NotifyAccess",
    "GuessMainPID",
    "TimeoutAbortSec",
];

impl Service {
    /// Takes one assignment; false when the directive or its value is not known here.
    pub fn apply(&mut self, key: &str, value: &str, unit: &UnitName, machine: &Machine, notes: &mut Vec<String>) -> bool {
        if let Some(commands) = self.commands_of(key) {
            match (value.is_empty(), command::parse(value)) {
                (true, _) => commands.clear(),
                (false, Ok(parsed)) => commands.extend(parsed.into_iter().map(|line| with_specifiers(line, unit, machine, notes))),
                (false, Err(error)) => self.refusal = Some(format!("{key}: {error}")),
            }
            return true;
        }
        let value = specifier::expand(value, unit, machine, notes);
        if let Some(list) = self.words_of(key) {
            if value.is_empty() {
                list.clear();
            }
            list.extend(value.split_whitespace().map(str::to_owned));
            return true;
        }
        match key {
            "Environment" | "EnvironmentFile" => self.apply_environment(key, &value, notes),
            _ if key.starts_with("Limit") => self.apply_limit(key, &value),
            _ if key.ends_with("Directory") && key != "WorkingDirectory" && key != "RootDirectory" => self.apply_directory(key, &value),
            _ => self.apply_life(key, &value) || self.apply_context(key, &value) || MEANINGLESS.contains(&key),
        }
    }

    /// Checks what only the whole section can tell.
    pub fn settle(&mut self, notes: &mut Vec<String>) {
        if self.refusal.is_some() {
            return;
        }
        if self.exec_start.len() > 1 && self.kind != ServiceType::Oneshot {
            self.refusal = Some("more than one ExecStart= and not of Type=oneshot".to_owned());
        } else if self.exec_start.is_empty() && !(self.remain_after_exit || self.kind == ServiceType::Oneshot) {
            self.refusal = Some("no ExecStart=".to_owned());
        } else if self.kind == ServiceType::Oneshot && matches!(self.restart, Restart::Always | Restart::OnSuccess) {
            notes.push("Restart=always and on-success do not go with Type=oneshot; it will not restart".to_owned());
            self.restart = Restart::No;
        }
    }

    /// The limit of a start: none for a oneshot unless it names one.
    pub fn start_limit(&self) -> Option<Duration> {
        let unnamed = if self.kind == ServiceType::Oneshot { Span::Infinite } else { DEFAULT_TIMEOUT };
        self.start_timeout.unwrap_or(unnamed).limit().filter(|limit| !limit.is_zero())
    }

    fn commands_of(&mut self, key: &str) -> Option<&mut Vec<CommandLine>> {
        Some(match key {
            "ExecCondition" => &mut self.exec_condition,
            "ExecStartPre" => &mut self.exec_start_pre,
            "ExecStart" => &mut self.exec_start,
            "ExecStartPost" => &mut self.exec_start_post,
            "ExecReload" => &mut self.exec_reload,
            "ExecStop" => &mut self.exec_stop,
            "ExecStopPost" => &mut self.exec_stop_post,
            _ => return None,
        })
    }

    fn words_of(&mut self, key: &str) -> Option<&mut Vec<String>> {
        Some(match key {
            "SuccessExitStatus" => &mut self.success_exit_status,
            "RestartPreventExitStatus" => &mut self.restart_prevent_exit_status,
            "RestartForceExitStatus" => &mut self.restart_force_exit_status,
            "UnsetEnvironment" => &mut self.unset_environment,
            "SupplementaryGroups" => &mut self.supplementary_groups,
            _ => return None,
        })
    }

    fn apply_environment(&mut self, key: &str, value: &str, notes: &mut Vec<String>) -> bool {
        let file = key == "EnvironmentFile";
        if value.is_empty() {
            self.environment.retain(|source| matches!(source, EnvironmentSource::File(..)) != file);
        } else if file {
            let optional = value.starts_with('-');
            self.environment.push(EnvironmentSource::File(value.trim_start_matches('-').into(), optional));
        } else {
            let variables = environment::assignments(value, notes);
            self.environment.extend(variables.into_iter().map(|(name, value)| EnvironmentSource::Variable(name, value)));
        }
        true
    }

    fn apply_limit(&mut self, key: &str, value: &str) -> bool {
        let resource = key.trim_start_matches("Limit").to_ascii_lowercase();
        let known = [
            "nofile",
            "nproc",
            "core",
            "memlock",
            "stack",
            "fsize",
            "data",
            "as",
            "rss",
            "cpu",
            "locks",
            "sigpending",
            "msgqueue",
            "nice",
            "rtprio",
        ];
        let plain = value.split(':').all(|part| part == "infinity" || part.parse::<u64>().is_ok());
        if !known.contains(&resource.as_str()) || !plain {
            return false;
        }
        self.limits.push(format!("--{resource}={}", value.replace("infinity", "unlimited")));
        true
    }

    fn apply_directory(&mut self, key: &str, value: &str) -> bool {
        let (variable, base) = match key {
            "RuntimeDirectory" => ("RUNTIME_DIRECTORY", "/run"),
            "StateDirectory" => ("STATE_DIRECTORY", "/var/lib"),
            "CacheDirectory" => ("CACHE_DIRECTORY", "/var/cache"),
            "LogsDirectory" => ("LOGS_DIRECTORY", "/var/log"),
            "ConfigurationDirectory" => ("CONFIGURATION_DIRECTORY", "/etc"),
            _ => return false,
        };
        self.directories.extend(value.split_whitespace().map(|name| (variable, PathBuf::from(base).join(name.trim_start_matches('/')))));
        true
    }

    /// Starting, ending and restarting.
    fn apply_life(&mut self, key: &str, value: &str) -> bool {
        let flag = |target: &mut bool| truth(value).map(|value| *target = value).is_some();
        match key {
            "Type" => parse_type(value).map(|kind| self.kind = kind).is_some(),
            "Restart" => parse_restart(value).map(|restart| self.restart = restart).is_some(),
            "RestartSec" => span::parse(value).and_then(Span::limit).map(|after| self.restart_after = after).is_some(),
            "RemainAfterExit" => flag(&mut self.remain_after_exit),
            "SendSIGKILL" => flag(&mut self.send_sigkill),
            "TimeoutStartSec" => span::parse(value).map(|span| self.start_timeout = Some(span)).is_some(),
            "TimeoutStopSec" => span::parse(value).map(|span| self.stop_timeout = span).is_some(),
            "TimeoutSec" => span::parse(value)
                .map(|span| {
                    self.start_timeout = Some(span);
                    self.stop_timeout = span;
                })
                .is_some(),
            "KillMode" => parse_kill_mode(value).map(|mode| self.kill_mode = mode).is_some(),
            "KillSignal" => parse_signal(value).map(|signal| self.kill_signal = signal).is_some(),
            "PIDFile" => {
                self.pid_file = Some(PathBuf::from("/run").join(value)).filter(|_| !value.is_empty());
                true
            }
            _ => false,
        }
    }

    /// The surroundings of its processes.
    fn apply_context(&mut self, key: &str, value: &str) -> bool {
        let text = Some(value.to_owned()).filter(|value| !value.is_empty());
        match key {
            "WorkingDirectory" => {
                let path = value.trim_start_matches('-');
                let path = if path == "~" { "/root" } else { path };
                self.working_directory = Some((path.into(), value.starts_with('-'))).filter(|_| !path.is_empty());
            }
            "User" => self.user = text,
            "Group" => self.group = text,
            "UMask" if value.bytes().all(|byte| byte.is_ascii_digit()) => self.umask = text,
            "OOMScoreAdjust" => return value.parse().map(|adjust| self.oom_score_adjust = Some(adjust)).is_ok(),
            "Nice" => return value.parse().map(|nice| self.nice = Some(nice)).is_ok(),
            "StandardInput" => return value == "null",
            "StandardOutput" | "StandardError" => {
                self.to_console |= value.contains("console") || value == "tty";
                return ["inherit", "null", "journal", "kmsg", "tty", "syslog", "journal+console", "kmsg+console", "syslog+console"]
                    .contains(&value);
            }
            _ => return false,
        }
        true
    }
}

fn with_specifiers(mut line: CommandLine, unit: &UnitName, machine: &Machine, notes: &mut Vec<String>) -> CommandLine {
    for word in &mut line.words {
        *word = specifier::expand(word, unit, machine, notes);
    }
    line
}

fn parse_type(value: &str) -> Option<ServiceType> {
    Some(match value {
        "simple" | "idle" => ServiceType::Simple,
        "exec" => ServiceType::Exec,
        "oneshot" => ServiceType::Oneshot,
        "notify" | "notify-reload" => ServiceType::Notify,
        "forking" => ServiceType::Forking,
        _ => return None,
    })
}

fn parse_restart(value: &str) -> Option<Restart> {
    Some(match value {
        "no" => Restart::No,
        "on-success" => Restart::OnSuccess,
        "on-failure" => Restart::OnFailure,
        "on-abnormal" => Restart::OnAbnormal,
        "on-abort" => Restart::OnAbort,
        "always" => Restart::Always,
        _ => return None,
    })
}

fn parse_kill_mode(value: &str) -> Option<KillMode> {
    Some(match value {
        "control-group" => KillMode::ControlGroup,
        "mixed" => KillMode::Mixed,
        "process" => KillMode::Process,
        "none" => KillMode::None,
        _ => return None,
    })
}

/// A signal by name, with or without SIG, or by number.
pub fn parse_signal(value: &str) -> Option<Signal> {
    let name = value.trim_start_matches("SIG");
    Some(match name {
        "TERM" | "15" => Signal::TERM,
        "KILL" | "9" => Signal::KILL,
        "INT" | "2" => Signal::INT,
        "HUP" | "1" => Signal::HUP,
        "QUIT" | "3" => Signal::QUIT,
        "ABRT" | "6" => Signal::ABORT,
        "USR1" | "10" => Signal::USR1,
        "USR2" | "12" => Signal::USR2,
        "CONT" | "18" => Signal::CONT,
        "STOP" | "19" => Signal::STOP,
        "WINCH" | "28" => Signal::WINCH,
        "PWR" | "30" => Signal::POWER,
        _ => return None,
    })
}
