//! A machine that was handed over: what happens to it, its power and its node, and what is shown while MAAS is away.

use decisions::{
    Failure, FailureKind, Lookup, Power, Server, ServerStatus,
    machine::{Facts, NodeFacts, StepName, decide},
};

use super::facts::{deleting, failing, held, holding, now, provisioned, reason, seconds, server, step, wanted};

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
fn s19_s20_row_70_a_machine_in_use_that_is_taken_away_is_never_replaced_under_the_same_object() {
    let released = Server { owner: None, marks: std::collections::BTreeMap::new(), ..server(ServerStatus::Ready) };
    for (lookup, expected) in
        [(Lookup::Missing, "MachineNotFound"), (Lookup::Found(released), "MachineTakenAway"), (Lookup::Forbidden, "MachineHidden")]
    {
        let plan = decide(&provisioned(holding(wanted(), lookup)), now());
        assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, expected));
        let status = plan.status.unwrap();
        assert!(!status.ready);
        assert_eq!(api::condition::find(&status.conditions, "MachineDeployed").unwrap().status, "False");
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
fn a_node_that_cannot_be_told_which_machine_it_is_is_no_secret() {
    let node = NodeFacts::Present { name: "node-7".to_owned(), provider_id: None, is_there: true };
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
        let node = NodeFacts::Present { name: "node-7".to_owned(), provider_id: provider_id.map(str::to_owned), is_there: true };
        Facts { node, ..provisioned(held(ServerStatus::Deployed)) }
    };
    assert_eq!(step(&named(None)), Some(StepName::NameNode));
    assert_eq!(step(&named(Some("maas:///az1/abc123"))), None);
    let plan = decide(&named(Some("maas:///az1/other1")), now());
    assert_eq!(plan.step, None, "what a node says of itself is never overwritten");
    assert!(api::condition::find(&plan.status.unwrap().conditions, "NodeProviderIDSet").unwrap().message.contains("other1"));
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
fn what_answers_in_the_place_of_maas_is_told_and_nothing_is_done() {
    for kind in [FailureKind::NotMaas, FailureKind::Gone] {
        let mut facts = provisioned(held(ServerStatus::Deployed));
        facts.account = Err(Failure { kind, words: "it answered <html>".to_owned() });
        let plan = decide(&facts, now());
        let told = api::condition::find(&plan.status.as_ref().unwrap().conditions, "MaasAvailable").unwrap().clone();
        assert_eq!((plan.step, told.status.as_str(), told.reason.as_str()), (None, "False", "NotMaas"), "{kind:?}");
        assert!(told.message.contains("<html>"), "{}", told.message);
    }
}
