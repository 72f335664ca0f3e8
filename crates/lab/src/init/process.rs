//! Turning a command line of a unit into a process: program, user, limits, control group, environment.
//!
//! What must happen between fork and exec is done by the machine's own small programs (sh, prlimit, setpriv), each of which becomes the
//! next one, so the process id and the exit status are those of the service.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, PipeReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Resource, getrlimit};

use super::unit::command::{self, CommandLine};
use super::unit::environment;
use super::unit::service::{EnvironmentSource, Service};

/// Where programs without a path are looked up.
pub const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Why a process could not even be tried.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No such program.
    #[error("program {0} does not exist or cannot be run")]
    Program(String),
    /// No such user or group.
    #[error("user {0} does not exist")]
    User(String),
    /// An environment file that must exist.
    #[error("cannot read environment file {path}: {source}")]
    EnvironmentFile {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The directory to work in.
    #[error("working directory {0} does not exist")]
    WorkingDirectory(PathBuf),
    /// The kernel refused.
    #[error("cannot start a process: {0}")]
    Spawn(#[from] io::Error),
}

/// An entry of the password file.
#[derive(Debug, Clone)]
struct Account {
    name: String,
    id: String,
    group: String,
    home: String,
    shell: String,
}

fn account(user: &str) -> Result<Account, LaunchError> {
    let text = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let found = text
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|entry| entry.len() >= 7 && (entry[0] == user || entry[2] == user));
    let entry = found.ok_or_else(|| LaunchError::User(user.to_owned()))?;
    Ok(Account { name: entry[0].into(), id: entry[2].into(), group: entry[3].into(), home: entry[5].into(), shell: entry[6].into() })
}

/// The variables of a service, read anew at every start; later sources win.
pub fn variables(service: &Service) -> Result<BTreeMap<String, String>, LaunchError> {
    let mut variables = BTreeMap::from([("PATH".to_owned(), SEARCH_PATH.to_owned()), ("LANG".to_owned(), "C.UTF-8".to_owned())]);
    if let Some(user) = &service.user {
        let account = account(user)?;
        variables.extend(
            [("USER", &account.name), ("LOGNAME", &account.name), ("HOME", &account.home), ("SHELL", &account.shell)]
                .map(|(name, value)| (name.to_owned(), value.clone())),
        );
    }
    for (name, path) in &service.directories {
        let paths = variables.entry((*name).to_owned()).or_default();
        *paths = [paths.as_str(), &path.to_string_lossy()].into_iter().filter(|path| !path.is_empty()).collect::<Vec<_>>().join(":");
    }
    // Files override plain variables, whatever the order they are written in.
    for source in &service.environment {
        if let EnvironmentSource::Variable(name, value) = source {
            variables.insert(name.clone(), value.clone());
        }
    }
    for source in &service.environment {
        if let EnvironmentSource::File(path, optional) = source {
            match fs::read_to_string(path) {
                Ok(text) => variables.extend(environment::file(&text)),
                Err(_) if *optional => {}
                Err(source) => return Err(LaunchError::EnvironmentFile { path: path.clone(), source }),
            }
        }
    }
    for name in &service.unset_environment {
        variables.remove(name);
    }
    Ok(variables)
}

/// Makes the directories of a service, owned by its user.
pub fn make_directories(service: &Service) -> Result<(), LaunchError> {
    let owner = service.user.as_deref().map(account).transpose()?;
    for (_, path) in &service.directories {
        fs::create_dir_all(path)?;
        if let Some(owner) = &owner {
            std::os::unix::fs::chown(path, owner.id.parse().ok(), owner.group.parse().ok())?;
        }
    }
    Ok(())
}

/// Finds a program by its absolute path or in the search path.
pub fn program(name: &str) -> Result<PathBuf, LaunchError> {
    use std::os::unix::fs::PermissionsExt;
    let runnable = |path: &Path| fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0);
    let candidates: Vec<PathBuf> = if name.contains('/') {
        vec![name.into()]
    } else {
        SEARCH_PATH.split(':').map(|directory| Path::new(directory).join(name)).collect()
    };
    candidates.into_iter().find(|path| runnable(path)).ok_or_else(|| LaunchError::Program(name.to_owned()))
}

/// Makes the command of one line of a service.
pub fn prepare(
    line: &CommandLine,
    service: &Service,
    variables: &BTreeMap<String, String>,
    group: Option<&Path>,
) -> Result<Command, LaunchError> {
    let mut words = if line.literal_variables { line.words.clone() } else { command::expand(&line.words, variables) };
    if words.is_empty() {
        return Err(LaunchError::Program(line.words.join(" ")));
    }
    let program = program(&words.remove(0))?;
    let own_name = if line.named && !words.is_empty() { Some(words.remove(0)) } else { None };
    let mut script = String::new();
    if group.is_some() {
        script.push_str("echo 0 > \"$1/cgroup.procs\"; ");
    }
    script.push_str("shift; ");
    if let Some(adjust) = service.oom_score_adjust {
        script.extend(["echo ", &adjust.to_string(), " 2>/dev/null > /proc/self/oom_score_adj; "]);
    }
    if let Some(umask) = &service.umask {
        script.extend(["umask ", umask, "; "]);
    }
    script.push_str(if own_name.is_some() { "name=$1; shift; exec -a \"$name\" \"$@\"" } else { "exec \"$@\"" });
    // Only bash can give a program another name for itself.
    let mut command = Command::new(if own_name.is_some() { "/bin/bash" } else { "/bin/sh" });
    command.args(["-c", &script, "launch"]).arg(group.unwrap_or(Path::new("")));
    command.args(own_name);
    if !service.limits.is_empty() {
        command.arg("/usr/bin/prlimit").args(service.limits.iter().map(|limit| attainable(limit))).arg("--");
    }
    if let Some(nice) = service.nice {
        command.args(["/usr/bin/nice", "-n", &nice.to_string()]);
    }
    if !line.privileged {
        command.args(identity(service)?);
    }
    command.arg(program).args(words);
    command.env_clear().envs(variables).stdin(Stdio::null()).process_group(0);
    if let Some((directory, optional)) = &service.working_directory {
        if directory.is_dir() {
            command.current_dir(directory);
        } else if !optional {
            return Err(LaunchError::WorkingDirectory(directory.clone()));
        }
    } else {
        command.current_dir("/");
    }
    Ok(command)
}

/// As much of a limit as can be had: a root without the right to raise limits keeps the hard ones it has, as under systemd.
fn attainable(limit: &str) -> String {
    let Some((name, wanted)) = limit.trim_start_matches('-').split_once('=') else { return limit.to_owned() };
    let Some(resource) = RESOURCES.iter().find(|(known, _)| *known == name).map(|(_, resource)| *resource) else { return limit.to_owned() };
    let most = if may_raise_limits() { None } else { getrlimit(resource).maximum };
    let most = if name == "nofile" { most.or_else(|| fs::read_to_string("/proc/sys/fs/nr_open").ok()?.trim().parse().ok()) } else { most };
    let clamp = |part: &str| match (part.parse::<u64>().ok(), most) {
        (Some(value), Some(most)) => value.min(most).to_string(),
        (None, Some(most)) => most.to_string(),
        (Some(value), None) => value.to_string(),
        (None, None) => "unlimited".to_owned(),
    };
    format!("--{name}={}", wanted.split(':').map(clamp).collect::<Vec<_>>().join(":"))
}

const RESOURCES: [(&str, Resource); 15] = [
    ("nofile", Resource::Nofile),
    ("nproc", Resource::Nproc),
    ("core", Resource::Core),
    ("memlock", Resource::Memlock),
    ("stack", Resource::Stack),
    ("fsize", Resource::Fsize),
    ("data", Resource::Data),
    ("as", Resource::As),
    ("rss", Resource::Rss),
    ("cpu", Resource::Cpu),
    ("locks", Resource::Locks),
    ("sigpending", Resource::Sigpending),
    ("msgqueue", Resource::Msgqueue),
    ("nice", Resource::Nice),
    ("rtprio", Resource::Rtprio),
];

/// Bit 24 of the effective capabilities is the right to raise limits.
fn may_raise_limits() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    effective.is_some_and(|effective| effective & (1 << 24) != 0)
}

/// The words that give up being root.
fn identity(service: &Service) -> Result<Vec<String>, LaunchError> {
    if service.user.is_none() && service.group.is_none() {
        return Ok(Vec::new());
    }
    let account = service.user.as_deref().map(account).transpose()?;
    let mut words = vec!["/usr/bin/setpriv".to_owned()];
    words.extend(account.as_ref().map(|account| format!("--reuid={}", account.id)));
    let group = service.group.clone().or(account.map(|account| account.group)).unwrap_or_else(|| "0".to_owned());
    words.push(format!("--regid={group}"));
    words.push(match (service.supplementary_groups.is_empty(), service.user.is_some()) {
        (false, _) => format!("--groups={}", service.supplementary_groups.join(",")),
        (true, true) => "--init-groups".to_owned(),
        (true, false) => "--clear-groups".to_owned(),
    });
    words.push("--".to_owned());
    Ok(words)
}

/// Sends output and errors of a command into one pipe.
pub fn joined_output(command: &mut Command) -> io::Result<PipeReader> {
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    Ok(reader)
}
