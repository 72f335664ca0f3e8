//! Steps of a run and where the time went. Used by `test`.

use std::time::{Duration, Instant};

use comfy_table::{CellAlignment, Table, presets};

use crate::output::say;

/// The steps taken so far.
#[derive(Debug)]
pub struct Steps {
    began: Instant,
    taken: Vec<(&'static str, Duration, &'static str)>,
}

impl Default for Steps {
    fn default() -> Self {
        Self { began: Instant::now(), taken: Vec::new() }
    }
}

impl Steps {
    /// Takes a step; whatever becomes of it is in the table.
    pub fn take(&mut self, name: &'static str, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        say(format!("==> {name}"));
        let (outcome, took) = timed(work);
        self.note(name, took, &outcome);
        outcome
    }

    /// Takes two steps at the same time, both to their end.
    pub fn take_beside<Work>(&mut self, names: [&'static str; 2], [first, second]: [Work; 2]) -> anyhow::Result<()>
    where
        Work: FnOnce() -> anyhow::Result<()> + Send,
    {
        say(format!("==> {} and {}", names[0], names[1]));
        let (first, second) = std::thread::scope(|scope| {
            let second = scope.spawn(|| timed(second));
            let first = timed(first);
            (first, second.join().unwrap_or_else(|_| (Err(anyhow::anyhow!("{} panicked", names[1])), Duration::ZERO)))
        });
        for (name, (outcome, took)) in names.iter().zip([&first, &second]) {
            self.note(name, *took, outcome);
        }
        first.0.and(second.0)
    }

    fn note(&mut self, name: &'static str, took: Duration, outcome: &anyhow::Result<()>) {
        self.taken.push((name, took, if outcome.is_ok() { "" } else { "failed" }));
    }

    /// A line a step, and all of it.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        let sum = ("together", self.began.elapsed(), "");
        for (name, took, remark) in self.taken.iter().chain([&sum]) {
            table.add_row([(*name).to_owned(), format!("{:.1} s", took.as_secs_f64()), (*remark).to_owned()]);
        }
        if let Some(seconds) = table.column_mut(1) {
            seconds.set_cell_alignment(CellAlignment::Right);
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }
}

fn timed(work: impl FnOnce() -> anyhow::Result<()>) -> (anyhow::Result<()>, Duration) {
    let began = Instant::now();
    let outcome = work();
    (outcome, began.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_steps_at_once_either_can_fail_and_both_are_in_the_table() {
        for failing in 0..2 {
            let mut steps = Steps::default();
            let work = |number: usize| move || if number == failing { anyhow::bail!("number {number}") } else { Ok(()) };
            let outcome = steps.take_beside(["tests", "explorer"], [work(0), work(1)]);
            assert_eq!(outcome.unwrap_err().to_string(), format!("number {failing}"));
            let table = steps.table();
            let remarks: Vec<bool> = table.lines().map(|line| line.ends_with("failed")).collect();
            assert_eq!(remarks, [failing == 0, failing == 1, false], "{table}");
        }
    }

    #[test]
    fn a_failed_step_is_in_the_table_too() {
        let mut steps = Steps::default();
        steps.take("format", || Ok(())).unwrap();
        assert!(steps.take("lint", || anyhow::bail!("no")).is_err());
        let table = steps.table();
        let lines: Vec<&str> = table.lines().map(str::trim).collect();
        assert_eq!(lines.len(), 3, "{table}");
        assert!(lines[0].starts_with("format") && lines[0].ends_with(" s"), "{table}");
        assert!(lines[1].starts_with("lint") && lines[1].ends_with("failed"), "{table}");
        assert!(lines[2].starts_with("together"), "{table}");
    }
}
