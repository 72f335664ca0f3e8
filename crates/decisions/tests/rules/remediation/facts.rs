//! A `MaasRemediation` of a machine that runs and whose health check failed; each test changes what it is about.

use api::{Intent, MaasMachine, MaasRemediation, cluster_api::Cluster, cluster_api::Machine, condition, names};
use decisions::{
    Failure, FailureKind, Lookup, Server, ServerStatus,
    machine::AccountFacts,
    remediation::{Facts, FailedStep, Learned, Ordered, Plan, Step, StepName, decide},
};
use jiff::Timestamp;
use serde_json::{Value, json};

pub use crate::machine::facts::{SERVER, US, claim, now, seconds, server as machine_server};

/// An intent of long ago: whatever was told then has happened.
const LONG_AGO: i64 = -86_400;

pub fn server() -> Server {
    machine_server(ServerStatus::Deployed)
}

pub fn unhealthy() -> Facts {
    let object = json!({"apiVersion": names::API_VERSION, "kind": "MaasRemediation", "spec": {},
        "metadata": {"name": "one", "namespace": "rack", "resourceVersion": "7", "generation": 1, "creationTimestamp": now()}});
    let machine = json!({"metadata": {"name": "one", "namespace": "rack"},
        "spec": {"clusterName": "c1", "infrastructureRef": {"apiGroup": names::GROUP, "kind": "MaasMachine", "name": "one"}}});
    let ours = json!({"apiVersion": names::API_VERSION, "kind": "MaasMachine", "metadata": {"name": "one", "namespace": "rack"},
        "spec": {"image": "ubuntu/noble", "minCPU": 1, "minMemory": 1, "systemID": SERVER, "providerID": format!("maas:///az1/{SERVER}")}});
    let mut facts = Facts {
        object: serde_json::from_value::<MaasRemediation>(object).unwrap(),
        machine: Some(serde_json::from_value::<Machine>(machine).unwrap()),
        cluster: Some(Cluster::default()),
        maas_machine: Some(serde_json::from_value::<MaasMachine>(ours).unwrap()),
        account: Ok(AccountFacts { host: "maas".to_owned(), user: US.to_owned(), administrator: true }),
        server: Lookup::Found(server()),
        has_our_agent_name: true,
        power_now: None,
        intent_is_fresh: false,
        before_attempt: None,
        ordered: None,
        shown: None,
        writer: format!("{}1", decisions::remediation::WRITER),
        failed: None,
    };
    intend(&mut facts, seconds(LONG_AGO));
    says(&mut facts, Machine::HEALTH_CHECK_SUCCEEDED, "False", LONG_AGO);
    facts
}

/// The MaasMachine says that MAAS was told something at this time.
pub fn intend(facts: &mut Facts, since: Timestamp) {
    let ours = facts.maas_machine.as_mut().unwrap();
    let intent = Intent { since: Some(since), writer: Some("machines".to_owned()), ..Intent::new(claim(), &ours.metadata) };
    ours.metadata.annotations.get_or_insert_default().insert(names::CLAIM.to_owned(), intent.to_annotation());
}

/// A condition of the Machine.
pub fn says(facts: &mut Facts, kind: &str, status: &str, since: i64) {
    let condition = json!({"type": kind, "status": status, "reason": "R", "message": "", "lastTransitionTime": seconds(since)});
    let machine = facts.machine.as_mut().unwrap();
    machine.conditions.retain(|condition| condition.type_ != kind);
    machine.conditions.push(serde_json::from_value(condition).unwrap());
}

pub fn strategy(facts: &mut Facts, strategy: &Value) {
    facts.object.spec = serde_json::from_value(json!({"strategy": strategy})).unwrap();
}

/// What MAAS answers when it is told or asked something.
pub type Answer = fn(&Step) -> Result<Learned, FailureKind>;

#[expect(clippy::unnecessary_wraps, reason = "it is one of several answers")]
pub fn does_it(step: &Step) -> Result<Learned, FailureKind> {
    Ok(match step {
        Step::PowerOff { .. } => Learned::Ordered(Ordered::Off),
        Step::PowerOn { .. } => Learned::Ordered(Ordered::On),
        Step::QueryPower { .. } => Learned::Power(decisions::Power::Off),
        _ => panic!("not for MAAS: {step:?}"),
    })
}

/// The same of a server that is still on when it is asked.
pub fn goes_off_slowly(step: &Step) -> Result<Learned, FailureKind> {
    match step {
        Step::QueryPower { .. } => Ok(Learned::Power(decisions::Power::On)),
        _ => does_it(step),
    }
}

/// One pass as the manager makes it: the steps that were taken, and the plan at the end. What is shown is kept.
pub fn pass(facts: &mut Facts, at: Timestamp, answer: impl Fn(&Step) -> Result<Learned, FailureKind>) -> (Vec<StepName>, Plan) {
    facts.intent_is_fresh = false;
    (facts.before_attempt, facts.ordered, facts.power_now, facts.failed, facts.shown) = (None, None, None, None, None);
    if let Lookup::Found(server) = &mut facts.server {
        server.read_at = at;
    }
    let mut taken = Vec::new();
    loop {
        let plan = decide(facts, at);
        facts.shown.clone_from(&plan.status);
        let Some(step) = plan.step.clone() else {
            facts.object.status.clone_from(&plan.status);
            return (taken, plan);
        };
        taken.push(step.name());
        assert!(taken.len() < 12, "{taken:?}");
        let learned = match &step {
            Step::Begin => {
                let mut object = facts.object.clone();
                object.status.clone_from(&plan.status);
                Ok(Learned::Begun(Box::new(object)))
            }
            Step::Intend { intent } => {
                let mut ours = facts.maas_machine.clone().unwrap();
                ours.metadata.annotations.get_or_insert_default().insert(names::CLAIM.to_owned(), intent.to_annotation());
                Ok(Learned::Intent(Box::new(ours)))
            }
            Step::HandOver { .. } => Ok(Learned::HandedOver),
            Step::Look { .. } => Ok(Learned::Looked(Box::new(facts.server.clone()))),
            Step::QueryPower { .. } | Step::PowerOff { .. } | Step::PowerOn { .. } => answer(&step),
        };
        match learned {
            Ok(learned) => facts.learn(learned),
            Err(kind) => {
                let failure = Failure { kind, words: "the BMC said no".to_owned() };
                facts.failed = Some(FailedStep { step: step.name(), failure });
            }
        }
    }
}

/// Phase, number of attempts and reason.
pub fn shown(plan: &Plan) -> (String, u32, String) {
    let status = plan.status.clone().unwrap();
    let reason = condition::find(&status.conditions, "Remediated").map(|condition| condition.reason.clone()).unwrap_or_default();
    (status.phase.map(|phase| format!("{phase:?}")).unwrap_or_default(), status.attempts.unwrap_or_default(), reason)
}

pub fn message(plan: &Plan) -> String {
    let status = plan.status.clone().unwrap();
    condition::find(&status.conditions, "Remediated").map(|condition| condition.message.clone()).unwrap_or_default()
}

pub fn is(phase: &str, attempts: u32, reason: &str) -> (String, u32, String) {
    (phase.to_owned(), attempts, reason.to_owned())
}
