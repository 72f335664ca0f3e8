//! The provider as a component of a lab that is up: it is started again when it ends, and ends with the lab.

use std::path::Path;

use crate::{control_plane::local, ports::PortBlock, probe::Probe, process::Component};

/// Its name in `lab status`, and that of its log.
pub const NAME: &str = "provider";
/// The port of a block below level nodes where it tells whether it is well.
const HEALTH_PORT: u16 = 22;
/// The same in a network of the lab's own, behind those of Cluster API.
const HEALTH_PORT_INSIDE: u16 = 9450;

/// The component: the `metalshift` program with these arguments.
pub(crate) fn component(program: &Path, mut arguments: Vec<String>, ports: Option<&PortBlock>) -> Component {
    let health = local(ports.map_or(HEALTH_PORT_INSIDE, |ports| ports.port(HEALTH_PORT)));
    arguments.insert(0, "manage".to_owned());
    arguments.push(format!("--health-addr={health}"));
    Component {
        name: NAME.to_owned(),
        program: program.to_owned(),
        arguments,
        address: format!("http://{health}"),
        probe: Probe::Http { address: health, path: "/healthz" },
    }
}
