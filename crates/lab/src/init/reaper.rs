//! The one owner of `waitpid` on a machine: reaps every orphan and tells whoever started a process how it ended.
//!
//! All starts and all reaping happen under one lock, so neither a process that ends at once nor a failed start can be lost, and a
//! process id cannot be taken for that of an earlier process.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, WaitOptions, WaitStatus};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// Status zero.
    pub fn success(self) -> bool {
        self == Self::Status(0)
    }

    fn from_wait(status: WaitStatus) -> Self {
        status.terminating_signal().map_or_else(|| Self::Status(status.exit_status().unwrap_or(255)), Self::Signal)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(formatter, "exit status {status}"),
            Self::Signal(signal) => write!(formatter, "signal {signal}"),
        }
    }
}

type Callback = Box<dyn FnOnce(Exit) + Send>;

/// Starts processes and reaps them.
#[derive(Clone, Default)]
pub struct Reaper {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    children: Mutex<Children>,
    born: Condvar,
}

#[derive(Default)]
struct Children {
    watched: HashMap<Pid, Callback>,
    /// Counts every process started, so that the idle reaper notices one that was started while it was not looking.
    births: u64,
}

impl fmt::Debug for Reaper {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Reaper")
    }
}

/// How long to wait for new children when there are none. Orphans of `exec`ed strangers come without a start of ours.
const IDLE: Duration = Duration::from_millis(250);

impl Reaper {
    /// Begins to reap; from now on nothing else in this process may wait for children.
    pub fn start() -> io::Result<Self> {
        let reaper = Self::default();
        let mine = reaper.clone();
        thread::Builder::new().name("reaper".to_owned()).spawn(move || mine.run())?;
        Ok(reaper)
    }

    /// Starts a process; `on_exit` is called on the reaper's thread and must not block.
    pub fn spawn(&self, command: &mut Command, on_exit: impl FnOnce(Exit) + Send + 'static) -> io::Result<Child> {
        let mut children = self.lock();
        let child = command.spawn()?;
        let pid = pid_of(child.id()).ok_or_else(|| io::Error::other("a process without an id"))?;
        children.watched.insert(pid, Box::new(on_exit));
        children.births += 1;
        self.shared.born.notify_all();
        Ok(child)
    }

    /// Watches a process that somebody else started and that has become, or will become, a child of ours.
    pub fn watch(&self, pid: Pid, on_exit: impl FnOnce(Exit) + Send + 'static) {
        self.lock().watched.insert(pid, Box::new(on_exit));
    }

    /// Starts a process and waits for its end.
    pub fn run_to_end(&self, command: &mut Command) -> io::Result<Exit> {
        let end = Arc::new(End::default());
        let theirs = Arc::clone(&end);
        self.spawn(command, move |exit| theirs.set(exit))?;
        end.wait(None).ok_or_else(|| io::Error::other("a process that never ended"))
    }

    fn lock(&self) -> MutexGuard<'_, Children> {
        self.shared.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while there are no children.
    fn idle(&self, births: u64) {
        let children = self.lock();
        if children.births == births {
            drop(self.shared.born.wait_timeout(children, IDLE));
        }
    }

    fn run(&self) {
        loop {
            let births = self.lock().births;
            // Only looks; the zombie stays until the lock is held.
            if rustix::process::waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).is_err() {
                self.idle(births);
                continue;
            }
            let mut ended = Vec::new();
            {
                let mut children = self.lock();
                while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
                    ended.extend(children.watched.remove(&pid).map(|callback| (callback, Exit::from_wait(status))));
                }
            }
            for (callback, exit) in ended {
                callback(exit);
            }
        }
    }
}

/// The end of one process, to wait for.
#[derive(Debug, Default)]
pub struct End {
    exit: Mutex<Option<Exit>>,
    known: Condvar,
}

impl End {
    /// Tells everybody who waits.
    pub fn set(&self, exit: Exit) {
        *self.exit.lock().unwrap_or_else(PoisonError::into_inner) = Some(exit);
        self.known.notify_all();
    }

    /// How it ended, if it has.
    pub fn get(&self) -> Option<Exit> {
        *self.exit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, at most until the deadline.
    pub fn wait(&self, deadline: Option<Instant>) -> Option<Exit> {
        let mut exit = self.exit.lock().unwrap_or_else(PoisonError::into_inner);
        while exit.is_none() {
            let left = deadline.map_or(Duration::from_hours(1), |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return None;
            }
            exit = self.known.wait_timeout(exit, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *exit
    }
}

/// The process id in the form the kernel interface wants.
pub fn pid_of(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}
