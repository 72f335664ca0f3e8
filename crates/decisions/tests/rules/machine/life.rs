//! The life of a machine, rule by rule.

use api::{Intent, names};
use decisions::{
    Failure, FailureKind, Lookup, Power, Server, ServerStatus,
    machine::{Bootstrap, Candidate, Facts, FailedStep, LookAgain, NodeFacts, Plan, Step, StepName, decide},
};

use super::facts::{SERVER, annotate, deleting, holding, id, intending, now, provisioned, reason, seconds, server, wanted};

fn step(facts: &Facts) -> Option<StepName> {
    decide(facts, now()).step.map(|step| step.name())
}

fn message(plan: &Plan) -> String {
    let conditions = plan.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    api::condition::find(conditions, "MachineDeployed").map(|condition| condition.message.clone()).unwrap_or_default()
}

fn failing(mut facts: Facts, step: StepName, kind: FailureKind, words: &str) -> Facts {
    facts.failed = Some(FailedStep { step, server: None, failure: Failure { kind, words: words.to_owned() }, looked_since: false });
    facts
}

fn held(status: ServerStatus) -> Facts {
    holding(wanted(), Lookup::Found(server(status)))
}

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
    assert_eq!(step(&deleting(facts)), Some(StepName::Release), "deleting gives it back all the same");
}

#[test]
fn an_outage_is_the_same_news_at_every_look() {
    let down = |words: &str| Lookup::Failed(Failure { kind: FailureKind::Unavailable, words: words.to_owned() });
    let refused = || down("connection refused");
    for facts in [holding(wanted(), refused()), provisioned(holding(wanted(), refused())), deleting(holding(wanted(), refused()))] {
        let first = decide(&facts, now()).status;
        let mut later = facts;
        later.object.status.clone_from(&first);
        later.recorded = Some(down("no answer within 30 s"));
        assert_eq!(decide(&later, seconds(60)).status, first);
    }
}

#[test]
fn a_release_that_maas_failed_at_is_ordered_again_after_as_long_as_it_was_tried() {
    let mut facts = deleting(held(ServerStatus::ReleasingFailed));
    let Some(Lookup::Found(server)) = &mut facts.recorded else { panic!() };
    server.error = "no route to host".to_owned();
    // The first order of its phase was a moment ago.
    facts.intent_is_fresh = false;
    let plan = decide(&facts, seconds(1));
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MachineReleaseFailed"));
    assert!(message(&plan).contains("no route to host") && message(&plan).contains("told again by itself"), "{}", message(&plan));
    assert_eq!(plan.look_again, LookAgain::After(std::time::Duration::from_secs(14)));
    assert_eq!(decide(&facts, seconds(15)).step.map(|step| step.name()), Some(StepName::Intend));
    // The same order at the end of a minute of them.
    facts.object.status = plan.status;
    facts.object.status.as_mut().unwrap().phase_since = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(seconds(-60)));
    assert_eq!(decide(&facts, seconds(59)).step, None);
    assert_eq!(decide(&facts, seconds(60)).step.map(|step| step.name()), Some(StepName::Intend));
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
fn s19_s20_row_70_a_machine_in_use_that_is_taken_away_is_never_replaced_under_the_same_object() {
    let released = Server { owner: None, marks: std::collections::BTreeMap::new(), ..server(ServerStatus::Ready) };
    for (lookup, expected) in
        [(Lookup::Missing, "MachineNotFound"), (Lookup::Found(released), "MachineTakenAway"), (Lookup::Forbidden, "MachineHidden")]
    {
        let plan = decide(&provisioned(holding(wanted(), lookup)), now());
        assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, expected));
        let status = plan.status.unwrap();
        assert!(!status.ready);
        assert!(message_names_a_next_step(&status.conditions));
    }
}

fn message_names_a_next_step(conditions: &[api::condition::Condition]) -> bool {
    api::condition::find(conditions, "Ready").is_some_and(|ready| ready.message.contains("elete the Machine"))
}

#[test]
fn s21_only_a_power_controller_that_says_off_leads_to_switching_on() {
    let off = Server { power: Power::Off, ..server(ServerStatus::Deployed) };
    let mut facts = provisioned(holding(wanted(), Lookup::Found(off.clone())));
    assert_eq!(step(&facts), Some(StepName::QueryPower));
    facts.power_now = Some(Power::Unclear);
    assert_eq!(step(&facts), None);
    facts.power_now = Some(Power::On);
    assert_eq!(step(&facts), None);
    facts.power_now = Some(Power::Off);
    assert_eq!(step(&facts), Some(StepName::PowerOn));
    facts.recorded = Some(Lookup::Found(Server { in_memory: true, ..off }));
    assert_eq!(step(&facts), None, "a machine that ran in memory would be installed anew");
    let unclear = Server { power: Power::Unclear, ..server(ServerStatus::Deployed) };
    let facts = provisioned(holding(wanted(), Lookup::Found(unclear)));
    assert_eq!(step(&facts), None, "what MAAS cannot tell is no reason to restart a node");
}

#[test]
fn an_order_to_switch_on_that_nobody_answered_is_not_repeated_at_the_next_event() {
    let off = Server { power: Power::Off, ..server(ServerStatus::Deployed) };
    let mut facts = provisioned(holding(wanted(), Lookup::Found(off)));
    facts.power_now = Some(Power::Off);
    let unanswered = failing(facts.clone(), StepName::PowerOn, FailureKind::Unknown, "connection reset");
    facts.object.status = decide(&unanswered, now()).status;
    facts.intent_is_fresh = false;
    assert_eq!(decide(&facts, seconds(2)).step, None);
    let Some(Lookup::Found(server)) = &mut facts.recorded else { panic!() };
    server.read_at = seconds(120);
    assert_eq!(decide(&facts, seconds(120)).step.map(|step| step.name()), Some(StepName::Intend));
}

#[test]
fn a_machine_that_is_not_ours_to_release_is_told_before_the_object_goes() {
    let unmarked = Server { marks: std::collections::BTreeMap::new(), ..server(ServerStatus::Deployed) };
    let mut facts = deleting(provisioned(holding(wanted(), Lookup::Found(unmarked))));
    facts.claimed = Lookup::Found(Vec::new());
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MachineLeftAlone"));
    assert!(plan.notes.iter().any(|note| note.warning && note.message.contains(SERVER)), "{:?}", plan.notes);
    facts.object.status = plan.status;
    assert_eq!(step(&facts), Some(StepName::RemoveFinalizer));
}

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
fn a_virtual_machine_that_was_composed_by_another_provider_is_not_released() {
    let mut facts = deleting(provisioned(held(ServerStatus::Deployed)));
    facts.object.spec.lxd = Some(api::Lxd { enabled: Some(true), ..api::Lxd::default() });
    assert_eq!(step(&facts), Some(StepName::Release), "metal goes back, whatever the object says by now");
    let Some(Lookup::Found(server)) = &mut facts.recorded else { panic!("it is held") };
    server.vm_host = Some("host".to_owned());
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "LXDNotSupported"));
    (facts.recorded, facts.claimed) = (Some(Lookup::Missing), Lookup::Found(Vec::new()));
    assert_eq!(step(&facts), Some(StepName::RemoveFinalizer), "it was deleted in MAAS");
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
fn a_node_that_cannot_be_told_which_machine_it_is_is_no_secret() {
    let node = NodeFacts::Present { name: "node-7".to_owned(), provider_id: None };
    let facts = Facts { node, ..provisioned(held(ServerStatus::Deployed)) };
    let plan = decide(&failing(facts, StepName::NameNode, FailureKind::Kubernetes, "nodes is forbidden"), now());
    let conditions = plan.status.unwrap().conditions;
    let named = api::condition::find(&conditions, "NodeProviderIDSet").unwrap();
    assert_eq!((named.status.as_str(), named.reason.as_str()), ("False", "NodeProviderUpdateFailed"));
    assert!(named.message.contains("nodes is forbidden") && api::condition::is_true(&conditions, "Ready"));
}

#[test]
fn s22_a_node_is_told_which_machine_it_is_unless_it_knows() {
    let named = |provider_id: Option<&str>| {
        let node = NodeFacts::Present { name: "node-7".to_owned(), provider_id: provider_id.map(str::to_owned) };
        Facts { node, ..provisioned(held(ServerStatus::Deployed)) }
    };
    assert_eq!(step(&named(None)), Some(StepName::NameNode));
    assert_eq!(step(&named(Some("maas:///az1/abc123"))), None);
    let plan = decide(&named(Some("maas:///az1/other1")), now());
    assert_eq!(plan.step, None, "what a node says of itself is never overwritten");
    assert!(api::condition::find(&plan.status.unwrap().conditions, "NodeProviderIDSet").unwrap().message.contains("other1"));
}

#[test]
fn s24_deleting_what_was_never_asked_for_is_instant() {
    let mut facts = deleting(wanted());
    facts.object.metadata.finalizers = Some(vec![names::FINALIZER_MACHINE.to_owned()]);
    assert!(!facts.concerns_maas());
    assert_eq!(step(&facts), Some(StepName::RemoveFinalizer));
}

#[test]
fn s23_a_control_plane_address_leaves_the_endpoint_before_the_machine_is_released() {
    let mut facts = deleting(held(ServerStatus::Deployed));
    facts.object.metadata.labels.get_or_insert_default().insert(names::CONTROL_PLANE.to_owned(), String::new());
    let network = api::ClusterNetworkStatus { dns_name: Some("c1.maas".to_owned()), ..api::ClusterNetworkStatus::default() };
    let status = api::MaasClusterStatus { network: Some(network), ..api::MaasClusterStatus::default() };
    facts.maas_cluster = Some(api::MaasCluster { status: Some(status), ..api::MaasCluster::default() });
    facts.published.insert("10.0.0.7".to_owned());
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "DNSDetachPending"));
    facts.published.clear();
    assert_eq!(step(&facts), Some(StepName::Release));
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
fn while_maas_is_away_a_running_machine_stays_as_it_was_shown() {
    let facts = provisioned(held(ServerStatus::Deployed));
    let ready = decide(&facts, now()).status;
    let mut away = facts;
    away.object.status = ready;
    away.account = Err(Failure { kind: FailureKind::Unavailable, words: "no answer".to_owned() });
    let plan = decide(&away, now());
    assert_eq!(plan.step, None);
    let conditions = plan.status.unwrap().conditions;
    assert!(api::condition::is_true(&conditions, "Ready"));
    assert!(!api::condition::is_true(&conditions, "MaasAvailable"));
}

#[test]
fn row_31_the_same_facts_at_another_time_are_the_same_status() {
    let mut facts = provisioned(held(ServerStatus::Deployed));
    facts.object.status = decide(&facts, now()).status;
    let later = decide(&facts, seconds(8));
    assert_eq!(later.status, facts.object.status);
    assert_eq!(later.notes, []);
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
fn another_user_of_the_same_maas_says_nothing_about_the_machine_either() {
    let mut facts = deleting(held(ServerStatus::Deployed));
    let intent = Intent { user: Some("kubernetes".to_owned()), ..facts.intent().unwrap() };
    annotate(&mut facts, &intent);
    facts.account.as_mut().unwrap().user = "somebody".to_owned();
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "OtherMaas"));
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
fn a_machine_that_could_not_be_marked_keeps_its_object() {
    let mut facts = deleting(holding(wanted(), Lookup::Missing));
    let mut extra = Server { system_id: id("zzz999"), ..server(ServerStatus::Allocated) };
    extra.marks.clear();
    facts.claimed = Lookup::Found(vec![extra]);
    let failure = Failure { kind: FailureKind::NotPermitted, words: "locked".to_owned() };
    facts.failed = Some(FailedStep { step: StepName::Mark, server: Some(id("zzz999")), failure, looked_since: false });
    assert_eq!(step(&facts), None);
}

#[test]
fn a_secret_that_cannot_be_read_is_looked_for_again() {
    let facts = Facts { bootstrap: Bootstrap::Unreadable { words: "timeout".to_owned() }, ..wanted() };
    assert_eq!(decide(&facts, now()).look_again, LookAgain::AfterBackoff);
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
