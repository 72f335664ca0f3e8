//! What the witness knows of addresses from pools: a server has the one that its object's own claim was given, nobody else gets an address
//! while a server still has it, claims of others are not touched, and those of objects that are gone do not stay.

use bytes::Bytes;
use http::{Method, Request};
use maas_emulator::world::network::AddressKind;
use serde_json::Value;

use super::witness::{Witness, name_of, parameter};

fn draws_from_a_pool(object: &Value) -> bool {
    object["spec"]["staticIP"]["poolRef"].is_object()
}

fn owns(object: &Value, claim: &Value) -> bool {
    let owners = claim["metadata"]["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
    owners.iter().any(|owner| owner["uid"] == object["metadata"]["uid"])
}

/// Whether our finalizer is among these.
fn holds(finalizers: &Value) -> bool {
    finalizers.as_array().is_some_and(|finalizers| finalizers.iter().any(|name| name == api::names::FINALIZER_ADDRESS))
}

impl Witness {
    /// The controllers make claims and hold addresses, read both, and nothing else.
    pub(super) fn before_claim(&self, method: &Method, path: &str, body: &[u8]) {
        let is_claim = path.contains("/ipaddressclaims");
        if (!is_claim && !path.contains("/ipaddresses")) || *method == Method::GET {
            return;
        }
        if !is_claim && *method == Method::PATCH {
            self.before_hold(path, body);
            return;
        }
        if !is_claim || *method != Method::POST {
            self.violated(format!("{method} of {path}, which is its provider's or somebody else's"));
            return;
        }
        let claim: Value = serde_json::from_slice(body).unwrap_or_default();
        let objects = self.server.objects("maasmachines");
        let wanting = objects.iter().find(|object| name_of(object) == name_of(&claim));
        if let Some(object) = wanting.filter(|object| self.is_paused(object)) {
            self.violated(format!("an address is claimed for {} while it is paused", name_of(object)));
        }
    }

    /// An address is held for an object that lives and whose claim it was given to, and let go when no server has it.
    fn before_hold(&self, path: &str, body: &[u8]) {
        let change: Value = serde_json::from_slice(body).unwrap_or_default();
        let addresses = self.server.objects("ipaddresses");
        let Some(address) = addresses.iter().find(|address| path.rsplit('/').next() == address["metadata"]["name"].as_str()) else {
            return;
        };
        let metadata = change["metadata"].as_object().cloned().unwrap_or_default();
        if change.as_object().is_none_or(|change| change.len() != 1) || metadata.keys().ne(["finalizers", "resourceVersion"]) {
            self.violated(format!("address {} is changed: {change}", name_of(address)));
        }
        if metadata.get("resourceVersion") != Some(&address["metadata"]["resourceVersion"]) {
            return;
        }
        let objects = self.server.objects("maasmachines");
        let object = objects.iter().find(|object| address["spec"]["claimRef"]["name"] == object["metadata"]["name"]);
        if let Some(object) = object.filter(|object| self.is_paused(object)) {
            self.violated(format!("address {} of {} is changed while that is paused", name_of(address), name_of(object)));
        }
        let claims = self.server.objects("ipaddressclaims");
        let is_claimed = |object: &Value| claims.iter().any(|claim| name_of(claim) == name_of(object) && owns(object, claim));
        let ip = address["spec"]["address"].as_str().unwrap_or_default();
        match (holds(&metadata["finalizers"]), object) {
            (true, Some(object)) if is_claimed(object) => {}
            (true, _) => self.violated(format!("address {ip} is held, and it is no claim of an object's that it was given to")),
            (false, _) => {
                let holders = self.servers_with(ip);
                if !holders.is_empty() {
                    self.violated(format!("address {ip} is let go while {holders:?} still has it"));
                }
            }
        }
    }

    /// The address that the claim of an object was given, if it has one. What is held for it stays its own when the claim is gone.
    fn claimed(&self, object: &Value) -> Option<String> {
        let claims = self.server.objects("ipaddressclaims");
        let claim = claims.iter().find(|claim| name_of(claim) == name_of(object) && owns(object, claim));
        let given = self.server.objects("ipaddresses");
        let is_held =
            |given: &&Value| given["spec"]["claimRef"]["name"] == object["metadata"]["name"] && holds(&given["metadata"]["finalizers"]);
        let given = match claim {
            Some(claim) => given.iter().find(|given| given["metadata"]["name"] == claim["status"]["addressRef"]["name"])?,
            None => given.iter().find(is_held)?,
        };
        given["spec"]["address"].as_str().map(str::to_owned)
    }

    /// A server of these objects is about to get an address.
    pub(super) fn before_link(&self, request: &Request<Bytes>, id: &str, holders: &[Value]) {
        let address = parameter(request.body(), "ip_address");
        for object in holders.iter().filter(|object| draws_from_a_pool(object)) {
            let claimed = self.claimed(object);
            if address != claimed {
                self.violated(format!("server {id} of {} gets {address:?}, and its claim was given {claimed:?}", name_of(object)));
            }
        }
    }

    /// The pool gives an address: whoever had it before must be done with it.
    pub(super) fn address_is_given(&self, address: &str, claim: &str) {
        let holders = self.servers_with(address);
        if !holders.is_empty() {
            self.violated(format!("{address} is given to claim {claim} while {holders:?} still has it"));
        }
    }

    /// A pool has the address of this claim back: the object's server must be done with it.
    pub(super) fn address_goes_back(&self, claim: &str) {
        let objects = self.server.objects("maasmachines");
        let address =
            objects.iter().find(|object| object["metadata"]["name"] == claim).and_then(|object| object["spec"]["staticIP"]["ip"].as_str());
        let holders = address.map(|address| self.servers_with(address)).unwrap_or_default();
        if !holders.is_empty() {
            self.violated(format!("the address of {claim} goes back to its pool while {holders:?} still has it"));
        }
    }

    fn servers_with(&self, wanted: &str) -> Vec<String> {
        self.emulator.world(|world| {
            let has = |interface: &maas_emulator::world::network::Interface| {
                world.addresses.values().any(|address| {
                    address.kind == AddressKind::Sticky
                        && address.interfaces.contains(&interface.id)
                        && address.ip.is_some_and(|ip| ip.to_string() == wanted)
                })
            };
            let machines = world.all_machines();
            machines
                .filter(|machine| world.interfaces.values().any(|interface| interface.machine == machine.id && has(interface)))
                .map(|machine| machine.system_id.clone())
                .collect()
        })
    }

    /// When all is quiet, the server of every object that was handed over has the address its claim was given, and no other server has it.
    pub fn all_have_their_claimed_address(&self) {
        let provisioned = |object: &&Value| object["spec"]["providerID"].is_string() && draws_from_a_pool(object);
        for object in self.server.objects("maasmachines").iter().filter(provisioned) {
            let Some(address) = self.claimed(object) else {
                self.violated(format!("{} has no claim when all is quiet", name_of(object)));
                continue;
            };
            let (has, wanted) = (self.servers_with(&address), object["spec"]["systemID"].as_str().unwrap_or_default());
            if has != [wanted] || object["spec"]["staticIP"]["ip"] != address.as_str() {
                self.violated(format!(
                    "{} claimed {address}, has {} and server {wanted}, and {has:?} has the address",
                    name_of(object),
                    object["spec"]["staticIP"]
                ));
            }
        }
    }

    /// Every claim that was made for an object is gone with its address, and the person's is there.
    pub(super) fn only_the_persons_claim_is_left(&self) {
        let held: Vec<String> =
            self.server.objects("ipaddresses").iter().filter(|address| holds(&address["metadata"]["finalizers"])).map(name_of).collect();
        if !held.is_empty() {
            self.violated(format!("addresses are held for nobody: {held:?}"));
        }
        let (made, others): (Vec<Value>, Vec<Value>) =
            self.server.objects("ipaddressclaims").into_iter().partition(|claim| claim["metadata"]["ownerReferences"].is_array());
        if !made.is_empty() {
            self.violated(format!("claims are left: {:?}", made.iter().map(name_of).collect::<Vec<_>>()));
        }
        if others.len() != 1 {
            self.violated(format!("of the person's claim is left: {:?}", others.iter().map(name_of).collect::<Vec<_>>()));
        }
    }
}
