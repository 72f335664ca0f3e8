//! How often each fate struck each kind of call, as a table for people.

use std::{collections::BTreeMap, fmt};

use super::trouble::{CallKind, Fate};

/// How often each fate struck each kind of call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matrix(pub BTreeMap<CallKind, BTreeMap<Fate, u64>>);

impl Matrix {
    /// One more.
    pub fn count(&mut self, kind: &CallKind, fate: Fate) {
        *self.0.entry(kind.clone()).or_default().entry(fate).or_default() += 1;
    }

    /// All of another matrix too.
    pub fn add(&mut self, other: &Self) {
        for (kind, fates) in &other.0 {
            for (fate, count) in fates {
                *self.0.entry(kind.clone()).or_default().entry(*fate).or_default() += count;
            }
        }
    }

    /// How often this fate struck this kind of call.
    pub fn at(&self, kind: &CallKind, fate: Fate) -> u64 {
        self.0.get(kind).and_then(|fates| fates.get(&fate)).copied().unwrap_or_default()
    }

    /// How often anything struck anything.
    pub fn total(&self) -> u64 {
        self.0.values().flat_map(BTreeMap::values).sum()
    }
}

/// Two words over each other, so that nine columns fit on a screen.
fn heading(fate: Fate) -> [&'static str; 2] {
    match fate {
        Fate::FailedBefore => ["failed", "before"],
        Fate::FailedAfter => ["failed", "after"],
        Fate::AnswerLost => ["answer", "lost"],
        Fate::LateCommit => ["late", "commit"],
        Fate::KilledBefore => ["killed", "before"],
        Fate::KilledAfter => ["killed", "after"],
        Fate::Slow => ["slow", ""],
        Fate::HungBefore => ["hung", "before"],
        Fate::HungAfter => ["hung", "after"],
    }
}

impl fmt::Display for Matrix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.keys().map(|kind| kind.0.len()).max().unwrap_or_default().max(4);
        for (line, title) in ["", "call"].into_iter().enumerate() {
            write!(formatter, "{title:<width$}")?;
            for fate in Fate::ALL {
                write!(formatter, " {:>7}", heading(fate)[line])?;
            }
            writeln!(formatter)?;
        }
        for kind in self.0.keys() {
            write!(formatter, "{:<width$}", kind.0)?;
            for fate in Fate::ALL {
                write!(formatter, " {:>7}", self.at(kind, fate))?;
            }
            writeln!(formatter)?;
        }
        write!(formatter, "{} troubles in all", self.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_lines_up() {
        let (mut matrix, kind) = (Matrix::default(), CallKind("maas POST machines/{} deploy".to_owned()));
        for _ in 0..107 {
            matrix.count(&kind, Fate::HungAfter);
        }
        let text = matrix.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with("   hung") && lines[1].ends_with("  after") && lines[2].ends_with("    107"), "{text}");
        assert!(lines[..3].iter().all(|line| line.len() == lines[0].len()), "{text}");
        assert_eq!(lines[3], "107 troubles in all");
    }
}
