//! Servers that joined their cluster before they were handed over.

use decisions::{
    Failure, FailureKind, Lookup, Server, ServerStatus,
    machine::{Facts, FailedStep, Learned, NodeFacts, Step, StepName, decide},
};

use super::facts::{SERVER, annotate, deleting, holding, id, now, provisioned, reason, server, wanted};

const ITS_OWN: &str = "maas:///az1/abc123";

fn with_node(facts: Facts, provider_id: Option<&str>) -> Facts {
    Facts { node: NodeFacts::Present { name: "node-7".to_owned(), provider_id: provider_id.map(str::to_owned) }, ..facts }
}

fn failed(mut facts: Facts, step: StepName) -> Facts {
    let failure = Failure { kind: FailureKind::Kubernetes, words: "no route".to_owned() };
    facts.failed = Some(FailedStep { step, server: None, failure, looked_since: false });
    facts
}

/// A server that failed, and of which it is written down that it goes back.
fn going_back() -> Facts {
    let mut facts = holding(wanted(), Lookup::Found(server(ServerStatus::FailedDeployment)));
    let Some(Step::Intend { intent, .. }) = decide(&facts, now()).step else { panic!("it is written down first") };
    annotate(&mut facts, &intent);
    facts.releasing.insert(id(SERVER), facts.recorded.clone().unwrap());
    facts
}

fn step(facts: &Facts) -> Option<StepName> {
    decide(facts, now()).step.map(|step| step.name())
}

#[test]
fn a_node_that_joins_while_its_server_is_installed_is_told_at_once_which_it_is() {
    let installing = || holding(wanted(), Lookup::Found(server(ServerStatus::Deploying)));
    let Some(Step::NameNode { node, provider_id }) = decide(&with_node(installing(), None), now()).step else { panic!() };
    assert_eq!((node.as_str(), provider_id.as_str()), ("node-7", ITS_OWN));
    for known in [ITS_OWN, "maas:///az1/other1"] {
        assert_eq!(step(&with_node(installing(), Some(known))), None, "what a node says of itself is never overwritten");
    }
    let plan = decide(&failed(with_node(installing(), None), StepName::NameNode), now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "MachineDeploying"), "it is told when it is handed over");
}

#[test]
fn a_server_is_handed_over_as_what_its_node_was_told() {
    let moved = Server { zone: "az2".to_owned(), ..server(ServerStatus::Deployed) };
    let handed_over = |node: Option<&str>| match decide(&with_node(holding(wanted(), Lookup::Found(moved.clone())), node), now()).step {
        Some(Step::Provision { provider_id }) => provider_id.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(handed_over(Some(ITS_OWN)), ITS_OWN);
    for other in [None, Some("maas:///az1/other1"), Some("of another kind")] {
        assert_eq!(handed_over(other), "maas:///az2/abc123", "{other:?}");
    }
}

#[test]
fn the_node_of_a_server_that_goes_back_before_it_was_handed_over_goes_first() {
    let deleted = || deleting(holding(wanted(), Lookup::Found(server(ServerStatus::Deploying))));
    for facts in [going_back(), deleted()] {
        let Some(Step::RemoveNode { node, provider_id }) = decide(&with_node(facts.clone(), Some(ITS_OWN)), now()).step else { panic!() };
        assert_eq!((node.as_str(), provider_id.as_str()), ("node-7", ITS_OWN));
        let mut gone = with_node(facts.clone(), Some(ITS_OWN));
        gone.learn(Learned::NodeGone);
        assert_eq!(step(&gone), Some(StepName::Release));
        let unheard = failed(with_node(facts, Some(ITS_OWN)), StepName::RemoveNode);
        assert_eq!(step(&unheard), Some(StepName::Release), "a cluster that cannot be told keeps no server from MAAS");
    }
}

#[test]
fn a_node_that_does_not_say_that_it_is_the_server_stays() {
    for other in [None, Some("maas:///az1/other1"), Some("of another kind")] {
        assert_eq!(step(&with_node(going_back(), other)), Some(StepName::Release), "{other:?}");
    }
    let handed_over = deleting(provisioned(holding(wanted(), Lookup::Found(server(ServerStatus::Deployed)))));
    assert_eq!(step(&with_node(handed_over, Some(ITS_OWN))), Some(StepName::Release), "Cluster API removes it by the id it has");
}

#[test]
fn the_node_of_one_server_is_not_taken_for_that_of_the_next() {
    let mut facts = with_node(going_back(), None);
    let mut object = facts.object.clone();
    object.spec.system_id = None;
    facts.learn(Learned::Object(Box::new(object)));
    assert_eq!(facts.node, NodeFacts::Unreachable);
}
