//! The supervisor as a process of its own: starts it, hears of its progress, ends it. `lab up` leaves one running; a test that
//! needs level nodes holds one.

use std::{
    net::{Ipv4Addr, TcpListener},
    os::{fd::OwnedFd, unix::process::ExitStatusExt as _},
    path::PathBuf,
    process::Stdio,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    time::Instant,
};

use crate::{
    LabDirectory, LabError, Level, Options,
    command::{require, search_path},
    control::Control,
    leftovers,
    lock::LockFile,
    ports,
    process::{MARK, tail},
    programs::{self, Progress},
};

/// What a supervisor says of its start, a line each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    Step(String),
    Ready,
    Failed(String),
}

/// What a person hears while a lab starts.
#[derive(Debug)]
pub enum News<'a> {
    /// Something new begins.
    Step(&'a str),
    /// Programs are being built.
    Building(&'a Progress),
}

/// How long a supervisor may take to end when asked to.
pub(crate) const END_WITHIN: Duration = Duration::from_mins(1);
/// How long a `lab up` may take to hear that its supervisor has ended.
const HEARS_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How much is shown of the log of a supervisor that did not say why it ended.
const LAST_WORDS: usize = 8;

/// Who the supervisor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Belongs {
    /// It lives until somebody asks for its end.
    ToNobody,
    /// It dies with the thread that started it.
    ToThisThread,
}

/// A lab that nobody but this process starts, for as long as this lives.
#[must_use = "others may start a lab of this name as soon as it is dropped"]
pub struct Beginning {
    options: Options,
    directory: LabDirectory,
    _lock: LockFile,
}

/// Takes the name of a lab; fails if that is somebody's. Whatever there is of this name from here on is the caller's, who may take it down.
pub async fn begin(mut options: Options) -> Result<Beginning, LabError> {
    let directory = LabDirectory::of(&options.name);
    let lock = directory.begin()?;
    drop(directory.take_after_the_last().await?);
    options.executable = Some(std::env::current_exe().map_err(LabError::io("find", "the running program"))?);
    Ok(Beginning { options, directory, _lock: lock })
}

impl Beginning {
    /// Starts the lab, which goes on when this process ends; returns when everything in it answers. If it is `interrupted` meanwhile, nothing
    /// of it is left.
    pub async fn up(self, interrupted: impl Future<Output = ()>, report: &mut dyn FnMut(News<'_>)) -> Result<(), LabError> {
        tokio::select! {
            started = start(self.options, Belongs::ToNobody, report) => started.map(drop),
            () = interrupted => {
                down(&self.directory).await?;
                Err(LabError::Interrupted { name: self.directory.name().to_string() })
            }
        }
    }
}

/// Fails as [`begin`] would where a lab of this name is there, or the port is taken. Leaves nothing, and may be out of date at once: it saves
/// who would prepare much.
pub fn look(options: &Options) -> Result<(), LabError> {
    let directory = LabDirectory::of(&options.name);
    let _beginning = directory.begin()?;
    directory.check_not_up()?;
    outside_listener(&mut options.clone()).map(drop)
}

/// Ends a lab, however it is, and removes everything it left. Says whether there was anything to end.
pub async fn down(directory: &LabDirectory) -> Result<bool, LabError> {
    directory.check_marker()?;
    let was_up = directory.is_owned();
    if !was_up && !directory.has_traces() {
        // Who takes a lock makes the place for it.
        return Ok(false);
    }
    if was_up && Control::of(directory).down().await.is_err() {
        // Still starting, or stuck: it does not listen, so it is not asked.
        let directory = directory.clone();
        crate::lab::blocking(move || leftovers::end_processes(&directory.path())).await;
    }
    remove_when_ended(directory).await?;
    // Who starts it hears of the end of its supervisor; who has none yet, because programs are being built, must be told.
    let grace = if was_up { HEARS_WITHIN } else { Duration::ZERO };
    if stop_beginner(directory, grace).await? {
        remove_when_ended(directory).await?;
    }
    // The mark of a `lab up` that was killed goes with its holder.
    drop(directory.begin());
    Ok(true)
}

/// Removes everything of a lab as soon as nobody owns it.
async fn remove_when_ended(directory: &LabDirectory) -> Result<(), LabError> {
    let deadline = Instant::now() + END_WITHIN;
    loop {
        if let Some(lock) = directory.try_lock()? {
            let cleaned = directory.clone();
            let removed = crate::lab::blocking(move || leftovers::remove(&cleaned)).await;
            drop(lock);
            return removed;
        }
        if Instant::now() > deadline {
            let stuck = directory.clone();
            crate::lab::blocking(move || leftovers::end_processes(&stuck.path())).await;
        }
        if Instant::now() > deadline + END_WITHIN {
            return Err(LabError::Supervisor(format!(
                "lab {} does not end: some other process holds {}; `fuser` tells which",
                directory.name(),
                directory.lock_path().display()
            )));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Interrupts the `lab up` that is about to start the lab, if there is one, and waits until it has given up. Says whether there was one.
async fn stop_beginner(directory: &LabDirectory, grace: Duration) -> Result<bool, LabError> {
    let begun = Instant::now();
    let mut interrupted = None;
    while let Some(beginner) = directory.beginner() {
        let refused = || LabError::StartingElsewhere { name: directory.name().to_string(), process: beginner };
        if interrupted != Some(beginner) && begun.elapsed() >= grace {
            if !is_our_program(beginner) {
                return Err(refused());
            }
            interrupted = Some(beginner);
            if let Some(process) = i32::try_from(beginner).ok().and_then(Pid::from_raw) {
                // Gone in between is as good as interrupted.
                let _ = kill_process(process, Signal::INT);
            }
        }
        if begun.elapsed() > grace + END_WITHIN {
            return Err(refused());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(interrupted.is_some())
}

/// Whether a process runs this program: that one cleans up when it is interrupted, and others may hold labs for other reasons.
fn is_our_program(process: u32) -> bool {
    let theirs = std::fs::read_link(format!("/proc/{process}/exe")).ok();
    // A program that was built again meanwhile is called `metalshift (deleted)`.
    let name = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().trim_end_matches(" (deleted)").to_owned());
    std::env::current_exe().is_ok_and(|own| name(own) == theirs.and_then(name))
}

/// Starts a supervisor and waits until its lab is ready.
pub(crate) async fn start(mut options: Options, belongs: Belongs, report: &mut dyn FnMut(News<'_>)) -> Result<Child, LabError> {
    let directory = LabDirectory::of(&options.name);
    require(&["setsid", "setpriv"])?;
    if options.level == Level::Nodes {
        require(&["unshare", "nsenter", "ip"])?;
    }
    let outside = outside_listener(&mut options)?;
    find_programs(&options, report).await?;
    remove_leftovers(&directory).await?;
    let started = supervised(options, belongs, outside, &directory, report).await;
    if started.is_err() {
        // Usually the supervisor has done it. What resists is told when somebody starts the next one.
        let _ = remove_leftovers(&directory).await;
    }
    started
}

async fn supervised(
    mut options: Options,
    belongs: Belongs,
    outside: Option<TcpListener>,
    directory: &LabDirectory,
    report: &mut dyn FnMut(News<'_>),
) -> Result<Child, LabError> {
    directory.create()?;
    let log = directory.supervisor_log();
    let log_file = std::fs::File::options().append(true).create(true).open(&log).map_err(LabError::io("open", &log))?;
    let executable = options
        .executable
        .clone()
        .ok_or_else(|| LabError::MissingProgram { program: "metalshift".to_owned(), package: "metalshift".to_owned() })?;
    options.programs = options.programs.map(|given| std::path::absolute(&given).unwrap_or(given));
    let settings = serde_json::to_string(&options).map_err(|error| LabError::Supervisor(error.to_string()))?;
    let mut words: Vec<PathBuf> = match belongs {
        Belongs::ToNobody => vec!["setsid".into()],
        Belongs::ToThisThread => vec!["setpriv".into(), "--pdeathsig".into(), "KILL".into(), "--".into()],
    };
    if options.level == Level::Nodes {
        // The supervisor is the first process in there: when it dies, the kernel ends everything that is in there with it.
        let own = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--"];
        words.extend(own.map(PathBuf::from));
    }
    words.push(executable);
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .args(["lab", "supervise"])
        .env("METALSHIFT_LAB_OPTIONS", settings)
        .env("PATH", search_path())
        .env(MARK, directory.path())
        .env("METALSHIFT_LABS", directory.labs())
        .envs(directories_given())
        .current_dir("/")
        .stdin(outside.map_or_else(Stdio::null, |listener| Stdio::from(OwnedFd::from(listener))))
        .stdout(Stdio::piped())
        .stderr(log_file)
        .spawn()
        .map_err(LabError::start(&words[0].display().to_string()))?;
    let said = hear(&mut child, report).await;
    if let Some(Ok(())) = said {
        return Ok(child);
    }
    let ended = child.wait().await.map_err(LabError::io("wait for the supervisor of", directory.path()))?;
    if let Some(Err(words)) = said {
        return Err(LabError::Supervisor(words));
    }
    let log_tail = tail(&log, LAST_WORDS);
    // The `unshare` of Debian 12 stumbles over a child that was killed, and ends with an error of its own.
    let stumbled = log_tail.lines().last().is_some_and(|line| line.starts_with("unshare: sigprocmask"));
    if ended.signal() == Some(Signal::KILL.as_raw()) || stumbled {
        return Err(LabError::Killed { name: directory.name().to_string() });
    }
    Err(LabError::ComponentFailed { component: "the supervisor".to_owned(), reason: format!("it ended with {ended}"), log_tail })
}

/// The supervisor works in another directory, so it gets paths that may be relative as we understand them.
fn directories_given() -> impl Iterator<Item = (&'static str, PathBuf)> {
    let given = |name| std::env::var_os(name).filter(|value| !value.is_empty()).and_then(|value| std::path::absolute(value).ok());
    ["METALSHIFT_CACHE", "METALSHIFT_PROGRAMS", "KUBEBUILDER_ASSETS"].into_iter().filter_map(move |name| Some((name, given(name)?)))
}

/// Removes what a killed lab of this name left. Done here and not by the supervisor, whose log is among the files of the new one.
async fn remove_leftovers(directory: &LabDirectory) -> Result<(), LabError> {
    let lock = directory.take_after_the_last().await?;
    let left = directory.clone();
    let removed = crate::lab::blocking(move || leftovers::remove(&left)).await;
    drop(lock);
    removed
}

/// Passes the supervisor's steps on until it is ready or says why not; nothing if it ends without a word.
async fn hear(child: &mut Child, report: &mut dyn FnMut(News<'_>)) -> Option<Result<(), String>> {
    let mut lines = child.stdout.take().map(|output| BufReader::new(output).lines());
    while let Some(lines) = &mut lines
        && let Ok(Some(line)) = lines.next_line().await
    {
        match serde_json::from_str(&line) {
            Ok(Report::Step(step)) => report(News::Step(&step)),
            Ok(Report::Ready) => return Some(Ok(())),
            Ok(Report::Failed(words)) => return Some(Err(words)),
            Err(_) => report(News::Step(&line)),
        }
    }
    None
}

/// At level nodes the API server is in a network of its own: a port out here, handed to the supervisor, leads to it.
fn outside_listener(options: &mut Options) -> Result<Option<TcpListener>, LabError> {
    if options.level != Level::Nodes {
        // The API server opens it itself.
        return options.port.map_or(Ok(None), |port| ports::listen(Ipv4Addr::UNSPECIFIED, port).map(|_| None));
    }
    let listener = ports::listen(Ipv4Addr::LOCALHOST, options.port.unwrap_or(0))?;
    options.port = listener.local_addr().ok().map(|address| address.port());
    Ok(Some(listener))
}

/// Finds or builds the programs here, where a person sees it happen; the supervisor then finds them at once.
async fn find_programs(options: &Options, report: &mut dyn FnMut(News<'_>)) -> Result<(), LabError> {
    let search = programs::Search::from_environment(options.programs.clone());
    let wanted = options.wanted_programs();
    let (said, mut hearing) = tokio::sync::mpsc::unbounded_channel();
    let finding = crate::lab::blocking(move || {
        programs::find_or_build(&search, &wanted, &mut |progress| {
            let _ = said.send(progress);
        })
    });
    let mut finding = std::pin::pin!(finding);
    loop {
        tokio::select! {
            Some(progress) = hearing.recv() => report(News::Building(&progress)),
            found = &mut finding => return found.map(drop).map_err(LabError::from),
        }
    }
}
