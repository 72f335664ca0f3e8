//! What the witness knows of fixed addresses on servers: only an object that gave one may take it off again, and none is left in the end.

use bytes::Bytes;
use http::Request;
use maas_emulator::world::{id::Id, network::AddressKind};
use serde_json::Value;

use super::witness::{Witness, parameter};

impl Witness {
    /// Whether the call takes a fixed address off a server that an object has written down as given to it. Then it may, whoever has the
    /// server by now: nobody else can have asked for that address. A call that comes late may find the link gone, which MAAS refuses:
    /// no link ever has the number of another.
    pub(super) fn takes_its_own_address(&self, request: &Request<Bytes>, system_id: &str) -> bool {
        let Some(link) = parameter(request.body(), "id").and_then(|id| id.parse().ok()) else { return false };
        let address = self.emulator.world(|world| world.addresses.get(Id::new(link)).map(|address| address.ip));
        let Some(address) = address else { return true };
        let Some(address) = address.map(|address| address.to_string()) else { return false };
        let gave = |object: &Value| {
            let intent = object["metadata"]["annotations"]["metalshift.io/claim"].as_str().and_then(|text| serde_json::from_str(text).ok());
            let linked = intent.as_ref().and_then(|intent: &Value| intent["linked"].as_array()).cloned().unwrap_or_default();
            linked.iter().any(|linked| linked["server"] == system_id && linked["address"] == address.as_str())
        };
        self.server.objects("maasmachines").iter().any(gave)
    }

    /// No server keeps a fixed address.
    pub(super) fn no_address_is_left(&self) {
        let left: Vec<String> = self.emulator.world(|world| {
            let fixed = world.addresses.values().filter(|address| address.kind == AddressKind::Sticky && !address.interfaces.is_empty());
            fixed.filter_map(|address| address.ip).map(|address| address.to_string()).collect()
        });
        if !left.is_empty() {
            self.violated(format!("servers keep the addresses {left:?}"));
        }
    }
}
