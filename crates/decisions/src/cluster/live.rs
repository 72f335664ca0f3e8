//! A MaasCluster that is wanted.

use api::{EndpointIntent, names};

use super::{
    dns,
    draft::{API_SERVER_AVAILABLE, Draft, MAAS_AVAILABLE},
    endpoint::Endpoint,
    facts::{ApiServer, Facts},
    failures,
    plan::{LookAgain, Plan, Step},
    reason, vip,
};
use crate::{Failure, FailureKind, Lookup, machine::Reason};

pub(super) fn decide(mut draft: Draft<'_>) -> Plan {
    let facts = draft.facts;
    let finalizers = facts.object.metadata.finalizers.as_deref().unwrap_or_default();
    if !finalizers.iter().any(|name| name == names::FINALIZER_CLUSTER) {
        return draft.step(Step::AddFinalizer);
    }
    draft.shows_api_server();
    if let Some(words) = unreadable(facts) {
        return draft.unreadable(&words);
    }
    if facts.object.spec.hosts_virtual_machines() {
        let message = "the machines of the cluster do not become LXD hosts: this version cannot do that yet. Remove spec.lxdConfig";
        draft.condition("LXDReady", Some(false), Reason::LXD_NOT_SUPPORTED, message);
    }
    draft.shows_zones();
    if let Err(failure) = &facts.account {
        return failures::no_account(draft, failure);
    }
    if let Some(failure) = draft.silence() {
        return failures::no_account(draft, &failure);
    }
    draft.condition(MAAS_AVAILABLE, Some(true), Reason::MAAS_AVAILABLE, "");
    if let Some(message) = draft.other_maas() {
        draft.no_endpoint_unless_provisioned(Reason::OTHER_MAAS, message.clone());
        draft.condition(MAAS_AVAILABLE, Some(false), Reason::OTHER_MAAS, message);
        return draft.wait(LookAgain::AfterBackoff);
    }
    match facts.endpoint() {
        Endpoint::Dns { name, origin } => dns::decide(draft, &name, origin),
        Endpoint::Vip => vip::decide(draft),
        Endpoint::Elsewhere { host } => elsewhere(draft, &host),
        Endpoint::Awaited => {
            draft.no_endpoint(
                reason::WAIT_FOR_ENDPOINT,
                "waiting for whoever gives the address of the API server in spec.controlPlaneEndpoint",
            );
            draft.wait(LookAgain::OnChange)
        }
    }
}

/// Somebody else sees to it that the API server is reached.
fn elsewhere(mut draft: Draft<'_>, host: &str) -> Plan {
    let facts = draft.facts;
    let hosted = facts.object.spec.endpoint_mode() == api::EndpointMode::Hosted && !facts.is_annotated(names::CUSTOM_ENDPOINT);
    if !hosted && let Some(step) = draft.endpoint_step(host) {
        return draft.step(step);
    }
    draft.provisioned_if_zones_are_known();
    draft.endpoint_is_ready();
    let look_again = if draft.zones_were_read() { LookAgain::OnChange } else { LookAgain::AfterBackoff };
    draft.wait(look_again)
}

/// Why what is on record cannot be read, if it cannot.
pub(super) fn unreadable(facts: &Facts) -> Option<String> {
    EndpointIntent::of(&facts.object.metadata).unreadable()
}

impl Draft<'_> {
    pub(super) fn unreadable(mut self, words: &str) -> Plan {
        self.no_endpoint(reason::ANNOTATION_UNREADABLE, format!("{words}. {}", reason::ANNOTATION_UNREADABLE.remedy));
        // Changes of our own annotations are not listened to.
        self.wait(LookAgain::AfterBackoff)
    }

    fn shows_api_server(&mut self) {
        match &self.facts.api_server {
            ApiServer::Answers => self.condition(API_SERVER_AVAILABLE, Some(true), reason::API_SERVER_AVAILABLE, ""),
            // A process that has just started knows nothing yet, which is no news of an API server that answered before.
            ApiServer::NotYet if api::condition::is_true(&self.status.conditions, API_SERVER_AVAILABLE) => {}
            ApiServer::NotYet => {
                self.condition(API_SERVER_AVAILABLE, Some(false), reason::API_SERVER_NOT_READY, "the API server has not answered yet");
            }
            ApiServer::Silent { words } => {
                let message = format!("the API server does not answer: {words}. {}", reason::API_SERVER_NOT_READY.remedy);
                self.condition(API_SERVER_AVAILABLE, Some(false), reason::API_SERVER_NOT_READY, message);
            }
        }
    }

    /// How it shows that MAAS does not answer, if it shows.
    pub(super) fn silence(&self) -> Option<Failure> {
        let ((Lookup::Failed(failure), _) | (_, Lookup::Failed(failure))) = (&self.facts.records, &self.facts.zones) else { return None };
        match failure.kind {
            FailureKind::NoAccess | FailureKind::Unauthenticated | FailureKind::Unavailable | FailureKind::NotMaas => Some(failure.clone()),
            _ => None,
        }
    }

    /// Whether the object says that the API server is at this host.
    pub(super) fn endpoint_is(&self, host: &str) -> bool {
        self.facts.object.spec.endpoint_host() == Some(host)
    }

    /// Writes the endpoint down, unless it is. A host that is there is never changed.
    pub(super) fn endpoint_step(&self, host: &str) -> Option<Step> {
        let spec = &self.facts.object.spec;
        let given = spec.control_plane_endpoint.as_ref();
        let complete = given.is_some_and(|endpoint| endpoint.host.is_some() && endpoint.port.is_some());
        let host = given.and_then(|endpoint| endpoint.host.clone()).unwrap_or_else(|| host.to_owned());
        (!complete).then(|| Step::WriteEndpoint { host, port: self.facts.port() })
    }

    /// The endpoint is known; Cluster API hears of it together with the zones.
    pub(super) fn provisioned_if_zones_are_known(&mut self) {
        if self.zones_were_read() {
            self.provisioned();
        }
    }

    /// Why the MAAS we reach is not the one in which the cluster has something.
    pub(super) fn other_maas(&self) -> Option<String> {
        let recorded = self.facts.intent()?.maas?;
        let account = self.account()?;
        (recorded != account.host).then(|| {
            let host = &account.host;
            format!(
                "the cluster's address was made in the MAAS at {recorded}, and the credentials lead to {host} now. {}",
                Reason::OTHER_MAAS.remedy
            )
        })
    }
}
