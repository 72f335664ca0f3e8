//! What a person sees of the demo: a tree that changes in place on a terminal, a line for every change elsewhere.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Instant,
};

use crate::output;

/// The part of the terminal that is drawn anew, and how long the demo has run.
#[derive(Debug)]
pub struct Screen {
    began: Instant,
    live: bool,
    drawn: Vec<String>,
}

impl Default for Screen {
    fn default() -> Self {
        Self { began: Instant::now(), live: io::stderr().is_terminal(), drawn: Vec::new() }
    }
}

impl Screen {
    /// A line that stays, above what is drawn anew.
    pub fn say(&mut self, line: &str) {
        self.clear();
        let seconds = self.began.elapsed().as_secs();
        output::note(format!("{:>3}:{:02}  {line}", seconds / 60, seconds % 60));
    }

    /// Shows these lines in place of the last ones. Where nothing can be replaced, only what is new is printed.
    pub fn show(&mut self, lines: Vec<String>) {
        if self.drawn == lines {
            return;
        }
        if self.live {
            self.clear();
            let width = 160;
            for line in &lines {
                let _ = writeln!(io::stderr(), "       {}", line.chars().take(width).collect::<String>());
            }
        } else {
            // Times that count down are no news.
            let known: Vec<&str> = self.drawn.iter().map(|line| without_times(line)).collect();
            for line in lines.iter().filter(|line| !known.contains(&without_times(line))) {
                output::note(format!("       {line}"));
            }
        }
        self.drawn = lines;
    }

    /// Removes what was drawn; plain lines stay.
    fn clear(&mut self) {
        if self.live && !self.drawn.is_empty() {
            let _ = write!(io::stderr(), "\x1b[{}A\x1b[J", self.drawn.len());
            let _ = io::stderr().flush();
            self.drawn.clear();
        }
    }
}

fn without_times(line: &str) -> &str {
    line.split(", at most").next().unwrap_or(line)
}
