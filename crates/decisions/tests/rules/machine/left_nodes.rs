//! Nodes of servers that go back before they were handed over.

use std::collections::BTreeMap;

use decisions::{
    FailureKind, Lookup, Server,
    ServerStatus::{Allocated, DiskErasing, FailedDeployment, Ready, Releasing},
    machine::{Facts, NodeFacts, Step, StepName, decide},
};

use super::facts::{failing, giving_back, holding, now, provisioned, server, step, wanted};

/// A server that goes back, and the node of its name.
fn going_back(provider_id: Option<&str>, is_there: bool) -> Facts {
    with_node(giving_back(holding(wanted(), Lookup::Found(server(FailedDeployment)))), provider_id, is_there)
}

fn with_node(mut facts: Facts, provider_id: Option<&str>, is_there: bool) -> Facts {
    facts.node = NodeFacts::Present { name: "node-7".to_owned(), provider_id: provider_id.map(str::to_owned), is_there };
    facts
}

/// The same facts of an object that is wanted and gets another server.
fn wanted_still(mut facts: Facts) -> Facts {
    facts.object.metadata.deletion_timestamp = None;
    facts
}

/// A server that went back, and is nobody's.
fn gone_back() -> Facts {
    let nobodys = Server { owner: None, marks: BTreeMap::new(), ..server(Ready) };
    let mut facts = giving_back(holding(wanted(), Lookup::Found(nobodys)));
    facts.claimed = Lookup::Found(Vec::new());
    facts
}

#[test]
fn a_node_where_the_server_is_goes_before_the_server_does() {
    for id in [None, Some("maas:///az1/abc123")] {
        let Some(Step::RemoveNode { node, provider_id }) = decide(&going_back(id, true), now()).step else { panic!("{id:?}") };
        assert_eq!((node.as_str(), provider_id.as_deref()), ("node-7", id));
    }
}

#[test]
fn a_node_that_may_be_another_machines_stays() {
    for (id, is_there) in
        [(None, false), (Some("maas:///az1/abc123"), false), (Some("maas:///az1/other"), true), (Some("cloud:///7"), true)]
    {
        assert_eq!(step(&going_back(id, is_there)), Some(StepName::Release), "{id:?} {is_there}");
    }
    assert_eq!(step(&provisioned(going_back(None, true))), Some(StepName::Release), "Cluster API sees to it");
}

#[test]
fn a_node_that_cannot_be_removed_keeps_no_server() {
    let facts = failing(going_back(None, true), StepName::RemoveNode, FailureKind::Kubernetes, "it did not answer");
    assert_eq!(step(&facts), Some(StepName::Release));
    for node in [NodeFacts::Unreachable, NodeFacts::Absent] {
        assert_eq!(step(&Facts { node, ..going_back(None, true) }), Some(StepName::Release));
    }
}

#[test]
fn the_node_of_a_server_that_stays_is_left_alone() {
    let mut facts = holding(wanted(), Lookup::Found(server(Allocated)));
    facts.node = NodeFacts::Present { name: "node-7".to_owned(), provider_id: None, is_there: true };
    assert_eq!(step(&facts), Some(StepName::Deploy));
}

#[test]
fn a_node_that_joins_while_its_server_goes_is_removed_too() {
    let deleted = |status| giving_back(holding(wanted(), Lookup::Found(server(status))));
    for facts in [Releasing, DiskErasing].into_iter().flat_map(|status| [deleted(status), wanted_still(deleted(status))]) {
        assert_eq!(step(&facts), None, "MAAS is at it");
        assert_eq!(step(&with_node(facts.clone(), None, true)), Some(StepName::RemoveNode));
        assert_eq!(step(&with_node(facts.clone(), None, false)), None, "it may be another machine's");
        let tried = failing(with_node(facts, None, true), StepName::RemoveNode, FailureKind::Kubernetes, "it did not answer");
        assert_eq!(step(&tried), None, "it is tried again when it is looked again");
    }
}

#[test]
fn a_node_that_joined_at_the_last_moment_is_removed_when_its_server_is_nobodys() {
    for (facts, then) in [(wanted_still(gone_back()), StepName::Forget), (gone_back(), StepName::RemoveFinalizer)] {
        assert_eq!(step(&facts), Some(then));
        let joined = with_node(facts.clone(), None, true);
        assert_eq!(step(&joined), Some(StepName::RemoveNode));
        assert_eq!(step(&with_node(facts, None, false)), Some(then), "it may be another machine's");
        let tried = failing(joined, StepName::RemoveNode, FailureKind::Kubernetes, "it did not answer");
        assert_eq!(step(&tried), Some(then), "nothing waits for a cluster that does not answer");
    }
}
