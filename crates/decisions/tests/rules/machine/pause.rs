//! Objects that are left alone: paused, or another program's.

use api::names;
use decisions::{
    ServerStatus,
    machine::{Facts, decide},
};

use super::facts::{deleting, held, now, seconds, wanted};

#[test]
fn row_18_an_object_of_another_program_is_never_written() {
    let mut facts = wanted();
    facts.object.metadata.annotations.get_or_insert_default().insert(names::MANAGED_BY.to_owned(), String::new());
    assert_eq!(decide(&facts, now()).status, None);
}

#[test]
fn row_19_a_paused_object_is_shown_as_paused_and_nothing_is_done_even_when_it_is_deleted() {
    for facts in [held(ServerStatus::Allocated), deleting(held(ServerStatus::Deployed))] {
        let mut by_annotation = facts.clone();
        by_annotation.object.metadata.annotations.get_or_insert_default().insert(names::PAUSED.to_owned(), String::new());
        let mut by_cluster = facts;
        by_cluster.cluster.as_mut().unwrap().paused = true;
        for paused in [by_annotation, by_cluster] {
            let plan = decide(&paused, now());
            assert_eq!(plan.step, None);
            assert!(api::condition::is_true(&plan.status.unwrap().conditions, "Paused"));
            assert!(!paused.concerns_maas());
        }
    }
}

#[test]
fn row_29_an_object_first_seen_while_it_is_paused_has_ready_too_and_a_pause_changes_nothing_else() {
    let pause = |facts: &Facts| {
        let mut facts = facts.clone();
        facts.cluster.as_mut().unwrap().paused = true;
        facts
    };
    for facts in [wanted(), deleting(wanted())] {
        let conditions = decide(&pause(&facts), now()).status.unwrap().conditions;
        let shown: Vec<(&str, &str)> = conditions.iter().map(|found| (found.type_.as_str(), found.status.as_str())).collect();
        assert_eq!(shown, [("Paused", "True"), ("Ready", "Unknown")]);
    }
    let mut before = held(ServerStatus::Deployed);
    before.object.status = decide(&before, now()).status;
    let without_pause = |status: Option<api::MaasMachineStatus>| {
        let mut status = status.unwrap();
        status.conditions.retain(|found| found.type_ != "Paused");
        status
    };
    assert_eq!(without_pause(decide(&pause(&before), seconds(9)).status), without_pause(before.object.status));
}
