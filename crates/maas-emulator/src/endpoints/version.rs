//! `version/`: which MAAS this is, for everybody.

use serde_json::json;

use crate::http::answer::{Answer, Reply};
use crate::http::call::Call;
use crate::http::route::{Endpoint, Operation};
use crate::world::World;

pub const ENDPOINTS: &[Endpoint] = &[Endpoint::public("version/", &[Operation::get(read).anonymous()])];

#[expect(clippy::unnecessary_wraps, reason = "a handler like the others")]
fn read(world: &mut World, _: &Call) -> Reply {
    Ok(Answer::compact_json(&json!({
        "version": world.version.full(),
        "subversion": "",
        "capabilities": [
            "networks-management",
            "static-ipaddresses",
            "ipv6-deployment-ubuntu",
            "devices-management",
            "storage-deployment-ubuntu",
            "network-deployment-ubuntu",
            "bridging-interface-ubuntu",
            "bridging-automatic-ubuntu",
            "authenticate-api",
        ],
    })))
}
