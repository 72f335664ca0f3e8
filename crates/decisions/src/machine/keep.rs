//! A server that was handed over: it is watched, told apart from others, and switched on again when it lost power. It is never deployed
//! again and never replaced under the same object.

use std::time::Duration;

use api::Phase;
use jiff::Timestamp;

use super::{
    draft::{DEPLOYED, DNS_ATTACHED, Draft, NODE_NAMED},
    facts::{Facts, NodeFacts},
    failures,
    ours::state_message,
    plan::{LookAgain, Plan, Step, StepName},
    pooled,
    reason::Reason,
};
use crate::{Power, Server, Stage, plan::later};

/// How often a server without power is looked at.
const POWER_POLL: Duration = Duration::from_mins(1);

pub(super) fn decide(mut draft: Draft<'_>, server: &Server) -> Plan {
    draft.shows_attachment(server);
    match server.status.stage() {
        Stage::Running if server.power == Power::Off => without_power(draft, server),
        Stage::Running => running(draft),
        Stage::Leaving | Stage::StuckLeaving => {
            let message =
                format!("machine {} is {} in MAAS although it is in use here. {}", server.name(), server.status, Reason::TERMINATED.remedy);
            failed(draft, Reason::TERMINATED, message)
        }
        Stage::InstallFailed | Stage::Broken => {
            let message = format!(
                "machine {} is in state {} in MAAS: {}. {}",
                server.name(),
                server.status,
                server.complaint(),
                Reason::DEPLOY_FAILED.remedy
            );
            failed(draft, Reason::DEPLOY_FAILED, message)
        }
        // Somebody released it and our own user holds it again, or deploys it anew: what runs on it is not our node.
        Stage::Held | Stage::Installing => {
            let message = format!(
                "machine {} is {} in MAAS although it was handed over as deployed. {}",
                server.name(),
                server.status,
                Reason::TAKEN_AWAY.remedy
            );
            failed(draft, Reason::TAKEN_AWAY, message)
        }
        Stage::UnderRepair | Stage::Shelved | Stage::Unclear => failed(draft, Reason::STATE_UNDEFINED, state_message(server)),
    }
}

/// It is not what was handed over any more, or never became it. No other server can take its place under this object.
pub(super) fn failed(mut draft: Draft<'_>, reason: Reason, message: String) -> Plan {
    draft.not_deployed(reason, message);
    draft.phase(Phase::Failed);
    draft.wait(LookAgain::OnChange)
}

fn running(mut draft: Draft<'_>) -> Plan {
    draft.condition(DEPLOYED, Some(true), Reason::DEPLOYED, "");
    draft.phase(Phase::Deployed);
    match pooled::hold_later(&mut draft) {
        pooled::Later::Next(step) => draft.step(*step),
        pooled::Later::Wait(look_again) => name_node(draft, look_again),
    }
}

/// Tells the node which machine it is, unless it knows.
fn name_node(mut draft: Draft<'_>, look_again: LookAgain) -> Plan {
    let provider_id = draft.facts.object.spec.provider_id.clone().unwrap_or_default();
    match &draft.facts.node {
        NodeFacts::Unreachable | NodeFacts::Absent => draft.wait(look_again),
        NodeFacts::Present { name, provider_id: None, .. } => {
            let node = name.clone();
            draft.step(Step::NameNode { node, provider_id })
        }
        NodeFacts::Present { provider_id: Some(known), .. } if *known == provider_id => {
            draft.condition(NODE_NAMED, Some(true), Reason::DEPLOYED, "");
            draft.wait(look_again)
        }
        NodeFacts::Present { name, provider_id: Some(known), .. } => {
            let message = format!("node {name} has provider id {known}, expected {provider_id}. {}", Reason::NODE_MISMATCH.remedy);
            draft.condition(NODE_NAMED, Some(false), Reason::NODE_MISMATCH, message);
            draft.wait(look_again)
        }
    }
}

/// MAAS's record says that there is no power. Only the power controller's own word counts: to switch on a server that runs may restart it.
fn without_power(mut draft: Draft<'_>, server: &Server) -> Plan {
    let facts = draft.facts;
    let id = server.system_id.clone();
    if let Some(failed) = facts.failed.as_ref().filter(|failed| matches!(failed.step, StepName::QueryPower | StepName::PowerOn)) {
        let message = format!(
            "machine {} seems to have no power, but that could not be mended: {}. {}",
            server.name(),
            failed.failure.words,
            Reason::POWER_UNCLEAR.remedy
        );
        draft.not_deployed(Reason::POWER_UNCLEAR, message);
        return draft.wait(LookAgain::After(POWER_POLL));
    }
    if facts.powered_on {
        draft.not_deployed(Reason::POWERING_ON, format!("machine {} had no power and was switched on", server.name()));
        return draft.wait(LookAgain::After(POWER_POLL));
    }
    match facts.power_now {
        None => draft.step(Step::QueryPower { server: id }),
        Some(Power::On) => running(draft),
        Some(Power::Unclear) => {
            let message = format!("it is not clear whether machine {} has power. {}", server.name(), Reason::POWER_UNCLEAR.remedy);
            draft.not_deployed(Reason::POWER_UNCLEAR, message);
            draft.wait(LookAgain::After(POWER_POLL))
        }
        Some(Power::Off) if server.in_memory => {
            let message = format!(
                "machine {} lost its power, and with it everything it ran, since it ran in memory. Delete the Machine to replace it",
                server.name()
            );
            failed(draft, Reason::POWERED_OFF, message)
        }
        Some(Power::Off) if server.locked => {
            let message = format!("machine {} has no power and is locked in MAAS. {}", server.name(), Reason::LOCKED.remedy);
            draft.not_deployed(Reason::POWERED_OFF, message);
            draft.wait(LookAgain::After(POWER_POLL))
        }
        Some(Power::Off) => {
            if let Some(until) = being_switched_until(&draft) {
                draft.not_deployed(Reason::POWERING_ON, format!("machine {} had no power and was switched on", server.name()));
                let left = Duration::try_from(until.duration_since(draft.now)).unwrap_or_default();
                return draft.wait(LookAgain::After(left));
            }
            draft.not_deployed(Reason::POWERED_OFF, format!("machine {} has no power; it is being switched on", server.name()));
            let comment = draft.comment("switches on the machine of");
            let step = match draft.may_touch_until(server) {
                None => draft.intend(|_| ()),
                Some(end) if end <= draft.now => Step::Look { server: id },
                Some(not_after) => Step::PowerOn { server: id, comment, not_after },
            };
            draft.step(step)
        }
    }
}

/// Until when an order of an earlier pass, or of a remediation, may still be switching the server. The order itself is an event that makes
/// the object due, and a power controller that takes longer than that would be told again and again, and start again and again.
fn being_switched_until(draft: &Draft<'_>) -> Option<Timestamp> {
    let intent = draft.facts.intent().filter(|_| !draft.facts.intent_is_fresh)?;
    let shown = api::condition::find(&draft.status.conditions, DEPLOYED).map(|condition| condition.reason.as_str());
    let by_remediation = intent.writer.as_ref().is_some_and(|writer| writer.starts_with(crate::remediation::WRITER));
    let until = match shown {
        _ if by_remediation => later(intent.since?, super::LATE_COMMIT),
        // An order that was not answered may be carried out all the same.
        Some(reason) if [Reason::POWERING_ON.name, Reason::POWER_UNCLEAR.name].contains(&reason) => later(intent.since?, POWER_POLL),
        _ => return None,
    };
    Some(until).filter(|until| draft.now < *until)
}

impl Draft<'_> {
    /// Whether the cluster's endpoint leads to the machine, where that is a list of addresses in DNS.
    pub(super) fn shows_attachment(&mut self, server: &Server) {
        if !uses_dns(self.facts) || !self.facts.is_control_plane() {
            return;
        }
        let attached = server.addresses.iter().any(|address| self.facts.published.contains(&address.to_string()));
        self.status.dns_attached = Some(attached);
        if attached {
            self.condition(DNS_ATTACHED, Some(true), Reason::ATTACHED, "");
        } else {
            self.condition(
                DNS_ATTACHED,
                Some(false),
                Reason::ATTACH_PENDING,
                "the cluster's DNS record does not have the machine's address yet",
            );
        }
    }

    pub(super) fn maas_is_available(&mut self) {
        failures::available(self);
    }
}

/// Whether the cluster's endpoint is a list of addresses in MAAS's DNS.
pub(super) fn uses_dns(facts: &Facts) -> bool {
    let network = facts.maas_cluster.as_ref().and_then(|cluster| cluster.status.as_ref()?.network.as_ref());
    network.is_some_and(|network| network.dns_name.is_some())
}
