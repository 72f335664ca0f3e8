//! From nothing to a machine that runs: allocations, deployments and attempts that fail.

use decisions::{
    Failure, FailureKind, Lookup, Server, ServerStatus,
    machine::{Bootstrap, Candidate, Facts, FailedStep, ImageCheck, LookAgain, Reason, Step, StepName, decide},
};
use serde_json::json;

use super::facts::{
    SERVER, annotate, deleting, failing, giving_back, held, holding, id, intending, message, now, provisioned, reason, seconds, server,
    step, wanted,
};

#[test]
fn an_intent_that_is_not_of_this_pass_is_written_anew_before_an_allocation() {
    let mut facts = intending(wanted());
    facts.intent_is_fresh = false;
    assert_eq!(step(&facts), Some(StepName::Intend));
    let late = decide(&intending(wanted()), seconds(21));
    assert_eq!(late.step.map(|step| step.name()), Some(StepName::Intend), "too late for what the intent announced");
}

#[test]
fn of_two_machines_the_recorded_one_stays_and_the_other_goes_back() {
    let mut facts = held(ServerStatus::Deployed);
    let other = Server { system_id: id("zzz999"), ..server(ServerStatus::Allocated) };
    facts.claimed = Lookup::Found(vec![server(ServerStatus::Deployed), other.clone()]);
    let Some(Step::Intend { intent, .. }) = decide(&facts, now()).step else { panic!() };
    assert_eq!(intent.releasing, [id("zzz999")]);
    annotate(&mut facts, &intent);
    facts.releasing.insert(id("zzz999"), Lookup::Found(other));
    let Some(Step::Release { server, .. }) = decide(&facts, now()).step else { panic!() };
    assert_eq!(server, id("zzz999"));
}

#[test]
fn no_match_is_told_with_what_was_asked_for_and_in_the_words_of_maas() {
    let mut facts = failing(intending(wanted()), StepName::Allocate, FailureKind::Conflict, "No available machine matches");
    facts.object.spec.provisioning_mode = Some(api::ProvisioningMode::BareMetal);
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "NoMatchingMachine"));
    assert_eq!(plan.look_again, LookAgain::AfterBackoff);
    let message = message(&plan);
    assert!(
        message.contains("4 CPUs") && message.contains("No available machine matches") && message.contains("Add machines"),
        "{message}"
    );
}

#[test]
fn whatever_keeps_a_machine_from_coming_is_told_with_what_to_do_about_it() {
    let mut unreadable = wanted();
    unreadable.bootstrap = Bootstrap::Unreadable { words: "Secret data is not there".to_owned() };
    let mut virtual_machine = wanted();
    virtual_machine.object.spec.provisioning_mode = Some(api::ProvisioningMode::Lxd);
    let mut impatient = failing(intending(wanted()), StepName::Allocate, FailureKind::Conflict, "none");
    impatient.object.spec.provisioning_mode = Some(api::ProvisioningMode::BareMetal);
    impatient.object.spec.provisioning = Some(serde_json::from_value(json!({"allocateTimeout": "0s"})).unwrap());
    let refused = failing(intending(wanted()), StepName::Allocate, FailureKind::Refused, "No such pool(s): nowhere");
    let mut image = wanted();
    image.image = ImageCheck::Absent { available: vec!["ubuntu/noble".to_owned()] };
    for (facts, expected) in [
        (&unreadable, Reason::BOOTSTRAP_UNREADABLE),
        (&virtual_machine, Reason::LXD_NOT_SUPPORTED),
        (&impatient, Reason::ALLOCATE_TIMEOUT),
        (&refused, Reason::ALLOCATE_REFUSED),
        (&image, Reason::IMAGE_NOT_FOUND),
    ] {
        let plan = decide(facts, now());
        assert_eq!(reason(&plan), expected.name);
        assert!(message(&plan).ends_with(expected.remedy), "{}: {}", expected.name, message(&plan));
    }
}

#[test]
fn ready_made_virtual_machines_serve_when_there_is_no_metal_and_metal_was_not_demanded() {
    let mut facts = failing(intending(wanted()), StepName::Allocate, FailureKind::Conflict, "none");
    assert_eq!(step(&facts), Some(StepName::ListCandidates));
    facts.candidates = Some(vec![Candidate { system_id: id("vm0001"), virtual_machine: true }]);
    let Some(Step::Allocate(allocation)) = decide(&facts, now()).step else { panic!() };
    assert_eq!(allocation.servers, [id("vm0001")]);
    facts.object.spec.provisioning_mode = Some(api::ProvisioningMode::BareMetal);
    assert_eq!(step(&facts), None);
}

#[test]
fn s17_a_machine_that_failed_is_noted_given_back_and_not_tried_again() {
    let mut failed = server(ServerStatus::FailedDeployment);
    failed.error = "no disk".to_owned();
    let facts = holding(wanted(), Lookup::Found(failed));
    let plan = decide(&facts, now());
    let Some(Step::Intend { intent, .. }) = plan.step.clone() else { panic!() };
    assert_eq!(intent.releasing, [id(SERVER)]);
    let status = plan.status.clone().unwrap();
    assert_eq!((status.attempts[0].system_id.as_str(), status.attempts[0].cause.as_str()), (SERVER, "no disk"));
    assert_eq!(reason(&plan), "TryingAnotherMachine");

    let mut next = intending(wanted());
    next.object.status = Some(status);
    assert_eq!(step(&next), Some(StepName::ListCandidates));
    let candidate = |name: &str| Candidate { system_id: id(name), virtual_machine: false };
    next.candidates = Some(vec![candidate(SERVER), candidate("def456"), candidate("ghi789")]);
    next.recent_failures.insert(id("def456"), "also bad".to_owned());
    let Some(Step::Allocate(allocation)) = decide(&next, now()).step else { panic!() };
    assert_eq!(allocation.servers, [id("ghi789")], "those that failed elsewhere are the last resort");
    next.candidates = Some(vec![candidate(SERVER), candidate("def456")]);
    let Some(Step::Allocate(allocation)) = decide(&next, now()).step else { panic!() };
    assert_eq!(allocation.servers, [id("def456")]);
    next.candidates = Some(vec![candidate(SERVER)]);
    assert_eq!(step(&next), None);
}

#[test]
fn s18_the_last_attempt_is_kept_for_an_administrator() {
    let mut facts = held(ServerStatus::FailedDeployment);
    facts.object.spec.provisioning = Some(api::Provisioning { attempts: Some(1), ..api::Provisioning::default() });
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MachineDeployFailed"));
    assert_eq!(step(&giving_back(facts)), Some(StepName::Release), "deleting gives it back all the same");
}

#[test]
fn a_deployment_that_takes_too_long_has_failed() {
    let mut facts = held(ServerStatus::Deploying);
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MachineDeploying"));
    facts.object.status = plan.status;
    let Some(Lookup::Found(server)) = &mut facts.recorded else { panic!() };
    server.read_at = seconds(3601);
    let plan = decide(&facts, seconds(3601));
    assert_eq!(reason(&plan), "TryingAnotherMachine");
    assert!(message(&plan).contains("not deployed within"), "{}", message(&plan));
}

#[test]
fn s10_a_deployed_machine_is_handed_over_once() {
    let facts = held(ServerStatus::Deployed);
    let Some(Step::Provision { provider_id }) = decide(&facts, now()).step else { panic!() };
    assert_eq!(provider_id.to_string(), format!("maas:///az1/{SERVER}"));
    let plan = decide(&provisioned(facts), now());
    assert_eq!(plan.step, None);
    let status = plan.status.unwrap();
    assert!(status.ready && status.initialization.unwrap().provisioned == Some(true));
    assert!(api::condition::is_true(&status.conditions, "Ready"));
}

#[test]
fn a_maas_that_breaks_at_every_allocation_is_told_in_its_words() {
    let facts = failing(intending(wanted()), StepName::Allocate, FailureKind::HalfDone, "MAAS failed at it: no such plugin");
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), plan.look_again), (None, LookAgain::AfterBackoff));
    assert!(message(&plan).contains("no such plugin"), "{}", message(&plan));
    assert!(plan.notes.iter().any(|note| note.warning), "{:?}", plan.notes);
}

#[test]
fn rights_that_are_missing_turn_a_wish_off_and_say_so() {
    let swap = Server { swap_off: false, ..server(ServerStatus::Allocated) };
    let mut facts = holding(wanted(), Lookup::Found(swap));
    assert_eq!(step(&facts), Some(StepName::Prepare));
    facts.account.as_mut().unwrap().administrator = false;
    let plan = decide(&facts, now());
    assert_eq!(plan.step.map(|step| step.name()), Some(StepName::Deploy));
    let conditions = plan.status.unwrap().conditions;
    assert_eq!(api::condition::find(&conditions, "MachinePrepared").unwrap().reason, "RightsMissing");

    let mut fixed = wanted();
    fixed.account.as_mut().unwrap().administrator = false;
    fixed.object.spec.static_ip = Some(api::StaticIp { ip: Some("10.0.0.9".to_owned()), ..api::StaticIp::default() });
    let plan = decide(&fixed, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "RightsMissing"), "nothing is allocated for a wish that cannot be met");
}

#[test]
fn a_deployment_that_conflicts_is_looked_at_before_the_machine_is_given_up() {
    let mut facts = held(ServerStatus::Allocated);
    let failure = Failure { kind: FailureKind::Conflict, words: "it is Deploying".to_owned() };
    facts.failed = Some(FailedStep { step: StepName::Deploy, server: Some(id(SERVER)), failure, looked_since: false });
    assert_eq!(step(&facts), Some(StepName::Look));
    facts.learn(decisions::machine::Learned::Looked(id(SERVER), Box::new(Lookup::Found(server(ServerStatus::Deploying)))));
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MachineDeploying"), "an earlier order was carried out");
    facts.learn(decisions::machine::Learned::Looked(id(SERVER), Box::new(Lookup::Found(server(ServerStatus::Allocated)))));
    assert_eq!(reason(&decide(&facts, now())), "TryingAnotherMachine");
}

#[test]
fn a_look_that_failed_does_not_hide_a_machine_that_is_known_by_its_agent_name_alone() {
    let mut facts = intending(wanted());
    let mut unmarked = server(ServerStatus::Allocated);
    unmarked.marks.clear();
    facts.claimed = Lookup::Found(vec![unmarked]);
    let down = Failure { kind: FailureKind::Unavailable, words: "down".to_owned() };
    facts.learn(decisions::machine::Learned::Looked(id(SERVER), Box::new(Lookup::Failed(down))));
    for facts in [facts.clone(), deleting(facts)] {
        assert_eq!(step(&facts), None, "neither another allocation nor the end");
    }
}

#[test]
fn a_secret_that_cannot_be_read_is_looked_for_again() {
    let facts = Facts { bootstrap: Bootstrap::Unreadable { words: "timeout".to_owned() }, ..wanted() };
    assert_eq!(decide(&facts, now()).look_again, LookAgain::AfterBackoff);
}

#[test]
fn bootstrap_data_that_maas_does_not_take_is_told_with_both_sizes_and_read_again_later_as_nobody_watches_secrets() {
    let with = |encoded_bytes, facts| Facts { bootstrap: Bootstrap::Present { encoded_bytes }, ..facts };
    for facts in [with(2_617_345, wanted()), with(2_617_345, held(ServerStatus::Allocated))] {
        let plan = decide(&facts, now());
        assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "BootstrapDataTooLarge"));
        assert_eq!(plan.look_again, LookAgain::AfterBackoff);
        let told = super::facts::message(&plan);
        assert!(told.contains("takes 2617345 bytes") && told.contains("takes 2617344.") && told.contains("fetch large files"), "{told}");
        assert!(plan.notes.iter().any(|note| note.warning && note.reason == "BootstrapDataTooLarge"), "{:?}", plan.notes);
    }
    assert!(decide(&with(2_617_344, wanted()), now()).step.is_some(), "the largest that MAAS takes");
}

#[test]
fn more_attempts_than_are_kept_still_come_to_an_end() {
    let mut facts = held(ServerStatus::FailedDeployment);
    facts.object.spec.provisioning = Some(api::Provisioning { attempts: Some(30), ..api::Provisioning::default() });
    facts.object.status = Some(api::MaasMachineStatus { attempt_count: Some(29), ..api::MaasMachineStatus::default() });
    assert_eq!(reason(&decide(&facts, now())), "MachineDeployFailed");
}

#[test]
fn a_failure_that_nobody_was_shown_before_the_process_ended_still_counts() {
    let mut failed = server(ServerStatus::FailedDeployment);
    failed.error = "no disk".to_owned();
    let mut facts = holding(wanted(), Lookup::Found(failed));
    let Some(Step::Intend { intent, .. }) = decide(&facts, now()).step else { panic!() };
    // From here on a new process, to which only the intent is left.
    annotate(&mut facts, &intent);
    facts.releasing.insert(id(SERVER), facts.recorded.clone().unwrap());
    let plan = decide(&facts, now());
    assert_eq!(plan.step.as_ref().map(Step::name), Some(StepName::Release));
    let attempts = plan.status.unwrap().attempts;
    assert_eq!((attempts[0].system_id.as_str(), attempts[0].cause.as_str()), (SERVER, "no disk"));

    let back = Lookup::Found(Server { owner: None, marks: std::collections::BTreeMap::new(), ..server(ServerStatus::Ready) });
    let back = Facts { recorded: Some(back.clone()), claimed: Lookup::Found(Vec::new()), releasing: [(id(SERVER), back)].into(), ..facts };
    let plan = decide(&back, now());
    assert_eq!(plan.step.as_ref().map(Step::name), Some(StepName::Forget));
    assert_eq!(plan.status.unwrap().attempt_count, Some(1), "also when the machine is back already");
}
