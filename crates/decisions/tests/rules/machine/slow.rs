//! A MAAS that takes its time.

use decisions::{
    Lookup, Server, ServerStatus,
    machine::{FRESH_FOR, Learned, Step, decide},
};

use super::facts::{SERVER, annotate, deleting, holding, id, now, reason, server, wanted};

#[test]
fn a_maas_that_shows_machines_too_late_to_act_on_them_is_told_instead_of_asked_for_ever() {
    let late = Server { read_at: now() - FRESH_FOR, ..server(ServerStatus::Allocated) };
    let held = holding(wanted(), Lookup::Found(late.clone()));
    for mut facts in [held.clone(), deleting(held)] {
        let mut looks = 0;
        let plan = loop {
            let plan = decide(&facts, now());
            match &plan.step {
                Some(Step::Look { server }) => {
                    looks += 1;
                    facts.learn(Learned::Looked(server.clone(), Box::new(Lookup::Found(late.clone()))));
                }
                Some(Step::Intend { intent, .. }) => {
                    annotate(&mut facts, intent);
                    facts.intent_is_fresh = true;
                }
                _ => break plan,
            }
            assert!(looks < 10, "it is looked for ever");
        };
        assert_eq!((plan.step.clone(), reason(&plan).as_str(), looks), (None, "MaasUnavailable", 3));
        // Once it answers in time, everything goes on.
        facts.looks_in_vain = 0;
        facts.learn(Learned::Looked(id(SERVER), Box::new(Lookup::Found(server(ServerStatus::Allocated)))));
        assert!(decide(&facts, now()).step.is_some());
    }
}
