//! Objects of another provider, copies, and credentials that lead elsewhere.

use api::{Intent, names};
use decisions::{
    Lookup, ServerStatus,
    machine::{Step, StepName, decide},
};

use super::facts::{SERVER, annotate, deleting, held, holding, id, now, provisioned, reason, server, step, wanted};

#[test]
fn an_id_that_cannot_be_read_is_told_and_neither_asked_for_nor_let_go() {
    let mut facts = provisioned(wanted());
    facts.object.spec.provider_id = Some("aws:///somewhere".to_owned());
    facts.object.spec.system_id = None;
    facts.object.metadata.finalizers = Some(vec![names::FINALIZER_MACHINE.to_owned()]);
    for facts in [facts.clone(), deleting(facts)] {
        let plan = decide(&facts, now());
        assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "ProviderIDUnreadable"));
    }
}

#[test]
fn an_object_of_another_provider_is_claimed_and_its_machine_marked_before_anything_else() {
    let mut facts = wanted();
    facts.object.spec.system_id = Some(SERVER.to_owned());
    facts.object.spec.provider_id = Some(format!("maas:///az1/{SERVER}"));
    facts.claimed = Lookup::Missing;
    let mut unmarked = server(ServerStatus::Deployed);
    unmarked.marks.clear();
    facts.recorded = Some(Lookup::Found(unmarked));
    let Some(Step::Intend { intent, .. }) = decide(&facts, now()).step else { panic!() };
    assert_eq!(intent.adopting, Some(id(SERVER)));
    annotate(&mut facts, &intent);
    facts.intent_is_fresh = true;
    assert_eq!(step(&facts), Some(StepName::Mark));
    facts.recorded = Some(Lookup::Found(server(ServerStatus::Deployed)));
    assert_eq!(step(&facts), Some(StepName::Record));
    annotate(&mut facts, &Intent { adopting: None, ..intent });
    assert_eq!(step(&facts), None);
}

#[test]
fn a_copied_manifest_does_not_get_the_machine_of_the_original() {
    let mut facts = held(ServerStatus::Deployed);
    facts.object.metadata.name = Some("copy".to_owned());
    facts.object.metadata.finalizers = None;
    facts.claimed = Lookup::Missing;
    let plan = decide(&provisioned(facts), now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MachineForeign"));
}

#[test]
fn another_maas_under_the_same_credentials_says_nothing_about_the_machine() {
    let mut facts = deleting(holding(wanted(), Lookup::Missing));
    facts.account.as_mut().unwrap().host = "elsewhere".to_owned();
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "OtherMaas"));
}

#[test]
fn another_user_of_the_same_maas_says_nothing_about_the_machine_either() {
    let mut facts = deleting(held(ServerStatus::Deployed));
    let intent = Intent { user: Some("kubernetes".to_owned()), ..facts.intent().unwrap() };
    annotate(&mut facts, &intent);
    facts.account.as_mut().unwrap().user = "somebody".to_owned();
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "OtherMaas"));
}
