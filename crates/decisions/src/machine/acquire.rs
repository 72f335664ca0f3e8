//! No server yet: claim the object, then allocate one. The intent is written down first, and an allocation nobody answered is waited for.

use api::{Mode, Phase, SystemId};

use super::{
    draft::Draft,
    facts::{FailedStep, ImageCheck},
    failures,
    plan::{Allocation, Constraints, LookAgain, Plan, Step, StepName},
    pooled, prepare,
    reason::Reason,
    retry,
};
use crate::{FailureKind, plan::later};

/// How many servers an allocation names: the web framework of MAAS takes a thousand parameters in all.
const MOST_NAMED: usize = 500;
/// How many images a message names.
const IMAGES_NAMED: usize = 8;

/// Allocates a server: this one, if somebody wished for it.
pub(super) fn decide(mut draft: Draft<'_>, wish: Option<&SystemId>) -> Plan {
    draft.shows_no_server();
    let facts = draft.facts;
    if draft.is_unanswered() {
        draft.phase(Phase::Allocating);
        return draft.wait_for_answer();
    }
    // Somebody else may have use for it for as long as no server fits.
    if let Some(step) = pooled::free_unused(&draft) {
        return draft.step(step);
    }
    if draft.shows_what_is_missing() {
        draft.phase(Phase::Pending);
        return draft.wait_for_what_is_missing();
    }
    if retry::is_exhausted(&draft) {
        return retry::gave_up(draft);
    }
    if let Some(message) = prepare::impossible(&draft) {
        draft.not_deployed(Reason::NO_RIGHTS, message);
        draft.phase(Phase::Pending);
        return draft.wait(LookAgain::AfterBackoff);
    }
    if let ImageCheck::Absent { available } = &facts.image {
        let image = &facts.object.spec.image;
        let some = available.iter().take(IMAGES_NAMED).cloned().collect::<Vec<_>>().join(", ");
        let some = if some.is_empty() { "none at all".to_owned() } else { some };
        draft.not_deployed(
            Reason::IMAGE_NOT_FOUND,
            format!("MAAS does not have image {image}; it has {some}. {}", Reason::IMAGE_NOT_FOUND.remedy),
        );
        draft.phase(Phase::Pending);
        return draft.wait(LookAgain::AfterBackoff);
    }
    draft.phase(Phase::Allocating);
    ask(draft, wish)
}

fn ask(mut draft: Draft<'_>, wish: Option<&SystemId>) -> Plan {
    let facts = draft.facts;
    let choice = wish.map_or_else(|| choice(&draft), |wish| Choice::OneOf(vec![wish.clone()]));
    if let Some(failed) = facts.failed.as_ref().filter(|failed| failed.step == StepName::Allocate)
        && !(is_no_match(failed) && may_try_more(&draft, &choice))
    {
        return not_allocated(draft, failed);
    }
    draft.not_deployed(Reason::ALLOCATING, "asking MAAS for a machine");
    match choice {
        Choice::AskFirst => {
            let constraints = Box::new(constraints(&draft));
            draft.step(Step::ListCandidates(constraints))
        }
        Choice::Nobody(message) => {
            draft.not_deployed(Reason::NO_MATCHING_MACHINE, message);
            draft.wait(LookAgain::AfterBackoff)
        }
        Choice::AnyMetal => allocate(draft, Vec::new(), wish),
        Choice::OneOf(servers) => allocate(draft, servers, wish),
    }
}

/// The intent is written down first, each time anew: only what follows from this very write may be sent.
fn allocate(draft: Draft<'_>, servers: Vec<SystemId>, wish: Option<&SystemId>) -> Plan {
    let (Some(intent), Some(not_after)) = (draft.facts.intent(), draft.may_send_until()) else {
        let step = draft.intend(|intent| intent.adopting = wish.cloned());
        return draft.step(step);
    };
    let allocation = Allocation {
        constraints: constraints(&draft),
        servers,
        agent_name: intent.claim.to_string(),
        comment: draft.comment("allocates for"),
        not_after,
    };
    draft.step(Step::Allocate(Box::new(allocation)))
}

/// From where a server may come.
enum Choice {
    /// Any that is no virtual machine; MAAS chooses.
    AnyMetal,
    /// One of these.
    OneOf(Vec<SystemId>),
    /// MAAS has to say first what there is.
    AskFirst,
    /// None is left.
    Nobody(String),
}

/// Machines that failed for this object are not tried again; those that failed for others are the last resort.
fn choice(draft: &Draft<'_>) -> Choice {
    let facts = draft.facts;
    let failed_here = |id: &SystemId| draft.status.attempts.iter().any(|attempt| attempt.system_id == id.as_str());
    let something_to_avoid = !draft.status.attempts.is_empty() || !facts.recent_failures.is_empty();
    let no_metal = facts.failed.as_ref().is_some_and(|failed| failed.step == StepName::Allocate && is_no_match(failed));
    let may_be_virtual = facts.object.spec.mode() == Mode::Any;
    match &facts.candidates {
        None if something_to_avoid || (no_metal && may_be_virtual) => Choice::AskFirst,
        None => Choice::AnyMetal,
        Some(candidates) => {
            let fits = |virtual_machine: bool| {
                let of_kind = candidates.iter().filter(move |candidate| candidate.virtual_machine == virtual_machine);
                let new = of_kind.map(|candidate| candidate.system_id.clone()).filter(|id| !failed_here(id));
                new.collect::<Vec<_>>()
            };
            let (metal, machines) = (fits(false), if may_be_virtual { fits(true) } else { Vec::new() });
            let good = |ids: &[SystemId]| ids.iter().filter(|id| !facts.recent_failures.contains_key(id)).cloned().collect::<Vec<_>>();
            let groups = [good(&metal), good(&machines), metal, machines];
            match groups.into_iter().find(|group| !group.is_empty()) {
                Some(group) => Choice::OneOf(group.into_iter().take(MOST_NAMED).collect()),
                None if candidates.is_empty() => Choice::Nobody(nobody(draft, "")),
                None => Choice::Nobody(nobody(draft, "; all that fit have failed for this object before")),
            }
        }
    }
}

fn nobody(draft: &Draft<'_>, why: &str) -> String {
    format!("MAAS has no free machine with {}{why}. {}", constraints(draft), Reason::NO_MATCHING_MACHINE.remedy)
}

fn is_no_match(failed: &FailedStep) -> bool {
    failed.failure.kind == FailureKind::Conflict
}

/// Whether other servers than those just refused can be asked for.
fn may_try_more(draft: &Draft<'_>, choice: &Choice) -> bool {
    match choice {
        Choice::AskFirst => true,
        // Those that were named have just been refused.
        Choice::OneOf(_) => draft.facts.failed.as_ref().is_some_and(|failed| failed.server.is_none()),
        Choice::AnyMetal | Choice::Nobody(_) => false,
    }
}

fn not_allocated(mut draft: Draft<'_>, failed: &FailedStep) -> Plan {
    if !is_no_match(failed) {
        return failures::explain(draft, failed);
    }
    let waited_for = draft.facts.object.spec.deadlines().allocate;
    let words = &failed.failure.words;
    match waited_for {
        Some(limit) if later(draft.phase_began(), limit) <= draft.now => {
            let message = Reason::ALLOCATE_TIMEOUT.message(&format!("no machine with {} turned up in time: {words}", constraints(&draft)));
            draft.not_deployed(Reason::ALLOCATE_TIMEOUT, message);
        }
        _ => {
            let message = format!("MAAS has no free machine with {}: {words}. {}", constraints(&draft), Reason::NO_MATCHING_MACHINE.remedy);
            draft.not_deployed(Reason::NO_MATCHING_MACHINE, message);
        }
    }
    draft.wait(LookAgain::AfterBackoff)
}

/// What the object and its Machine ask for. The Machine's failure domain counts before the object's own.
fn constraints(draft: &Draft<'_>) -> Constraints {
    let spec = &draft.facts.object.spec;
    let of_machine = draft.facts.machine.as_ref().and_then(|machine| machine.failure_domain.clone());
    let disk = spec.disk().map(|size| format!("root:{size}"));
    Constraints {
        cpu: spec.cpu(),
        memory: u32::try_from(spec.memory().0).unwrap_or(u32::MAX),
        zone: of_machine.or_else(|| spec.failure_domain.clone()),
        pool: spec.resource_pool.clone(),
        tags: spec.tags.clone(),
        not_tags: spec.not_tags.clone(),
        architecture: spec.architecture.clone(),
        storage: spec.storage.clone().or(disk),
        interfaces: spec.interfaces.clone(),
    }
}
