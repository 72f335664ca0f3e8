//! What goes wrong with calls: one thing at one call, or anything at any call as a seed has it.

use std::{collections::BTreeMap, fmt, time::Duration};

use manager::Jitter;

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// Nobody carries it out, and the caller is told.
    FailedBefore,
    /// It is carried out, and the caller is told that it failed.
    FailedAfter,
    /// It is carried out, and the caller is told nothing.
    AnswerLost,
    /// The caller is told nothing, and it is carried out much later.
    LateCommit,
    /// The process ends before it is carried out.
    KilledBefore,
    /// The process ends after it was carried out, before the answer.
    KilledAfter,
}

impl Fate {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::FailedBefore, Self::FailedAfter, Self::AnswerLost, Self::LateCommit, Self::KilledBefore, Self::KilledAfter];

    /// How much later MAAS may carry out a call nobody waits for.
    pub const LATEST: Duration = Duration::from_secs(90);
}

/// What a call is, as far as the matrix tells calls apart: where it goes and what it does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallKind(pub String);

impl CallKind {
    /// Whether it can change anything.
    pub fn writes(&self) -> bool {
        !["GET", "LIST", "WATCH"].iter().any(|verb| self.0.split(' ').nth(1) == Some(verb))
    }
}

impl fmt::Display for CallKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// One thing that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trouble {
    /// The number of the call, from the beginning of the run.
    pub call: u64,
    /// What becomes of it.
    pub fate: Fate,
}

/// What goes wrong in one run.
#[derive(Debug, Clone, Copy)]
pub enum Troubles {
    /// Nothing.
    None,
    /// One thing.
    One(Trouble),
    /// Anything, as the seed has it, from some call on until so many things went wrong.
    Seeded {
        /// The seed.
        seed: u64,
        /// From which call on.
        from: u64,
        /// How many.
        most: u64,
    },
}

impl Troubles {
    /// What becomes of this call; nothing if it passes.
    pub fn fate(&self, call: u64, kind: &CallKind, so_far: u64) -> Option<Fate> {
        match self {
            Self::None => None,
            Self::One(trouble) => (trouble.call == call).then_some(trouble.fate),
            Self::Seeded { most, from, .. } if so_far >= *most || call < *from => None,
            Self::Seeded { seed, .. } => {
                let jitter = Jitter::seeded(*seed);
                // Calls that write are few and matter most.
                let permille = if kind.writes() { 450 } else { 90 };
                let drawn = jitter.draw("trouble", call);
                (drawn % 1000 < permille).then(|| Fate::ALL[usize::try_from((drawn >> 32) % 6).unwrap_or_default()])
            }
        }
    }
}

/// How often each fate struck each kind of call.
#[derive(Debug, Clone, Default)]
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
}

impl fmt::Display for Matrix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:<44}", "call")?;
        for fate in Fate::ALL {
            write!(formatter, " {:>13}", format!("{fate:?}"))?;
        }
        for (kind, fates) in &self.0 {
            write!(formatter, "\n{:<44}", kind.0)?;
            for fate in Fate::ALL {
                write!(formatter, " {:>13}", fates.get(&fate).copied().unwrap_or_default())?;
            }
        }
        Ok(())
    }
}
