//! Takes one step and tells what it brought to light. No rule is in here: what a failure means is decided elsewhere.

use api::{Intent, MaasMachine, names};
use decisions::{
    Failure, FailureKind,
    remediation::{Learned, Ordered, Step},
};
use jiff::Timestamp;
use kube::ResourceExt;
use maas_client::PowerOff;
use serde_json::json;

use super::{Hands, hand_over::hand_over, observe::Observed};
use crate::{
    failure, guarded,
    machine::{lookup, power},
    shown::{PassError, show},
};

/// Takes a step.
pub async fn act(hands: &Hands, observed: &Observed, step: &Step) -> Result<Learned, Failure> {
    let facts = &observed.facts;
    let account =
        || observed.account.as_ref().ok_or_else(|| Failure { kind: FailureKind::NoAccess, words: "there is no way to MAAS".to_owned() });
    // The evidence for a step has an end, also while it waits for its turn.
    let until = |end: &Timestamp| account().map(|account| account.client.not_after(hands.clock.moment(*end)));
    let of_maas = |error: maas_client::Error| failure::of_maas(&error);
    match step {
        Step::Begin => begin(hands, observed).await,
        Step::Intend { intent } => {
            let gone = || Failure { kind: FailureKind::Stale, words: "the MaasMachine is gone".to_owned() };
            intend(hands, facts.maas_machine.as_ref().ok_or_else(gone)?, intent).await
        }
        Step::Look { server } => {
            let asked = hands.clock.now();
            let seen = lookup(account()?.client.machine(&server.as_str().into()).read().await, asked);
            Ok(Learned::Looked(Box::new(seen)))
        }
        Step::QueryPower { server } => {
            let answer = account()?.client.machine(&server.as_str().into()).query_power_state().await;
            answer.map(|state| Learned::Power(power(&state))).map_err(of_maas)
        }
        Step::PowerOff { server, comment, not_after } => {
            // Hard, because what is to be mended may not listen any more.
            let answer = until(not_after)?.machine(&server.as_str().into()).power_off(PowerOff::Hard, Some(comment)).await;
            let ordered = answer.map(|machine| if machine.is_some() { Ordered::Off } else { Ordered::NotSwitchable });
            ordered.map(Learned::Ordered).map_err(of_maas)
        }
        Step::PowerOn { server, comment, not_after } => {
            let answer = until(not_after)?.machine(&server.as_str().into()).power_on(Some(comment)).await;
            answer.map(|_| Learned::Ordered(Ordered::On)).map_err(of_maas)
        }
        Step::HandOver { message } => {
            let machine = facts.machine.as_ref().map(ResourceExt::name_any).unwrap_or_default();
            let answer =
                hand_over(&hands.kubernetes, &facts.object.namespace().unwrap_or_default(), &machine, message, hands.clock.now()).await;
            answer.map(|()| Learned::HandedOver).map_err(|error| failure::of_kubernetes(&error))
        }
    }
}

/// Shows the attempt before it is made.
async fn begin(hands: &Hands, observed: &Observed) -> Result<Learned, Failure> {
    let facts = &observed.facts;
    match show(&hands.kubernetes, &facts.object, &facts.shown).await {
        Ok(Some(object)) => {
            hands.written.note(&object);
            Ok(Learned::Begun(Box::new(object)))
        }
        Ok(None) => Err(Failure { kind: FailureKind::Stale, words: "the MaasRemediation is gone".to_owned() }),
        Err(PassError::Status(error)) => Err(failure::of_kubernetes(&error)),
        Err(error @ (PassError::Stale | PassError::TryAgain(_))) => Err(Failure { kind: FailureKind::Stale, words: error.to_string() }),
    }
}

async fn intend(hands: &Hands, machine: &MaasMachine, intent: &Intent) -> Result<Learned, Failure> {
    let change = json!({"metadata": {"annotations": {names::CLAIM: intent.to_annotation()}}});
    let answer = guarded::change(&hands.kubernetes, machine, machine.resource_version().as_deref(), change).await;
    answer.map(|machine| Learned::Intent(Box::new(machine))).map_err(|error| failure::of_kubernetes(&error))
}
