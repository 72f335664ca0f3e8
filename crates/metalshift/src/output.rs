//! The one place that prints: data to standard output, everything else to standard error.

use std::{
    env,
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
    sync::LazyLock,
};

/// A line of data.
pub fn data(line: impl AsRef<str>) {
    // A reader that has seen enough (`| head`) is no error.
    let _ = writeln!(io::stdout(), "{}", line.as_ref());
}

/// A line for the person who waits.
pub fn note(line: impl AsRef<str>) {
    let _ = writeln!(io::stderr(), "{}", callable(line.as_ref()));
}

/// The text with its commands as this person can call them: by the name of the program if that is found, else by its path, as after
/// `cargo run`.
pub fn callable(text: &str) -> String {
    static PATH: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let directories = env::var_os("PATH").unwrap_or_default();
        let is_found = env::split_paths(&directories).any(|directory| directory.join("metalshift").is_file());
        env::current_exe().ok().filter(|_| !is_found)
    });
    PATH.as_ref().map_or_else(|| text.to_owned(), |path| called_by(text, &path.display().to_string()))
}

/// Commands stand in backquotes, or on a line of their own.
fn called_by(text: &str, path: &str) -> String {
    let text = text.replace("`metalshift ", &format!("`{path} "));
    text.strip_prefix("  metalshift ").map_or(text.clone(), |rest| format!("  {path} {rest}"))
}

/// What went wrong, with the causes that say more than the sentence itself; the exit code tells a wrong usage from a failure.
pub fn failure(error: &anyhow::Error) -> ExitCode {
    if let Some(usage) = error.downcast_ref::<clap::Error>() {
        let _ = usage.print();
        return ExitCode::from(2);
    }
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    note(format!("error: {text}"));
    ExitCode::FAILURE
}

/// Progress: one line that is replaced on a terminal, a line a step elsewhere.
#[derive(Debug, Default)]
pub struct Progress {
    replaceable: bool,
}

impl Progress {
    /// Something new has begun.
    pub fn step(&mut self, line: &str) {
        self.end_line();
        note(line);
    }

    /// The same thing goes on; only a terminal shows it.
    pub fn update(&mut self, line: &str) {
        if io::stderr().is_terminal() {
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
            let _ = io::stderr().flush();
            self.replaceable = true;
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.replaceable) {
            let _ = writeln!(io::stderr());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end_line();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_they_can_be_called_and_other_words_stay() {
        let called = |text: &str| called_by(text, "/build/metalshift");
        assert_eq!(called("start it with `metalshift lab up`, or not"), "start it with `/build/metalshift lab up`, or not");
        assert_eq!(called("  metalshift lab status --name a"), "  /build/metalshift lab status --name a");
        assert_eq!(called("metalshift made it, /var/lib/metalshift has it"), "metalshift made it, /var/lib/metalshift has it");
    }
}
