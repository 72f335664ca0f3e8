//! Which units a start takes along and in which order. Pure: the supervisor gives it definitions and runs what comes out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::init::unit::{Definition, LoadState, UnitKind, UnitName};

/// Units to start together.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// In an order in which each comes behind those it waits for.
    pub order: Vec<UnitName>,
    /// For each unit, those it waits for.
    pub waits_for: BTreeMap<UnitName, BTreeSet<UnitName>>,
    /// Orderings that were given up because they run in a circle.
    pub complaints: Vec<String>,
}

/// Takes along what the roots require and want.
pub fn plan(roots: &[UnitName], definition_of: &dyn Fn(&UnitName) -> Arc<Definition>) -> Transaction {
    let mut units: BTreeMap<UnitName, Arc<Definition>> = BTreeMap::new();
    let mut open: Vec<UnitName> = roots.to_vec();
    while let Some(name) = open.pop() {
        let definition = definition_of(&name);
        if units.contains_key(&definition.name) {
            continue;
        }
        let wanted =
            definition.wants.iter().filter(|wanted| !matches!(definition_of(wanted).state, LoadState::NotFound | LoadState::Masked));
        open.extend(wanted.chain(&definition.requires).cloned());
        units.insert(definition.name.clone(), definition);
    }
    order(&units, definition_of)
}

/// Orders units by After, Before, and targets behind what they hold.
pub fn order(units: &BTreeMap<UnitName, Arc<Definition>>, definition_of: &dyn Fn(&UnitName) -> Arc<Definition>) -> Transaction {
    let resolve = |name: &UnitName| definition_of(name).name.clone();
    let mut waits_for: BTreeMap<UnitName, BTreeSet<UnitName>> = units.keys().map(|name| (name.clone(), BTreeSet::new())).collect();
    let mut wait = |waiting: &UnitName, first: &UnitName| {
        if waiting != first && units.contains_key(first) && units.contains_key(waiting) {
            waits_for.entry(waiting.clone()).or_default().insert(first.clone());
        }
    };
    for (name, definition) in units {
        for first in &definition.after {
            wait(name, &resolve(first));
        }
        for later in &definition.before {
            wait(&resolve(later), name);
        }
    }
    for (name, definition) in units.iter().filter(|(name, _)| name.kind() == UnitKind::Target) {
        for member in definition.requires.iter().chain(&definition.wants).map(resolve) {
            let ordered_behind = units.get(&member).is_some_and(|member| member.after.contains(name));
            if !ordered_behind {
                wait(name, &member);
            }
        }
    }
    sort(waits_for)
}

fn sort(mut waits_for: BTreeMap<UnitName, BTreeSet<UnitName>>) -> Transaction {
    let mut transaction = Transaction::default();
    let mut placed = BTreeSet::new();
    let mut left: Vec<UnitName> = waits_for.keys().cloned().collect();
    while !left.is_empty() {
        let free = left.iter().position(|name| waits_for.get(name).is_none_or(|firsts| firsts.is_subset(&placed)));
        let index = free.unwrap_or_else(|| {
            let given_up = left.first().and_then(|name| waits_for.get_mut(name).map(|firsts| (name, firsts)));
            if let Some((name, firsts)) = given_up {
                let circle: Vec<&str> = firsts.difference(&placed).map(UnitName::as_str).collect();
                transaction.complaints.push(format!("{name}: ordering behind {} runs in a circle and is given up", circle.join(", ")));
                firsts.retain(|first| placed.contains(first));
            }
            0
        });
        let name = left.remove(index);
        placed.insert(name.clone());
        transaction.order.push(name);
    }
    transaction.waits_for = waits_for;
    transaction
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init::layout::Layout;
    use crate::init::unit::{self, specifier::Machine};

    /// Units written as `name: directives`, in a directory of their own.
    fn planned(units: &[(&str, &str)], root: &str) -> Transaction {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::at(directory.path());
        std::fs::create_dir_all(layout.administrator_units()).unwrap();
        for (name, text) in units {
            std::fs::write(layout.administrator_units().join(name), format!("[Unit]\n{text}\n")).unwrap();
        }
        let machine = Machine::read();
        plan(&[UnitName::parse(root).unwrap()], &|name| Arc::new(unit::read(&layout, name, &machine)))
    }

    fn order_of(transaction: &Transaction) -> Vec<&str> {
        transaction.order.iter().map(UnitName::as_str).collect()
    }

    #[test]
    fn requirements_come_along_and_orderings_hold() {
        let transaction = planned(
            &[
                ("boot.target", "Wants=a.service b.service"),
                ("a.service", "Requires=c.service\nAfter=c.service b.service"),
                ("b.service", ""),
                ("c.service", "Before=b.service"),
                ("d.service", ""),
            ],
            "boot.target",
        );
        assert_eq!(order_of(&transaction), ["c.service", "b.service", "a.service", "boot.target"]);
        assert!(transaction.complaints.is_empty());
    }

    #[test]
    fn what_is_wanted_and_missing_is_left_out_and_what_is_required_stays_to_fail() {
        let transaction = planned(&[("a.service", "Wants=none.service\nRequires=gone.service")], "a.service");
        assert_eq!(order_of(&transaction), ["a.service", "gone.service"]);
    }

    #[test]
    fn a_circle_is_broken_and_named() {
        let transaction = planned(&[("a.service", "Wants=b.service\nAfter=b.service"), ("b.service", "After=a.service")], "a.service");
        assert_eq!(transaction.order.len(), 2);
        assert_eq!(transaction.complaints.len(), 1);
    }

    #[test]
    fn a_unit_may_order_itself_behind_the_target_that_wants_it() {
        let transaction = planned(&[("boot.target", "Wants=late.service"), ("late.service", "After=boot.target")], "boot.target");
        assert_eq!(order_of(&transaction), ["boot.target", "late.service"]);
        assert!(transaction.complaints.is_empty());
    }
}
