//! Looks at every call that changes something in MAAS, before it does, and at what is left in the end. It knows the state of both
//! servers and believes nothing the controllers say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request};
use maas_emulator::Emulator;
use serde_json::Value;
use tokio::time::Instant;

use super::tenure::Held;
use crate::ApiServer;

/// Something that must never happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Servers that are not ours to touch: by system id, and whose they are.
pub type Foreign = BTreeMap<String, String>;

/// The witness of one run; clones are the same witness.
#[derive(Clone)]
pub struct Witness {
    pub(super) server: ApiServer,
    pub(super) emulator: Emulator,
    foreign: Arc<Mutex<Foreign>>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
pub(super) struct Seen {
    violations: Vec<Violation>,
    /// Allocations nobody answered, by agent name: when they were sent.
    pub unanswered: BTreeMap<String, Instant>,
    /// What each object has had so far, by its uid.
    pub held: BTreeMap<String, Held>,
    /// The uids of what was shown as provisioned.
    pub provisioned: BTreeSet<String>,
    paused_at: Option<Instant>,
    released_by_hand: BTreeSet<String>,
}

/// MAAS may carry out what nobody waits for until then.
pub(super) const LATE: Duration = Duration::from_secs(90);
/// A pass that began before a pause may take so long to notice.
const PASS: Duration = Duration::from_secs(20);

impl Witness {
    pub fn new(server: ApiServer, emulator: Emulator) -> Self {
        Self { server, emulator, foreign: Arc::default(), seen: Arc::default() }
    }

    /// This server is somebody else's from now on.
    pub fn is_foreign(&self, system_id: &str, whose: &str) {
        self.foreign.lock().unwrap_or_else(PoisonError::into_inner).insert(system_id.to_owned(), whose.to_owned());
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What must not have happened and did.
    pub fn violations(&self) -> Vec<Violation> {
        self.seen().violations.clone()
    }

    pub fn violated(&self, words: String) {
        self.seen().violations.push(Violation(words));
    }

    /// People released this server, or removed it.
    pub fn is_released_by_hand(&self, system_id: &str) {
        self.seen().released_by_hand.insert(system_id.to_owned());
    }

    /// Whether the server a call is about is somebody else's, or was released by people.
    pub fn was_taken_by_hand(&self, request: &Request<Bytes>) -> bool {
        let foreign = self.foreign.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = self.seen();
        request.uri().path().split('/').any(|part| foreign.contains_key(part) || seen.released_by_hand.contains(part))
    }

    /// A call is about to be carried out in MAAS.
    pub fn before_maas(&self, request: &Request<Bytes>) {
        if *request.method() == Method::GET {
            return;
        }
        self.before_dns(request);
        let path = request.uri().path().trim_start_matches("/MAAS/api/2.0/").trim_matches('/').to_owned();
        let mut parts = path.split('/');
        let (Some("machines" | "nodes"), Some(id)) = (parts.next(), parts.next()) else { return };
        let operation = operation(request);
        if let Some(whose) = self.foreign.lock().unwrap_or_else(PoisonError::into_inner).get(id) {
            self.violated(format!("{operation} of server {id}, which is {whose}"));
            return;
        }
        let Some(row) = self.row(id) else { return };
        let marked = row.marks.get("metalshift-claim").cloned().unwrap_or_default();
        let holders: Vec<Value> =
            self.server.objects("maasmachines").into_iter().filter(|object| claim_of(object).as_deref() == Some(&*marked)).collect();
        match operation.as_str() {
            // A server without marks, or with our own, may be marked.
            "set_workload_annotations" => {
                let wanted = parameter(request.body(), "metalshift-claim").unwrap_or_default();
                if !marked.is_empty() && marked != wanted {
                    self.violated(format!("server {id} of {marked} is marked for {wanted}"));
                }
            }
            "release" | "deploy" | "power_on" | "PUT" | "link_subnet" | "unlink_subnet" => {
                // A late call finds what its own earlier effect or another's left: MAAS refuses it, or it changes nothing.
                if row.owner.is_none() && operation == "release" {
                    return;
                }
                if operation == "unlink_subnet" && self.takes_its_own_address(request, id) {
                    return;
                }
                if operation == "link_subnet" {
                    self.before_link(request, id, &holders);
                }
                if marked.is_empty() || holders.is_empty() {
                    self.violated(format!("{operation} of server {id}, whose marks are of nobody ({marked:?})"));
                }
                let named = parameter(request.body(), "comment").and_then(|comment| comment.rsplit(' ').next().map(str::to_owned));
                if let Some(named) = named
                    && !holders.iter().any(|object| name_of(object) == named)
                {
                    self.violated(format!("{operation} of server {id} for {named}, whose it is not"));
                }
                if holders.iter().any(|object| self.is_paused(object)) {
                    self.violated(format!("{operation} of server {id} while it is paused"));
                }
            }
            _ => {}
        }
    }

    /// A call was carried out in MAAS.
    pub fn after_maas(&self, request: &Request<Bytes>) {
        if *request.method() == Method::GET {
            return;
        }
        let mut running: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in self.rows() {
            if matches!(row.status.as_str(), "Deploying" | "Deployed")
                && let Some(claim) = row.marks.get("metalshift-claim")
            {
                running.entry(claim.clone()).or_default().push(row.system_id);
            }
        }
        for (claim, servers) in running.iter().filter(|(_, servers)| servers.len() > 1) {
            self.violated(format!("{claim} has more than one server: {servers:?}"));
        }
    }

    /// A call is about to be carried out in Kubernetes.
    pub fn before_kubernetes(&self, method: &Method, path: &str, body: &[u8]) {
        self.before_cluster_is_let_go(method, path, body);
        self.before_claim(method, path, body);
        if *method != Method::PATCH || !path.contains("/maasmachines/") || path.ends_with("/status") {
            return;
        }
        let Ok(change) = serde_json::from_slice::<Value>(body) else { return };
        let Some(finalizers) = change["metadata"]["finalizers"].as_array() else { return };
        if !finalizers.is_empty() {
            return;
        }
        let name = path.rsplit('/').next().unwrap_or_default();
        let Some(object) = self.server.objects("maasmachines").into_iter().find(|object| object["metadata"]["name"] == name) else {
            return;
        };
        let guard = &change["metadata"]["resourceVersion"];
        if guard.is_string() && *guard != object["metadata"]["resourceVersion"] {
            return;
        }
        let Some(claim) = claim_of(&object) else { return };
        let held: Vec<String> = self.rows().into_iter().filter(|row| row.is_held_for(&claim)).map(|row| row.system_id).collect();
        if !held.is_empty() {
            self.violated(format!("{name} is let go while {held:?} is still held for it"));
        }
    }

    /// What every object must have when all is well: one server, and a different one each.
    pub fn all_have_one_server(&self) {
        let mut holders: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for object in self.server.objects("maasmachines") {
            let Some(claim) = claim_of(&object) else { continue };
            let held: Vec<String> = self.rows().into_iter().filter(|row| row.is_held_for(&claim)).map(|row| row.system_id).collect();
            if held.len() != 1 {
                self.violated(format!("{} holds {held:?} when all is quiet", name_of(&object)));
            }
            if let Some(id) = object["spec"]["systemID"].as_str() {
                holders.entry(id.to_owned()).or_default().push(name_of(&object));
            }
        }
        for (id, names) in holders.iter().filter(|(_, names)| names.len() > 1) {
            self.violated(format!("server {id} is recorded by {names:?}"));
        }
    }

    /// What must be true when every object is gone.
    pub fn everything_was_returned(&self) {
        self.no_address_is_left();
        let foreign = self.foreign.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for row in self.rows().into_iter().filter(|row| row.owner.is_some() && !foreign.contains_key(&row.system_id)) {
            self.violated(format!(
                "server {} is left as {} of {:?} with agent name {:?}",
                row.system_id, row.status, row.owner, row.agent_name
            ));
        }
    }

    /// People paused the cluster, or let it go on.
    pub fn paused(&self, paused: bool) {
        self.seen().paused_at = paused.then(Instant::now);
    }

    /// Whether the object has been paused for so long that nothing from before can be on its way any more.
    pub(super) fn is_paused(&self, object: &Value) -> bool {
        if self.seen().paused_at.is_none_or(|since| since.elapsed() <= LATE + PASS) {
            return false;
        }
        let annotated = object["metadata"]["annotations"]["cluster.x-k8s.io/paused"].is_string();
        let name = object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"].clone();
        let clusters = self.server.objects("clusters");
        annotated || clusters.iter().any(|cluster| cluster["metadata"]["name"] == name && cluster["spec"]["paused"] == Value::Bool(true))
    }

    pub(super) fn row(&self, id: &str) -> Option<Row> {
        self.rows().into_iter().find(|row| row.system_id == id)
    }

    fn rows(&self) -> Vec<Row> {
        self.emulator.world(|world| {
            let row = |machine: &maas_emulator::world::machine::Machine| Row {
                owner: machine.owner.map(|owner| world.user_name(owner).to_owned()),
                status: machine.status.name().to_owned(),
                system_id: machine.system_id.clone(),
                agent_name: machine.agent_name.clone(),
                marks: machine.annotations.clone(),
            };
            world.all_machines().map(row).collect()
        })
    }
}

/// What the witness wants to know of a server.
pub(super) struct Row {
    system_id: String,
    pub owner: Option<String>,
    pub status: String,
    agent_name: String,
    pub marks: BTreeMap<String, String>,
}

impl Row {
    fn is_held_for(&self, claim: &str) -> bool {
        let marked = self.marks.get("metalshift-claim");
        self.owner.is_some() && marked.map_or(self.agent_name == claim, |mark| mark == claim)
    }
}

/// What a call of MAAS does: its operation, or its method if it has none.
pub(super) fn operation(request: &Request<Bytes>) -> String {
    parameter(request.uri().query().unwrap_or_default().as_bytes(), "op").unwrap_or_else(|| request.method().to_string())
}

pub(super) fn parameter(form: &[u8], name: &str) -> Option<String> {
    form_urlencoded::parse(form).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

pub(super) fn claim_of(object: &Value) -> Option<String> {
    let text = object["metadata"]["annotations"]["metalshift.io/claim"].as_str()?;
    serde_json::from_str::<Value>(text).ok()?["claim"].as_str().map(str::to_owned)
}

pub(super) fn name_of(object: &Value) -> String {
    format!("{}/{}", object["metadata"]["namespace"].as_str().unwrap_or_default(), object["metadata"]["name"].as_str().unwrap_or_default())
}
