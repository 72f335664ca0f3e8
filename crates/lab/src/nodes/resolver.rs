//! The lab's resolver: the names of the lab, and nothing else. The host's resolver is out of reach on purpose.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
    path::Path,
};

use rustix::mount::mount_bind;

use crate::{LabDirectory, LabError, network::GATEWAY, probe::Probe, process::Component};

/// Lets every process of the lab ask the lab's resolver: this mount namespace is not the host's.
pub(super) fn use_here(directory: &LabDirectory) -> Result<(), LabError> {
    let ours = directory.path().join("resolv.conf");
    fs::write(&ours, format!("nameserver {GATEWAY}\nsearch lab\n")).map_err(LabError::io("write", &ours))?;
    let file = Path::new("/etc/resolv.conf");
    // Often a link into /run, which may point nowhere; then nobody here can ask the host's resolver anyway.
    let Ok(target) = file.canonicalize() else { return Ok(()) };
    mount_bind(&ours, &target).map_err(|error| LabError::io("replace", target)(error.into()))
}

pub(super) fn component(directory: &LabDirectory, names: &Path, program: &Path) -> Result<Component, LabError> {
    let configuration = directory.path().join("Corefile");
    let content = format!(
        ". {{\n  bind {GATEWAY} 127.0.0.1\n  errors\n  hosts {} {{\n    ttl 5\n    reload 500ms\n    fallthrough\n  }}\n  \
         template ANY ANY . {{\n    rcode NXDOMAIN\n  }}\n}}\n",
        names.display()
    );
    fs::write(&configuration, content).map_err(LabError::io("write", &configuration))?;
    let address = SocketAddr::new(IpAddr::V4(GATEWAY), 53);
    Ok(Component {
        name: "resolver".to_owned(),
        program: program.to_owned(),
        arguments: vec!["-conf".into(), configuration.display().to_string()],
        address: format!("dns://{address}"),
        probe: Probe::Tcp { address },
    })
}
