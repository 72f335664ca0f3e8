//! One pass over one MaasMachine: observe, then decide and act until there is nothing to do now, then show the status once.

use std::{collections::BTreeSet, sync::Arc};

use api::MaasMachine;
use decisions::{
    FailureKind,
    machine::{Facts, Learned, LookAgain, Plan, Step, StepName},
};
use jiff::Timestamp;

use super::{
    Hands,
    act::act,
    observe::{Observed, observe},
};
use crate::{
    Action, ObjectKey,
    metrics::Happened,
    shown::{self, CACHE_LAG, CUT_SHORT, PassError, look_again},
    watches::see_again,
};

/// What to do, from facts and a time.
pub type Decide = Arc<dyn Fn(&Facts, Timestamp) -> Plan + Send + Sync>;

/// The rules. The program passes those of [`decisions::machine`]; the crash explorer also tries what is wrong on purpose.
#[derive(Clone)]
pub struct Rules {
    /// Whether MAAS is asked about an object at all.
    pub concerns_maas: fn(&Facts) -> bool,
    /// What to do.
    pub decide: Decide,
}

impl Default for Rules {
    fn default() -> Self {
        Self { concerns_maas: Facts::concerns_maas, decide: Arc::new(decisions::machine::decide) }
    }
}

/// No pass takes more steps; the longest way has a dozen.
const MOST_STEPS: usize = 32;

/// One pass over an object.
pub async fn pass(hands: &Hands, rules: &Rules, object: Arc<MaasMachine>) -> Result<Action, PassError> {
    if hands.written.is_newer_than(&*object) {
        // The watch will bring what we wrote ourselves; that alone would make nothing due.
        return Ok(Action::RequeueAfter(CACHE_LAG));
    }
    let key = ObjectKey::of(&*object);
    let mut observed = observe(hands, rules, object).await;
    let mut taken = BTreeSet::new();
    let mut happened = Happened::default();
    let mut steps = 0;
    let plan = loop {
        // A call that hangs can make a pass last for minutes, and a pause of the Cluster meanwhile changes no version that guards a step.
        see_again(&hands.clusters, &mut observed.facts.cluster);
        let plan = (rules.decide)(&observed.facts, hands.clock.now());
        let before = observed.facts.shown.as_ref().or(observed.facts.object.status.as_ref());
        happened.saw(before, plan.status.as_ref());
        observed.facts.shown.clone_from(&plan.status);
        let Some(step) = &plan.step else { break plan };
        steps += 1;
        if plan.is_shown_before_its_step(observed.facts.object.status.as_ref()) {
            // The trail of the failure goes with this step, so the failure is shown first.
            let Some(object) = publish(hands, &key, &observed.facts, &plan, std::mem::take(&mut happened)).await? else {
                return Ok(Action::AwaitChange);
            };
            observed.facts.learn(Learned::Object(Box::new(object)));
            continue;
        }
        if steps > MOST_STEPS || (!taken.insert(mark(step)) && !step.may_repeat()) {
            tracing::warn!(step = ?step.name(), "a pass was cut short, since it would take the same step again");
            break Plan { step: None, look_again: LookAgain::After(CUT_SHORT), ..plan };
        }
        let succeeded = take(hands, &mut observed, step, plan.guard.as_deref()).await;
        if succeeded && step.name() == StepName::RemoveFinalizer {
            gone(hands, &key);
            happened.count(hands.accounts.machine_metrics());
            return Ok(Action::AwaitChange);
        }
    };
    finish(hands, &key, &observed, plan, happened).await
}

fn mark(step: &Step) -> (StepName, Option<String>) {
    (step.name(), step.server().map(ToString::to_string))
}

/// Takes a step and says whether it succeeded.
async fn take(hands: &Hands, observed: &mut Observed, step: &Step, guard: Option<&str>) -> bool {
    tracing::info!(step = ?step.name(), server = step.server().map(tracing::field::display), "taking a step");
    let (before, until) = if step.may_be_done_late() { hands.orders.sends(&observed.facts.object) } else { (None, None) };
    let outcome = act(hands, observed, step, guard).await;
    let unknown = outcome.as_ref().is_err_and(|failure| failure.kind == FailureKind::Unknown);
    if step.may_be_done_late() && !unknown {
        hands.orders.answered(&observed.facts.object, before);
    }
    match outcome {
        Ok(learned) => {
            observed.facts.learn(learned);
            true
        }
        Err(failure) => {
            tracing::info!(step = ?step.name(), failure = %failure, "the step did not succeed");
            if let Some(until) = until.filter(|_| unknown) {
                observed.facts.learn(Learned::Unanswered(until));
            }
            observed.facts.fail(step, failure);
            false
        }
    }
}

fn gone(hands: &Hands, key: &ObjectKey) {
    hands.accounts.forget(key);
    hands.written.forget(key);
    hands.orders.forget(key);
}

/// Shows the status if it changed, tells people what is new, and says when to look again.
async fn finish(hands: &Hands, key: &ObjectKey, observed: &Observed, plan: Plan, happened: Happened) -> Result<Action, PassError> {
    let facts = &observed.facts;
    let changed = plan.status.is_some() && facts.object.status != plan.status;
    if changed && publish(hands, key, facts, &plan, happened).await?.is_none() {
        return Ok(Action::AwaitChange);
    }
    // Not before: an object that is gone and still in the cache would be poked for as long as its machine has events.
    follow(hands, key, observed, &plan);
    let conditions = plan.status.map(|status| status.conditions).unwrap_or_default();
    look_again(plan.look_again, &conditions)
}

/// Shows the status and tells people what is new in it; nothing if the object is gone.
async fn publish(hands: &Hands, key: &ObjectKey, facts: &Facts, plan: &Plan, happened: Happened) -> Result<Option<MaasMachine>, PassError> {
    let object = shown::publish(&hands.kubernetes, &hands.written, &hands.events, &facts.object, plan).await?;
    match &object {
        Some(_) => happened.count(hands.accounts.machine_metrics()),
        None => gone(hands, key),
    }
    Ok(object)
}

/// From now on events of the object's server poke it.
fn follow(hands: &Hands, key: &ObjectKey, observed: &Observed, plan: &Plan) {
    let (Some(account), Some(pokes)) = (&observed.account, hands.pokes.get()) else { return };
    if let Some(id) = observed.facts.recorded_id() {
        account.watch(&id.as_str().into(), key.clone(), pokes);
    }
    let at_rest = plan.look_again == LookAgain::OnChange && plan.step.is_none();
    account.busy(key, !at_rest);
}
