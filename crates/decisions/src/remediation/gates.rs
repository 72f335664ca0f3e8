//! What has to hold before anything is done to a machine: it is unhealthy, it runs, MAAS answers, and it is ours.

use api::{Phase, RemediationPhase, cluster_api::Machine, condition};

use super::{
    cycle,
    draft::Draft,
    failures,
    give_up::{self, give_up},
    plan::{LookAgain, Plan, Step},
    reason,
};
use crate::{
    Lookup,
    machine::Reason,
    ownership::{Evidence, Loss, Verdict, verdict},
};

pub(super) fn decide(mut draft: Draft<'_>) -> Plan {
    let facts = draft.facts;
    if facts.machine.as_ref().is_some_and(|machine| machine.metadata.deletion_timestamp.is_some()) {
        return draft.hold(reason::MACHINE_DELETING, "the Machine is being deleted", LookAgain::OnChange);
    }
    if is_well(&draft) {
        draft.remediated();
        return draft.wait(LookAgain::OnChange);
    }
    if draft.status.phase == Some(RemediationPhase::Failed) {
        return give_up::hand_over(draft);
    }
    // A health check makes this object first and says so on the Machine then.
    if facts.health() == Some(true) {
        let message = "the health check of the Machine does not say that it is unhealthy";
        return draft.hold(reason::WAITING_FOR_HEALTH_CHECK, message, LookAgain::OnChange);
    }
    infrastructure(draft)
}

/// Whether the node is back. Without a health check its own word counts, if it is newer than the last attempt.
fn is_well(draft: &Draft<'_>) -> bool {
    let facts = draft.facts;
    let Some(began) = draft.status.last_remediated.as_ref() else { return false };
    let conditions = facts.machine.as_ref().map(|machine| machine.conditions.as_slice()).unwrap_or_default();
    let node_is_ready = || {
        condition::find(conditions, Machine::NODE_READY)
            .is_some_and(|ready| ready.status == "True" && began.0 < ready.last_transition_time.0)
    };
    match condition::find(conditions, Machine::HEALTH_CHECK_SUCCEEDED) {
        Some(_) => facts.health() == Some(true),
        None => node_is_ready(),
    }
}

fn infrastructure(draft: Draft<'_>) -> Plan {
    let facts = draft.facts;
    let reference = facts.machine.as_ref().and_then(|machine| machine.infrastructure_ref.as_ref());
    if reference.is_none_or(|reference| reference.kind != "MaasMachine") {
        return draft.hold(reason::NOT_OF_MAAS, reason::NOT_OF_MAAS.remedy, LookAgain::OnChange);
    }
    let Some(ours) = &facts.maas_machine else {
        return give_up(draft, reason::MACHINE_LOST, "the MaasMachine of the Machine is gone");
    };
    if ours.metadata.deletion_timestamp.is_some() {
        return draft.hold(reason::MACHINE_DELETING, "the MaasMachine is being deleted", LookAgain::OnChange);
    }
    let status = ours.status.as_ref();
    if facts.server_id().is_none() {
        if status.and_then(|status| status.phase) == Some(Phase::Failed) {
            let ready = status.and_then(|status| condition::find(&status.conditions, "Ready"));
            let words = ready.map(|ready| ready.message.clone()).unwrap_or_default();
            return give_up(draft, reason::MACHINE_FAILED, format!("the machine could not be brought up: {words}"));
        }
        return draft.hold(reason::NOT_DEPLOYED_YET, "the machine is still being brought up", LookAgain::OnChange);
    }
    access(draft)
}

fn access(draft: Draft<'_>) -> Plan {
    let facts = draft.facts;
    let account = match &facts.account {
        Ok(account) => account,
        Err(failure) => return failures::no_account(draft, failure),
    };
    let intent = facts.intent();
    let made_for = |text: Option<&String>, now: &str| text.is_none_or(|text| text == now);
    let same =
        intent.as_ref().is_none_or(|intent| made_for(intent.maas.as_ref(), &account.host) && made_for(intent.user.as_ref(), &account.user));
    if !same {
        let message = format!("the credentials are those of user {} at {} now. {}", account.user, account.host, Reason::OTHER_MAAS.remedy);
        return draft.hold(Reason::OTHER_MAAS, message, LookAgain::AfterBackoff);
    }
    let verdict = verdict(Evidence {
        user: &account.user,
        claim: intent.as_ref().map(|intent| &intent.claim),
        has_our_agent_name: facts.has_our_agent_name,
        recorded_by_another_provider: intent.is_none(),
        composed_by_us: false,
        server: &facts.server,
    });
    match (verdict, &facts.server) {
        (Verdict::Ours, Lookup::Found(server)) => cycle::decide(draft, server),
        (Verdict::OursUnmarked | Verdict::Adoptable | Verdict::Unallocated | Verdict::Ours, _) => {
            draft.hold(reason::MARKS_MISSING, "the machine is marked in MAAS first", LookAgain::After(failures::POLL))
        }
        (Verdict::Foreign { holder }, _) => {
            give_up(draft, reason::MACHINE_LOST, format!("the machine is held for {holder} in MAAS and was not touched"))
        }
        (Verdict::TakenAway(loss), _) => {
            let how = match loss {
                Loss::Released => "was released in MAAS".to_owned(),
                Loss::OtherOwner(owner) => format!("belongs to MAAS user {owner} now"),
                Loss::Hidden => "is not shown to our MAAS user any more".to_owned(),
                Loss::Deleted => "was deleted from MAAS".to_owned(),
            };
            give_up(draft, reason::MACHINE_LOST, format!("the machine {how}"))
        }
        (Verdict::Undecided(failure), _) => failures::no_account(draft, &failure),
        (Verdict::LookAgain, _) => match facts.server_id() {
            Some(server) => draft.step(Step::Look { server }),
            None => draft.wait(LookAgain::OnChange),
        },
    }
}
