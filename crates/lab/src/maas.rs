//! The MAAS of a lab: `metalshift emulator` as one more component. At level nodes its machines are machines of this lab and it has an
//! address in the lab's network; below, its machines exist only in it and it answers on loopback.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{LabDirectory, LabError, Options, control_plane::local, network, ports::PortBlock, probe::Probe, process::Component};

/// Its name in `lab status`, and that of its log.
pub const NAME: &str = "maas";
/// Where its API answers, as at a real one.
const PORT: u16 = 5240;
/// Ports of a block below level nodes.
const API_PORT: u16 = 20;
const DNS_PORT: u16 = 21;

/// What the MAAS of a lab holds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Maas {
    /// The fleet file; the emulator's own fleet if there is none.
    pub fleet: Option<PathBuf>,
}

/// Where a MAAS is reached in the lab's network.
pub(crate) fn address_inside() -> SocketAddr {
    SocketAddr::new(network::MAAS.into(), PORT)
}

/// The component, if this lab shall have a MAAS. The fleet is copied: the lab must be able to start it again when the file is gone.
pub(crate) fn component(
    options: &Options,
    directory: &LabDirectory,
    program: &Path,
    ports: Option<&PortBlock>,
    outside: Option<u16>,
) -> Result<Option<Component>, LabError> {
    let Some(maas) = &options.maas else { return Ok(None) };
    let (api, dns) = match ports {
        Some(ports) => (local(ports.port(API_PORT)), local(ports.port(DNS_PORT))),
        None => (address_inside(), SocketAddr::new(network::MAAS.into(), 53)),
    };
    let state = directory.path().join("maas.json");
    let mut arguments: Vec<String> =
        ["emulator", "--listen", &api.to_string(), "--dns", &dns.to_string(), "--state"].map(str::to_owned).into();
    arguments.push(state.display().to_string());
    if let Some(fleet) = &maas.fleet {
        let copy = directory.path().join("fleet.yaml");
        fs::copy(fleet, &copy).map_err(LabError::io("copy the fleet file", fleet))?;
        arguments.extend(["--fleet".to_owned(), copy.display().to_string()]);
    }
    if ports.is_none() {
        arguments.extend(["--lab".to_owned(), options.name.to_string()]);
    }
    let reached = outside.map_or(api, local);
    Ok(Some(Component {
        name: NAME.to_owned(),
        program: program.to_owned(),
        arguments,
        address: format!("http://{reached}/MAAS"),
        probe: Probe::Http { address: api, path: "/MAAS/api/2.0/version/" },
    }))
}
