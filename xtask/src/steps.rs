//! Steps of a run and where the time went. Used by `test`.

use std::time::{Duration, Instant};

use comfy_table::{CellAlignment, Table, presets};

use crate::output::say;

/// The steps taken so far.
#[derive(Debug, Default)]
pub struct Steps {
    taken: Vec<(&'static str, Duration, &'static str)>,
}

impl Steps {
    /// Takes a step; whatever becomes of it is in the table.
    pub fn take(&mut self, name: &'static str, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        say(format!("==> {name}"));
        let began = Instant::now();
        let outcome = work();
        self.taken.push((name, began.elapsed(), if outcome.is_ok() { "" } else { "failed" }));
        outcome
    }

    /// A line a step, and the sum.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        let sum = ("together", self.taken.iter().map(|(_, took, _)| *took).sum(), "");
        for (name, took, remark) in self.taken.iter().chain([&sum]) {
            table.add_row([(*name).to_owned(), format!("{:.1} s", took.as_secs_f64()), (*remark).to_owned()]);
        }
        if let Some(seconds) = table.column_mut(1) {
            seconds.set_cell_alignment(CellAlignment::Right);
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
