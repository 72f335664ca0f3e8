//! The console of a machine: what a person reads to see how a boot went. Lines of all threads, whole and with the time since the start.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

/// Writes to standard output and keeps a copy for `journalctl`.
#[derive(Debug)]
pub struct Console {
    started: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    copy: Option<File>,
    said: BTreeSet<String>,
}

impl Console {
    /// Begins to count the time; the copy goes to `init.log` in the log directory.
    pub fn new(log_directory: &Path) -> Self {
        let copy = OpenOptions::new().create(true).append(true).open(log_directory.join("init.log")).ok();
        Self { started: Instant::now(), inner: Mutex::new(Inner { copy, said: BTreeSet::new() }) }
    }

    /// A line of the init itself.
    pub fn say(&self, line: &str) {
        self.write("init", line);
    }

    /// A line that is worth saying once only, such as a directive without effect.
    pub fn say_once(&self, line: &str) {
        let new = self.lock().said.insert(line.to_owned());
        if new {
            self.say(line);
        }
    }

    /// A line of somebody else, tagged with the name.
    pub fn write(&self, who: &str, line: &str) {
        let elapsed = self.started.elapsed().as_secs_f64();
        let text = format!("[{elapsed:9.3}] {who}: {line}\n");
        let mut inner = self.lock();
        // A console that cannot be written has nobody left to tell.
        let _ = std::io::stdout().lock().write_all(text.as_bytes());
        if let Some(copy) = &mut inner.copy {
            let _ = copy.write_all(text.as_bytes());
        }
    }

    /// Takes what programs write to /dev/console, which in a machine is a pipe, for as long as the process lives.
    pub fn listen(self: &Arc<Self>, pipe: &Path) -> io::Result<()> {
        if !fs::metadata(pipe).is_ok_and(|file| file.file_type().is_fifo()) {
            return Ok(());
        }
        // Open for writing as well, so that the last writer does not end it.
        let reader = OpenOptions::new().read(true).write(true).open(pipe)?;
        let console = Arc::clone(self);
        thread::Builder::new().name("console".to_owned()).spawn(move || {
            for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
                console.write("console", String::from_utf8_lossy(&line).trim_end());
            }
        })?;
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
