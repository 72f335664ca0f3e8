//! What goes wrong with calls: one thing at one call, anything at any call as a seed has it, or certain things at certain kinds of call.

use std::{fmt, time::Duration};

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
    /// It is carried out and answered, and all that takes long.
    Slow,
    /// Nobody carries it out, and the caller waits in vain.
    HungBefore,
    /// It is carried out some time while the caller waits in vain.
    HungAfter,
}

impl Fate {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::FailedBefore,
        Self::FailedAfter,
        Self::AnswerLost,
        Self::LateCommit,
        Self::KilledBefore,
        Self::KilledAfter,
        Self::Slow,
        Self::HungBefore,
        Self::HungAfter,
    ];

    /// How much later MAAS may carry out a call nobody waits for.
    pub const LATEST: Duration = Duration::from_secs(90);

    /// Whether it ends the process.
    pub fn kills(self) -> bool {
        matches!(self, Self::KilledBefore | Self::KilledAfter)
    }

    fn read(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fate| format!("{fate:?}") == name)
    }
}

/// What a call is, as far as the matrix tells calls apart: where it goes and what it does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallKind(pub String);

impl CallKind {
    /// Whether it can change anything.
    pub fn writes(&self) -> bool {
        !["GET", "LIST", "WATCH"].iter().any(|verb| self.0.split(' ').nth(1) == Some(verb))
    }

    /// Whether it only asks MAAS what is new, as happens every second.
    pub fn polls(&self) -> bool {
        self.0 == "maas GET events query"
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

/// One thing that goes wrong with a certain call of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aim {
    /// The kind of call.
    pub kind: CallKind,
    /// Which of its calls, from 1 on.
    pub nth: u64,
    /// What becomes of it.
    pub fate: Fate,
}

impl Aim {
    /// Reads what `Display` wrote.
    pub fn read(text: &str) -> Option<Self> {
        let (kind, rest) = text.trim().split_once(" #")?;
        let (nth, fate) = rest.split_once(' ')?;
        Some(Self { kind: CallKind(kind.to_owned()), nth: nth.parse().ok()?, fate: Fate::read(fate)? })
    }
}

impl fmt::Display for Aim {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} #{} {:?}", self.kind, self.nth, self.fate)
    }
}

/// What goes wrong in one run.
#[derive(Debug, Clone)]
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
    /// These things.
    Aimed(Vec<Aim>),
}

/// A call that is about to be made.
#[derive(Debug, Clone, Copy)]
pub struct Passing<'a> {
    /// Its number, from the beginning of the run.
    pub call: u64,
    /// What it is.
    pub kind: &'a CallKind,
    /// Its number among those of its kind.
    pub nth: u64,
    /// How many calls met with trouble before it.
    pub struck: u64,
}

impl Troubles {
    /// Reads what `Display` wrote.
    pub fn read(text: &str) -> Option<Self> {
        if text == "nothing" {
            return Some(Self::None);
        }
        if let Some(numbers) = text.strip_prefix("seeded ") {
            let numbers: Vec<u64> = numbers.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
            let [seed, from, most] = numbers.as_slice() else { return None };
            return Some(Self::Seeded { seed: *seed, from: *from, most: *most });
        }
        let aims: Vec<Aim> = text.split(';').map(Aim::read).collect::<Option<_>>()?;
        match aims.as_slice() {
            [Aim { kind, nth, fate }] if kind.0 == "call" => Some(Self::One(Trouble { call: *nth, fate: *fate })),
            _ => Some(Self::Aimed(aims)),
        }
    }

    /// What becomes of this call; nothing if it passes.
    pub fn fate(&self, passing: Passing<'_>) -> Option<Fate> {
        match self {
            Self::None => None,
            Self::One(trouble) => (trouble.call == passing.call).then_some(trouble.fate),
            Self::Seeded { most, from, .. } if passing.struck >= *most || passing.call < *from => None,
            Self::Seeded { seed, .. } => {
                let jitter = Jitter::seeded(*seed);
                // Calls that write are few and matter most.
                let permille = match passing.kind {
                    kind if kind.writes() => 450,
                    kind if kind.polls() => 25,
                    _ => 90,
                };
                let drawn = jitter.draw("trouble", passing.call);
                let fate = usize::try_from((drawn >> 32) % Fate::ALL.len() as u64).unwrap_or_default();
                (drawn % 1000 < permille).then(|| Fate::ALL[fate])
            }
            Self::Aimed(aims) => aims.iter().find(|aim| aim.nth == passing.nth && aim.kind == *passing.kind).map(|aim| aim.fate),
        }
    }
}

impl fmt::Display for Troubles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str("nothing"),
            Self::One(trouble) => write!(formatter, "call #{} {:?}", trouble.call, trouble.fate),
            Self::Seeded { seed, from, most } => write!(formatter, "seeded {seed} {from} {most}"),
            Self::Aimed(aims) => formatter.write_str(&aims.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aim_reads_as_it_is_written_and_hits_nothing_else() {
        let aim = Aim { kind: CallKind("maas POST machines/{} deploy".to_owned()), nth: 2, fate: Fate::HungAfter };
        assert_eq!(Aim::read(&aim.to_string()), Some(aim.clone()));
        assert_eq!(Aim::read("maas POST machines/{} deploy #2 Nothing"), None);
        let troubles = Troubles::Aimed(vec![aim.clone()]);
        let passing = |nth| Passing { call: 40, kind: &aim.kind, nth, struck: 0 };
        assert_eq!([1, 2, 3].map(|nth| troubles.fate(passing(nth))), [None, Some(Fate::HungAfter), None]);
        let other = CallKind("maas POST machines/{} release".to_owned());
        assert_eq!(troubles.fate(Passing { kind: &other, ..passing(2) }), None);
    }

    #[test]
    fn troubles_read_as_they_are_written() {
        let aim = Aim { kind: CallKind("maas PUT machines/{}".to_owned()), nth: 1, fate: Fate::Slow };
        for troubles in [
            Troubles::None,
            Troubles::One(Trouble { call: 17, fate: Fate::KilledAfter }),
            Troubles::Seeded { seed: 7, from: 14, most: 8 },
            Troubles::Aimed(vec![aim.clone(), Aim { nth: 2, ..aim }]),
        ] {
            assert_eq!(Troubles::read(&troubles.to_string()).map(|read| read.to_string()), Some(troubles.to_string()));
        }
        assert!(Troubles::read("seeded 7").is_none() && Troubles::read("").is_none());
    }
}
