//! A MaasMachine and everything around it as it is in the middle of a good day; each test changes what it is about.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    Claim, Intent, MaasMachine, MaasMachineSpec, SystemId,
    cluster_api::{Cluster, Machine},
    names,
};
use decisions::{
    Failure, FailureKind, Lookup, Power, Server, ServerStatus,
    machine::{AccountFacts, Bootstrap, Facts, FailedStep, ImageCheck, NodeFacts, Plan, StepName, decide},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

pub const US: &str = "kubernetes";
pub const SERVER: &str = "abc123";

pub fn now() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().unwrap()
}

pub fn seconds(seconds: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() + seconds).unwrap()
}

pub fn claim() -> Claim {
    Claim::from_random(7)
}

/// An object that is owned, with all gates open, and no server.
pub fn wanted() -> Facts {
    let metadata = ObjectMeta {
        namespace: Some("rack".to_owned()),
        name: Some("one".to_owned()),
        resource_version: Some("41".to_owned()),
        generation: Some(1),
        labels: Some(BTreeMap::from([(names::CLUSTER_NAME.to_owned(), "c1".to_owned())])),
        ..ObjectMeta::default()
    };
    let spec = MaasMachineSpec { min_cpu: Some(4), min_memory: Some(8192), image: "ubuntu/jammy".to_owned(), ..MaasMachineSpec::default() };
    let cluster = Cluster { infrastructure_provisioned: true, ..Cluster::default() };
    Facts {
        object: MaasMachine { metadata, spec, status: None },
        machine: Some(Machine { cluster_name: "c1".to_owned(), ..Machine::default() }),
        cluster: Some(cluster),
        maas_cluster: None,
        bootstrap: Bootstrap::Present { encoded_bytes: 100 },
        account: Ok(AccountFacts { host: "maas".to_owned(), user: US.to_owned(), administrator: true }),
        management_cluster: "uid".to_owned(),
        recorded: None,
        claimed: Lookup::Found(Vec::new()),
        releasing: BTreeMap::new(),
        image: ImageCheck::Present,
        recent_failures: BTreeMap::new(),
        candidates: None,
        power_now: None,
        powered_on: false,
        node: NodeFacts::Unreachable,
        published: BTreeSet::new(),
        shown: None,
        writer: "me".to_owned(),
        fresh_claim: claim(),
        intent_is_fresh: false,
        unanswered_until: None,
        looks_in_vain: 0,
        not_unlinked: BTreeMap::new(),
        address_refused: None,
        address_claim: Box::new(Lookup::Outdated),
        pooled: BTreeMap::new(),
        failed: None,
    }
}

pub fn server(status: ServerStatus) -> Server {
    Server {
        system_id: SERVER.into(),
        hostname: "node-7".to_owned(),
        fqdn: "node-7.maas".to_owned(),
        status,
        status_message: String::new(),
        error: String::new(),
        owner: Some(US.to_owned()),
        marks: BTreeMap::from([("metalshift-claim".to_owned(), claim().to_string())]),
        power: Power::On,
        zone: "az1".to_owned(),
        pool: "default".to_owned(),
        vm_host: None,
        locked: false,
        in_memory: false,
        swap_off: true,
        architecture: "amd64/generic".to_owned(),
        addresses: vec!["10.0.0.7".parse().unwrap()],
        interfaces: Vec::new(),
        read_at: now(),
    }
}

/// The same with an intent of a moment ago, written in this pass.
pub fn intending(mut facts: Facts) -> Facts {
    let intent = Intent { since: Some(now()), maas: Some("maas".to_owned()), ..Intent::new(claim(), &facts.object.metadata) };
    annotate(&mut facts, &intent);
    facts.intent_is_fresh = true;
    facts
}

pub fn annotate(facts: &mut Facts, intent: &Intent) {
    let annotations = facts.object.metadata.annotations.get_or_insert_default();
    annotations.insert(names::CLAIM.to_owned(), intent.to_annotation());
    facts.object.metadata.finalizers = Some(vec![names::FINALIZER_MACHINE.to_owned()]);
}

/// The same with this server on record.
pub fn holding(facts: Facts, server: Lookup<Server>) -> Facts {
    let mut facts = intending(facts);
    facts.object.spec.system_id = Some(SERVER.to_owned());
    facts.claimed = Lookup::Found(server.found().cloned().into_iter().collect());
    facts.recorded = Some(server);
    facts
}

pub fn provisioned(mut facts: Facts) -> Facts {
    facts.object.spec.provider_id = Some(format!("maas:///az1/{SERVER}"));
    facts
}

pub fn deleting(mut facts: Facts) -> Facts {
    facts.object.metadata.deletion_timestamp = Some(Time(now()));
    facts
}

/// The same when it is on record that its server goes back.
pub fn giving_back(facts: Facts) -> Facts {
    let mut facts = deleting(facts);
    let mut intent = facts.intent().unwrap();
    intent.releasing.push(SERVER.into());
    annotate(&mut facts, &intent);
    facts.releasing = facts.recorded.iter().map(|lookup| (SERVER.into(), lookup.clone())).collect();
    facts
}

pub fn id(text: &str) -> SystemId {
    text.into()
}

/// Why the machine does not run, in one word.
pub fn reason(plan: &Plan) -> String {
    let conditions = plan.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    api::condition::find(conditions, "MachineDeployed").map(|condition| condition.reason.clone()).unwrap_or_default()
}

/// The next step.
pub fn step(facts: &Facts) -> Option<StepName> {
    decide(facts, now()).step.map(|step| step.name())
}

/// What people are told of the machine.
pub fn message(plan: &Plan) -> String {
    let conditions = plan.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    api::condition::find(conditions, "MachineDeployed").map(|condition| condition.message.clone()).unwrap_or_default()
}

/// The same when this step has just failed so.
pub fn failing(mut facts: Facts, step: StepName, kind: FailureKind, words: &str) -> Facts {
    facts.failed = Some(FailedStep { step, server: None, failure: Failure { kind, words: words.to_owned() }, looked_since: false });
    facts
}

/// A wanted object with its server in this state.
pub fn held(status: ServerStatus) -> Facts {
    holding(wanted(), Lookup::Found(server(status)))
}
