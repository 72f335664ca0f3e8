//! What a person sees of the demo: a tree that changes in place on a terminal, a line for every change elsewhere.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Instant,
};

use terminal_size::{Height, Width, terminal_size_of};

use crate::output;

/// What stands before every line that is drawn.
const INDENT: &str = "       ";

/// Of a terminal that does not tell.
const USUAL_SIZE: Size = Size { columns: 80, rows: 24 };

/// A line to show.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub text: String,
    /// What of it is news when it changes: times that pass are none.
    pub news: String,
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Self { news: text.clone(), text }
    }
}

/// How much room there is.
#[derive(Clone, Copy, Debug)]
struct Size {
    columns: usize,
    rows: usize,
}

impl Size {
    /// People change it while they look.
    fn now() -> Self {
        let told = terminal_size_of(io::stderr());
        told.map_or(USUAL_SIZE, |(Width(columns), Height(rows))| Self { columns: columns.into(), rows: rows.into() })
    }

    /// As much of the lines as can be shown and removed again: a line that reaches the end goes on below, and what left the screen stays.
    fn cut(self, lines: &[Line]) -> Vec<String> {
        let line = |line: &Line| format!("{INDENT}{}", line.text).chars().take(self.columns.saturating_sub(1)).collect();
        lines.iter().take(self.rows.saturating_sub(1)).map(line).collect()
    }

    /// How many rows lines take that were drawn when there may have been more room.
    fn rows_of(self, lines: &[String]) -> usize {
        lines.iter().map(|line| line.chars().count().div_ceil(self.columns.max(1)).max(1)).sum()
    }
}

/// The part of the terminal that is drawn anew, and how long the demo has run.
#[derive(Debug)]
pub struct Screen {
    began: Instant,
    live: bool,
    shown: Vec<Line>,
    /// What of it is on the terminal.
    drawn: Vec<String>,
}

impl Default for Screen {
    fn default() -> Self {
        Self { began: Instant::now(), live: io::stderr().is_terminal(), shown: Vec::new(), drawn: Vec::new() }
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
    pub fn show(&mut self, lines: Vec<Line>) {
        if self.shown == lines {
            return;
        }
        if self.live {
            self.clear();
            self.drawn = Size::now().cut(&lines);
            for line in &self.drawn {
                let _ = writeln!(io::stderr(), "{line}");
            }
        } else {
            for line in lines.iter().filter(|line| !self.shown.iter().any(|known| known.news == line.news)) {
                output::note(format!("{INDENT}{}", line.text));
            }
        }
        self.shown = lines;
    }

    /// Removes what was drawn; plain lines stay.
    fn clear(&mut self) {
        if self.live && !self.drawn.is_empty() {
            let _ = write!(io::stderr(), "\x1b[{}A\x1b[J", Size::now().rows_of(&self.drawn));
            let _ = io::stderr().flush();
            self.drawn.clear();
            self.shown.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_longer_than_the_terminal_is_wide_and_no_tree_longer_than_it_is_high() {
        let lines = ["├─ ".repeat(60), "short".to_owned(), "third".to_owned()].map(Line::from);
        let narrow = Size { columns: 40, rows: 3 };
        let drawn = narrow.cut(&lines);
        assert_eq!(drawn.iter().map(|line| line.chars().count()).collect::<Vec<_>>(), [39, 12]);
        assert_eq!(narrow.rows_of(&drawn), 2, "so many lines are removed later");
        assert_eq!(Size { columns: 300, rows: 50 }.cut(&lines), lines.each_ref().map(|line| format!("{INDENT}{}", line.text)));
    }

    #[test]
    fn a_terminal_that_became_narrower_is_cleaned_of_all_that_its_lines_take_there() {
        let drawn = Size { columns: 100, rows: 24 }.cut(&["x".repeat(200), "y".to_owned(), String::new()].map(Line::from));
        assert_eq!(Size { columns: 50, rows: 24 }.rows_of(&drawn), 4);
        assert_eq!(Size { columns: 0, rows: 0 }.rows_of(&[String::new()]), 1);
    }
}
