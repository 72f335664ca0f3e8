//! Runs in which certain calls meet certain fates, so that what happens rarely meets every fate as often as the rest.

use std::collections::{BTreeMap, BTreeSet};

use simulation::explorer::{Aim, CallKind, Fate, Matrix, Troubles};

use crate::{
    explore::{Run, Tale},
    kinds::every_kind,
};

/// So often a fate strikes every kind of call. What is only slow is much like what is late, and takes no other way through the rules.
pub fn enough(fate: Fate) -> u64 {
    match fate {
        Fate::FailedBefore | Fate::FailedAfter | Fate::AnswerLost | Fate::LateCommit | Fate::KilledBefore | Fate::KilledAfter => 100,
        Fate::Slow | Fate::HungBefore | Fate::HungAfter => 30,
    }
}

/// So many things go wrong in one run.
const AIMS: usize = 6;
/// Later calls of a kind are much like the first ones.
const LATEST: u64 = 12;

/// Which calls each tale makes when nothing goes wrong.
pub struct Calls(Vec<(Tale, BTreeMap<CallKind, u64>)>);

impl Calls {
    pub fn of_every_tale() -> Self {
        Self(Tale::all().into_iter().map(|tale| (tale, tale.run(1, Troubles::None).make().calls_by_kind)).collect())
    }

    /// The tale and the call of a kind that the so-many-th aim at it is for.
    fn place(&self, kind: &CallKind, number: u64) -> Option<(Tale, u64)> {
        let tales: Vec<(Tale, u64)> = self.0.iter().filter_map(|(tale, calls)| Some((*tale, *calls.get(kind)?))).collect();
        let count = u64::try_from(tales.len()).ok().filter(|count| *count > 0)?;
        let (tale, calls) = tales[usize::try_from(number % count).ok()?];
        Some((tale, 1 + number / count % calls.min(LATEST)))
    }
}

/// The cells that are not full, and how much each lacks.
pub fn lacking(matrix: &Matrix) -> Vec<(CallKind, Fate, u64)> {
    let kinds: BTreeSet<CallKind> = every_kind().into_iter().chain(matrix.0.keys().cloned()).collect();
    let table = kinds.into_iter().flat_map(|kind| Fate::ALL.map(|fate| (kind.clone(), fate)));
    table
        .map(|(kind, fate)| {
            let lacks = enough(fate).saturating_sub(matrix.at(&kind, fate));
            (kind, fate, lacks)
        })
        .filter(|(_, _, lacks)| *lacks > 0)
        .collect()
}

/// Runs that fill what a matrix lacks, if every aim hits.
pub fn runs(matrix: &Matrix, calls: &Calls, round: u64) -> Vec<Run> {
    let lacking = lacking(matrix);
    let most = lacking.iter().map(|(_, _, lacks)| *lacks).max().unwrap_or_default();
    let mut waiting: Vec<(Tale, Vec<Aim>)> = Vec::new();
    let mut full: Vec<(Tale, Vec<Aim>)> = Vec::new();
    // One aim at every cell after the other, so that a run has different ones.
    for number in 0..most {
        for (cell, (kind, fate, _)) in lacking.iter().enumerate().filter(|(_, (_, _, lacks))| number < *lacks) {
            let Some((tale, nth)) = calls.place(kind, number + round * 7 + cell as u64) else { continue };
            let aim = Aim { kind: kind.clone(), nth, fate: *fate };
            let fits = |(other, aims): &&mut (Tale, Vec<Aim>)| {
                *other == tale && !aims.iter().any(|other| other.kind == aim.kind && other.nth == aim.nth)
            };
            match waiting.iter_mut().find(fits) {
                Some((_, aims)) => aims.push(aim),
                None => waiting.push((tale, vec![aim])),
            }
            full.extend(waiting.extract_if(.., |(_, aims)| aims.len() == AIMS));
        }
    }
    let seeds = round * 100_000..;
    full.into_iter().chain(waiting).zip(seeds).map(|((tale, aims), seed)| tale.run(seed, Troubles::Aimed(aims))).collect()
}
