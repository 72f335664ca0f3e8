//! What the witness knows of nodes: the controllers remove those of servers that never were anybody's machine, and no others.

use http::Method;
use serde_json::Value;

use super::witness::{Witness, name_of};

impl Witness {
    /// A call is about to be carried out in the workload cluster.
    pub(super) fn before_workload(&self, method: &Method, path: &str) {
        let Some(node) = path.strip_prefix("/api/v1/nodes/").filter(|_| *method == Method::DELETE) else { return };
        let server = self.emulator.world(|world| {
            world.all_machines().find(|machine| machine.hostname == node).map(|machine| Value::from(machine.system_id.clone()))
        });
        let Some(server) = server else {
            self.violated(format!("node {node} is removed, which is no server of ours"));
            return;
        };
        let in_use = |object: &Value| object["spec"]["providerID"].is_string() && object["spec"]["systemID"] == server;
        for object in self.server.objects("maasmachines").iter().filter(|object| in_use(object)) {
            self.violated(format!("node {node} is removed, which is that of {}", name_of(object)));
        }
    }
}
