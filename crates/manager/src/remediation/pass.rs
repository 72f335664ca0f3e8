//! One pass over one `MaasRemediation`: observe, then decide and act until there is nothing to do now, then show the status once.

use std::sync::Arc;

use api::MaasRemediation;
use decisions::remediation::{Facts, FailedStep, LookAgain, Plan, Step};
use jiff::Timestamp;

use super::{
    Hands,
    act::act,
    observe::{Observed, observe},
};
use crate::{
    Action,
    shown::{CACHE_LAG, CUT_SHORT, PassError, look_again, publish, tell},
    watches::see_again,
};

/// What to do, from facts and a time.
pub type Decide = Arc<dyn Fn(&Facts, Timestamp) -> Plan + Send + Sync>;

/// The rules. The program passes those of [`decisions::remediation`]; tests also try what is wrong on purpose.
#[derive(Clone)]
pub struct Rules {
    /// What to do.
    pub decide: Decide,
}

impl Default for Rules {
    fn default() -> Self {
        Self { decide: Arc::new(decisions::remediation::decide) }
    }
}

/// No pass takes more steps; the longest way has five.
const MOST_STEPS: usize = 12;

/// One pass over an object.
pub async fn pass(hands: &Hands, rules: &Rules, object: Arc<MaasRemediation>) -> Result<Action, PassError> {
    if hands.written.is_newer_than(&*object) {
        // The watch will bring what we wrote ourselves; that alone would make nothing due.
        return Ok(Action::RequeueAfter(CACHE_LAG));
    }
    let mut observed = observe(hands, object).await?;
    let mut steps = 0;
    let plan = loop {
        // A call that hangs can make a pass last for minutes, and a pause of the Cluster meanwhile changes no version that guards a step.
        see_again(&hands.clusters, &mut observed.facts.cluster);
        let plan = (rules.decide)(&observed.facts, hands.clock.now());
        observed.facts.shown.clone_from(&plan.status);
        let Some(step) = &plan.step else { break plan };
        steps += 1;
        if steps > MOST_STEPS {
            tracing::warn!(step = ?step.name(), "a pass was cut short, since it took too many steps");
            break Plan { step: None, look_again: LookAgain::After(CUT_SHORT), ..plan };
        }
        take(hands, &mut observed, step, &plan).await;
    };
    finish(hands, &observed.facts, plan).await
}

async fn take(hands: &Hands, observed: &mut Observed, step: &Step, plan: &Plan) {
    tracing::info!(step = ?step.name(), "taking a step");
    match act(hands, observed, step).await {
        Ok(learned) => {
            let begins = matches!(step, Step::Begin);
            observed.facts.learn(learned);
            if begins {
                tell(&hands.events, &observed.facts.object, &plan.notes).await;
            }
        }
        Err(failure) => {
            tracing::info!(step = ?step.name(), failure = %failure, "the step did not succeed");
            observed.facts.failed = Some(FailedStep { step: step.name(), failure });
        }
    }
}

/// Shows the status if it changed, tells people what is new, and says when to look again.
async fn finish(hands: &Hands, facts: &Facts, plan: Plan) -> Result<Action, PassError> {
    if plan.status.is_some() && facts.object.status != plan.status {
        let shown = publish(&hands.kubernetes, &hands.written, &hands.events, &facts.object, &plan).await?;
        if shown.is_none() {
            return Ok(Action::AwaitChange);
        }
    }
    look_again(plan.look_again, &plan.status.map(|status| status.conditions).unwrap_or_default())
}
