//! The MAAS of a lab: `metalshift emulator` as one more component. At level nodes its machines are machines of this lab and it has an
//! address in the lab's network; below, its machines exist only in it and it answers on loopback.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    LabDirectory, LabError, Options, control_plane::local, network, ports::PortBlock, private_file::write_private, probe::Probe,
    process::Component,
};

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

/// The component, if this lab shall have a MAAS. The fleet is copied: the lab must be able to start it again when the file is gone. The copy
/// has keys in it and lies where every account may look, so it is its owner's alone, whatever the file is.
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
        write_private(&copy, fs::read(fleet).map_err(LabError::io("read the fleet file", fleet))?)?;
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
        // A call of the API would be in its journal, and a fault that is meant for somebody else would strike it.
        probe: Probe::Http { address: api, path: "/emulator/health" },
    }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::Level;

    #[test]
    fn the_copy_of_a_fleet_that_everybody_may_read_is_its_owners_alone() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("source.yaml");
        fs::write(&file, "users: [{name: ada, keys: [{key: 'a:b:c'}]}]").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let options = Options::new(Level::Nodes).with_maas(Some(file.clone()));
        let directory = LabDirectory::in_labs(place.path(), options.name.clone());
        fs::create_dir(directory.path()).unwrap();
        let component = component(&options, &directory, Path::new("metalshift"), None, None).unwrap().unwrap();
        let copy = directory.path().join("fleet.yaml");
        assert!(component.arguments.contains(&copy.display().to_string()), "{:?}", component.arguments);
        assert_eq!(fs::read(&copy).unwrap(), fs::read(&file).unwrap());
        assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
