//! A server of ours, for an object that is wanted: what comes next, in each of MAAS's states.

use std::time::Duration;

use api::{Intent, Phase, ProviderId};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    draft::{DEPLOYED, Draft},
    facts::{Bootstrap, Facts, FailedStep},
    failures, keep, links,
    plan::{Deployment, LookAgain, Plan, Preparation, Step, StepName},
    pooled, prepare,
    reason::Reason,
    retry,
};
use crate::{FailureKind, Server, Stage, plan::later};

pub(super) fn decide(mut draft: Draft<'_>, server: &Server) -> Plan {
    let facts = draft.facts;
    let Some(intent) = facts.intent() else { return draft.wait(LookAgain::OnChange) };
    if facts.recorded_id().as_ref() != Some(&server.system_id) || facts.object.spec.system_id.is_none() || intent.adopting.is_some() {
        let intent = recorded(facts, intent);
        return draft.step(Step::Record { server: server.system_id.clone(), intent });
    }
    if facts.is_provisioned() {
        return if facts.is_handed_over_unfinished() { bring_up(draft, server) } else { keep::decide(draft, server) };
    }
    if intent.releasing.contains(&server.system_id) {
        retry::note(&mut draft, &server.system_id, Some(server));
        return retry::give_back(draft, server);
    }
    bring_up(draft, server)
}

/// The intent once the server is written down: where it came from is kept.
fn recorded(facts: &Facts, intent: Intent) -> Intent {
    let from = intent.adopting.clone();
    let (adopted, wished) = if facts.is_provisioned() { (from, None) } else { (None, from) };
    Intent { adopting: None, adopted: adopted.or(intent.adopted), wished: wished.or(intent.wished), ..intent }
}

/// From allocated to deployed.
fn bring_up(mut draft: Draft<'_>, server: &Server) -> Plan {
    match server.status.stage() {
        Stage::Held => deploy(draft, server),
        Stage::Installing => installing(draft, server),
        Stage::Running => {
            let provider_id = ProviderId { zone: server.zone.clone(), system_id: server.system_id.clone() };
            draft.condition(DEPLOYED, Some(true), Reason::DEPLOYED, "");
            draft.phase(Phase::Deployed);
            draft.step(Step::Provision { provider_id })
        }
        Stage::InstallFailed => retry::failed(draft, server, &server.complaint()),
        Stage::Broken => {
            let cause = format!("it is {} in MAAS: {}", server.status, server.complaint());
            retry::failed(draft, server, &cause)
        }
        Stage::StuckLeaving => {
            let cause = format!("somebody released it in MAAS, and that failed: {}", server.complaint());
            retry::failed(draft, server, &cause)
        }
        Stage::Leaving => {
            draft.not_deployed(Reason::TERMINATED, format!("somebody is releasing machine {} in MAAS", server.name()));
            draft.wait(LookAgain::After(POLL))
        }
        Stage::UnderRepair | Stage::Shelved | Stage::Unclear => {
            draft.not_deployed(Reason::STATE_UNDEFINED, state_message(server));
            draft.wait(LookAgain::After(POLL))
        }
    }
}

/// Where the feed of events may be slow, this is how often a server that should move is looked at.
const POLL: Duration = Duration::from_secs(30);

pub(super) fn state_message(server: &Server) -> String {
    format!("machine {} is in state {} in MAAS. {}", server.name(), server.status, Reason::STATE_UNDEFINED.remedy)
}

fn deploy(mut draft: Draft<'_>, server: &Server) -> Plan {
    let facts = draft.facts;
    draft.phase(Phase::Allocated);
    if server.locked {
        draft.not_deployed(Reason::LOCKED, format!("machine {} is locked in MAAS. {}", server.name(), Reason::LOCKED.remedy));
        return draft.wait(LookAgain::After(POLL));
    }
    if draft.shows_what_is_missing() {
        // An address that was given up stands in the way of the next one, which has the same name.
        return match pooled::free_unused(&draft) {
            Some(step) => draft.step(step),
            None => draft.wait_for_what_is_missing(),
        };
    }
    if let Some(failed) = facts.failed.as_ref().filter(|failed| failed.step == StepName::Deploy) {
        return match failed.failure.kind {
            // An earlier order that nobody answered may be under way: its state tells.
            FailureKind::HalfDone | FailureKind::Conflict if !failed.looked_since => {
                draft.step(Step::Look { server: server.system_id.clone() })
            }
            // MAAS tried and could not, or the machine's state forbids it: this machine is not for us.
            FailureKind::HalfDone | FailureKind::Conflict => {
                let cause = format!("MAAS could not start its deployment: {}", failed.failure.words);
                retry::failed(draft, server, &cause)
            }
            kind => match overdue(&draft, &failed.failure.words).filter(|_| kind.is_refusal()) {
                Some(cause) => retry::failed(draft, server, &cause),
                None => failures::explain(draft, failed),
            },
        };
    }
    // What was left on another server is no fault of this one.
    let prepares = |failed: &&FailedStep| failed.step == StepName::Prepare && failed.server.as_ref() == Some(&server.system_id);
    if let Some(failed) = facts.failed.as_ref().filter(prepares).filter(|failed| failed.failure.kind.is_refusal())
        && let Some(cause) = overdue(&draft, &failed.failure.words)
    {
        return retry::failed(draft, server, &cause);
    }
    draft.not_deployed(Reason::DEPLOY_STARTED, format!("machine {} is about to be deployed", server.name()));
    let Some(not_after) = draft.may_touch_until(server) else {
        let step = draft.intend(|_| ());
        return draft.step(step);
    };
    if not_after <= draft.now {
        return draft.step(Step::Look { server: server.system_id.clone() });
    }
    if let Some(step) = pooled::free_unused(&draft) {
        return draft.step(step);
    }
    match prepare::next(&mut draft, server) {
        Ok(Some(preparation)) => match links::not_yet_written_down(&draft, server, &preparation) {
            Some(step) => draft.step(step),
            None => prepare(draft, server, preparation, not_after),
        },
        Ok(None) => {
            let deployment = deployment(&draft, server, not_after);
            draft.step(Step::Deploy(Box::new(deployment)))
        }
        Err(message) => {
            draft.not_deployed(Reason::PREPARE_FAILED, message.clone());
            if let Some(cause) = overdue(&draft, &message) {
                return retry::failed(draft, server, &cause);
            }
            draft.wait(LookAgain::AfterBackoff)
        }
    }
}

/// Prepares the server. An address of a pool is held before the server gets it.
fn prepare(mut draft: Draft<'_>, server: &Server, preparation: Preparation, not_after: Timestamp) -> Plan {
    let gives_address = matches!(preparation, Preparation::Link { address: Some(_), .. });
    match pooled::hold(&draft) {
        pooled::Hold::Next(step) if gives_address => draft.step(*step),
        pooled::Hold::GoneBack(name) if gives_address => {
            let words = format!(
                "address {name} went back to its pool before machine {} got it. Delete the IPAddressClaim of this object if there is one, and \
                 remove spec.staticIP.ip to have another one claimed",
                server.name()
            );
            draft.not_deployed(Reason::ADDRESS_NOT_CLAIMED, words.clone());
            match overdue(&draft, &words) {
                Some(cause) => retry::failed(draft, server, &cause),
                None => draft.wait(LookAgain::AfterBackoff),
            }
        }
        pooled::Hold::Next(_) | pooled::Hold::GoneBack(_) | pooled::Hold::Done => {
            draft.step(Step::Prepare { server: server.system_id.clone(), preparation, not_after })
        }
    }
}

/// What keeps a server from being deployed is waited for as long as a deployment may take: somebody else may have use for it.
fn overdue(draft: &Draft<'_>, words: &str) -> Option<String> {
    let limit = draft.facts.object.spec.deadlines().deploy;
    let is_over = later(draft.phase_began(), limit) <= draft.now;
    is_over.then(|| format!("it could not be deployed within {limit:?}: {words}"))
}

fn deployment(draft: &Draft<'_>, server: &Server, not_after: Timestamp) -> Deployment {
    let spec = &draft.facts.object.spec;
    Deployment {
        server: server.system_id.clone(),
        image: spec.image(),
        with_user_data: matches!(draft.facts.bootstrap, Bootstrap::Present { .. }),
        in_memory: spec.in_memory(),
        hwe_kernel: spec.hwe_kernel.clone(),
        hardware_sync: spec.hardware_sync.unwrap_or_default(),
        agent_name: draft.facts.intent().map(|intent| intent.claim.to_string()).unwrap_or_default(),
        comment: draft.comment("deploys for"),
        not_after,
    }
}

fn installing(mut draft: Draft<'_>, server: &Server) -> Plan {
    if retry::is_given_up(&draft, &server.system_id) {
        return retry::gave_up(draft);
    }
    draft.phase(Phase::Deploying);
    let limit = draft.facts.object.spec.deadlines().deploy;
    let end = draft.phase_began().saturating_add(limit).unwrap_or(Timestamp::MAX);
    if end <= draft.now {
        let cause = format!("it was not deployed within {limit:?}; MAAS last said: {}", server.status_message);
        return retry::failed(draft, server, &cause);
    }
    draft.status.expected_end = Some(Time(end));
    draft.not_deployed(Reason::DEPLOYING, format!("MAAS installs machine {}: {}", server.name(), progress(server)));
    let left = Duration::try_from(end.duration_since(draft.now)).unwrap_or_default();
    draft.wait(LookAgain::After(left.min(LONGEST_SILENCE)))
}

/// The feed tells of progress; this is how long it is trusted to when it says nothing.
const LONGEST_SILENCE: Duration = Duration::from_mins(2);

fn progress(server: &Server) -> &str {
    if server.status_message.is_empty() { "it has begun" } else { &server.status_message }
}
