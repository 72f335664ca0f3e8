//! One pass over one MaasCluster: observe, then decide and act until there is nothing to do now, then show the status once.

use std::{collections::BTreeSet, sync::Arc};

use api::MaasCluster;
use decisions::cluster::{Facts, LookAgain, Plan, Step, StepName};
use jiff::Timestamp;

use super::{
    Hands,
    act::act,
    observe::{Observed, observe},
};
use crate::{
    Action, ObjectKey,
    shown::{CACHE_LAG, CUT_SHORT, PassError, look_again, publish},
    watches::see_again,
};

/// What to do about an object.
pub type Decide = Arc<dyn Fn(&Facts, Timestamp) -> Plan + Send + Sync>;

/// The rules. The program passes those of [`decisions::cluster`]; the crash explorer also tries what is wrong on purpose.
#[derive(Clone)]
pub struct Rules {
    /// Whether MAAS is asked about an object at all.
    pub concerns_maas: fn(&Facts) -> bool,
    /// What to do.
    pub decide: Decide,
}

impl Default for Rules {
    fn default() -> Self {
        Self { concerns_maas: Facts::concerns_maas, decide: Arc::new(decisions::cluster::decide) }
    }
}

/// No pass takes more steps; the longest way has a dozen.
const MOST_STEPS: usize = 64;

/// One pass over an object.
pub async fn pass(hands: &Hands, rules: &Rules, object: Arc<MaasCluster>) -> Result<Action, PassError> {
    if hands.written.is_newer_than(&*object) {
        // The watch will bring what we wrote ourselves; that alone would make nothing due.
        return Ok(Action::RequeueAfter(CACHE_LAG));
    }
    let key = ObjectKey::of(&*object);
    let mut observed = observe(hands, rules, object).await;
    let (mut taken, mut count) = (BTreeSet::new(), 0);
    let plan = loop {
        // A call that hangs can make a pass last for minutes, and a pause of the Cluster meanwhile changes no version that guards a step.
        see_again(&hands.clusters, &mut observed.facts.cluster);
        let plan = (rules.decide)(&observed.facts, hands.clock.now());
        observed.facts.shown.clone_from(&plan.status);
        let Some(step) = &plan.step else { break plan };
        count += 1;
        if count > MOST_STEPS || (!taken.insert((step.name(), step.subject())) && !step.may_repeat()) {
            tracing::warn!(step = ?step.name(), "a pass was cut short, since it would take the same step again");
            break Plan { step: None, look_again: LookAgain::After(CUT_SHORT), ..plan };
        }
        let succeeded = take(hands, &key, &mut observed, step, plan.guard.as_deref()).await;
        if succeeded && step.name() == StepName::RemoveFinalizer {
            hands.forget(&key);
            return Ok(Action::AwaitChange);
        }
    };
    finish(hands, &key, &observed.facts, plan).await
}

/// Takes a step and says whether it succeeded.
async fn take(hands: &Hands, key: &ObjectKey, observed: &mut Observed, step: &Step, guard: Option<&str>) -> bool {
    tracing::info!(step = ?step.name(), subject = step.subject(), "taking a step");
    match act(hands, observed, step, guard).await {
        Ok(learned) => {
            if step.is_order() {
                hands.restraint.forget(key);
                observed.facts.hold_until = None;
            }
            observed.facts.learn(learned);
            true
        }
        Err(failure) => {
            tracing::info!(step = ?step.name(), failure = %failure, "the step did not succeed");
            if step.is_order() {
                hands.restraint.failed(key, hands.clock.now());
                observed.facts.hold_until = hands.restraint.until(key);
            }
            observed.facts.fail(step, failure);
            false
        }
    }
}

/// Shows the status if it changed, tells people what is new, and says when to look again.
async fn finish(hands: &Hands, key: &ObjectKey, facts: &Facts, plan: Plan) -> Result<Action, PassError> {
    let changed = plan.status.is_some() && facts.object.status != plan.status;
    if changed && publish(&hands.kubernetes, &hands.written, &hands.events, &facts.object, &plan).await?.is_none() {
        hands.forget(key);
        return Ok(Action::AwaitChange);
    }
    let conditions = plan.status.map(|status| status.conditions).unwrap_or_default();
    look_again(plan.look_again, &conditions)
}
