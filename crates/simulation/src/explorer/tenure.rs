//! The part of the witness that looks at one object's claim and server over time: what may be asked for it and when, that it never gets
//! another server once it has been handed over, and that a server goes back once. Of machines and clusters alike it looks at what was shown:
//! whoever was told that something is provisioned builds on it.

use bytes::Bytes;
use http::{Method, Request};
use serde_json::Value;
use tokio::time::Instant;

use super::witness::{LATE, Witness, claim_of, name_of, operation, parameter};

/// What an object has had so far.
#[derive(Debug, Default, Clone)]
pub(super) struct Held {
    claim: Option<String>,
    /// What it was handed over as.
    provider_id: Option<String>,
    /// The server it was handed over with.
    server: Option<String>,
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn is_handed_over(object: &Value) -> bool {
    text(&object["spec"]["providerID"]).is_some()
}

impl Witness {
    /// A call is on its way to MAAS, and its answer will come or not. What is seen here is what its sender could have known, whenever the
    /// call is carried out.
    pub fn sent(&self, request: &Request<Bytes>, answered: bool) {
        let path = request.uri().path().trim_start_matches("/MAAS/api/2.0/").trim_matches('/').to_owned();
        let id = path.split('/').nth(1).unwrap_or_default();
        match operation(request).as_str() {
            "allocate" => self.sent_allocation(&parameter(request.body(), "agent_name").unwrap_or_default(), answered),
            "deploy" => {
                let claim = self.row(id).and_then(|row| row.marks.get("metalshift-claim").cloned()).unwrap_or_default();
                if let Some(object) = self.holder(&claim).filter(is_handed_over) {
                    self.violated(format!("server {id} is deployed for {}, which was handed over long ago", name_of(&object)));
                }
            }
            "release" => {
                if let Some(row) = self.row(id)
                    && (row.owner.is_none() || matches!(row.status.as_str(), "Releasing" | "Disk erasing"))
                {
                    self.violated(format!("server {id} is released a second time: it is {} already", row.status));
                }
            }
            "set_workload_annotations" => {
                let claim = parameter(request.body(), "metalshift-claim").unwrap_or_default();
                if let Some(object) = self.holder(&claim).filter(|object| self.is_paused(object)) {
                    self.violated(format!("server {id} is marked for {} while it is paused", name_of(&object)));
                }
            }
            _ => {}
        }
    }

    fn sent_allocation(&self, claim: &str, answered: bool) {
        let before = self.seen().unanswered.get(claim).map(Instant::elapsed).filter(|elapsed| *elapsed < LATE);
        if let Some(elapsed) = before {
            self.violated(format!("a second allocation for {claim} was sent {elapsed:?} after one that nobody answered"));
        }
        if !answered {
            self.seen().unanswered.insert(claim.to_owned(), Instant::now());
        }
        let Some(object) = self.holder(claim) else {
            self.violated(format!("an allocation for {claim}, which is no object's claim"));
            return;
        };
        if is_handed_over(&object) {
            self.violated(format!("another server is asked for {}, which was handed over", name_of(&object)));
        }
        if self.is_paused(&object) {
            self.violated(format!("a server is allocated for {} while it is paused", name_of(&object)));
        }
    }

    /// The answer of a call reached whoever sent it, late.
    pub fn answered(&self, request: &Request<Bytes>) {
        if operation(request) == "allocate" {
            self.seen().unanswered.remove(&parameter(request.body(), "agent_name").unwrap_or_default());
        }
    }

    /// The object whose claim this is.
    fn holder(&self, claim: &str) -> Option<Value> {
        self.server.objects("maasmachines").into_iter().find(|object| claim_of(object).as_deref() == Some(claim))
    }

    /// A call was carried out in Kubernetes.
    pub fn after_kubernetes(&self, method: &Method, path: &str) {
        if *method != Method::PATCH {
            return;
        }
        if let Some(resource) = ["maasmachines", "maasclusters"].into_iter().find(|resource| path.contains(&format!("/{resource}/"))) {
            self.nothing_shown_is_taken_back(resource);
        }
        if path.contains("/maasclusters/") {
            self.nobody_shares_an_address();
        }
        if path.contains("/maasmachines/") {
            self.nobody_gets_another_server();
        }
    }

    fn nothing_shown_is_taken_back(&self, resource: &str) {
        for object in self.server.objects(resource) {
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            let provisioned = object["status"]["initialization"]["provisioned"] == Value::Bool(true);
            if provisioned {
                self.seen().provisioned.insert(uid);
            } else if self.seen().provisioned.contains(&uid) {
                self.violated(format!("{} was shown as provisioned and is not any more", name_of(&object)));
            }
        }
    }

    fn nobody_gets_another_server(&self) {
        for object in self.server.objects("maasmachines") {
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
            let before = self.seen().held.get(uid).cloned().unwrap_or_default();
            let name = name_of(&object);
            let claim = claim_of(&object);
            if before.claim.is_some() && claim != before.claim {
                self.violated(format!("the claim {:?} of {name} is overwritten with {claim:?}", before.claim));
            }
            let (provider_id, server) = (text(&object["spec"]["providerID"]), text(&object["spec"]["systemID"]));
            if before.provider_id.is_some() && (provider_id != before.provider_id || server != before.server) {
                self.violated(format!(
                    "{name} was handed over as {:?} with server {:?} and is {provider_id:?} with server {server:?} now",
                    before.provider_id, before.server
                ));
            }
            let server = server.filter(|_| provider_id.is_some());
            self.seen().held.insert(uid.to_owned(), Held { claim, provider_id, server });
        }
    }
}
