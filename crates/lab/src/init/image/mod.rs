//! The files that make a Debian root the image of a lab machine: units, settings of containerd, kubelet and the boot agents.
//!
//! Written by the outside into a machine's root directory before it boots. Nothing in here depends on the user-data, so whatever a
//! bootstrap provider generates works without knowing that it runs in a lab.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::layout::Layout;
use super::unit::UnitName;
use super::unit::install::{InstallError, UnitFiles};

/// What differs from lab to lab.
#[derive(Debug, Clone)]
pub struct ImageOptions {
    /// The image of the process that holds a pod's namespaces.
    pub pause_image: String,
    /// Where the network plugins are.
    pub network_plugins: PathBuf,
}

/// Why the files could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A file.
    #[error("cannot write {path}: {source}")]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A link that enables a unit.
    #[error("cannot enable a unit of the image: {0}")]
    Enable(#[from] InstallError),
}

const FILES: [(&str, &str); 13] = [
    ("/etc/systemd/system/containerd.service", include_str!("files/containerd.service")),
    ("/etc/systemd/system/kubelet.service", include_str!("files/kubelet.service")),
    ("/etc/systemd/system/kubelet.service.d/10-kubeadm.conf", include_str!("files/10-kubeadm.conf")),
    ("/etc/systemd/system/kubelet.service.d/20-lab.conf", include_str!("files/20-lab.conf")),
    ("/etc/systemd/system/machine-network.service", include_str!("files/machine-network.service")),
    ("/etc/systemd/system/machine-image.target", include_str!("files/machine-image.target")),
    ("/etc/kubernetes/kubelet.conf.d/10-lab.conf", include_str!("files/kubelet-lab.conf")),
    ("/etc/cloud/cloud.cfg.d/99-lab.cfg", include_str!("files/cloud.cfg")),
    // What the host mounts, swaps to, sets and loads is no business of a machine.
    ("/etc/fstab", ""),
    ("/etc/sysctl.conf", ""),
    ("/etc/modules", ""),
    ("/etc/rc.local", ""),
    // Ignition wants to know the kind of labels, even where there are none.
    ("/etc/selinux/config", "SELINUX=disabled\nSELINUXTYPE=targeted\n"),
];

const ENABLED: [&str; 3] = ["containerd.service", "kubelet.service", "machine-network.service"];

/// Come before programs of the same name in every search path.
const PROGRAMS: [(&str, &str); 3] = [
    ("/usr/local/sbin/containerd-answers", include_str!("files/containerd-answers.sh")),
    ("/usr/local/sbin/kubeadm", include_str!("files/kubeadm.sh")),
    ("/usr/local/sbin/setfiles", include_str!("files/setfiles.sh")),
];

/// Writes the image's files below a root whose /etc/systemd/system holds nothing of the host.
pub fn write(root: &Path, options: &ImageOptions) -> Result<(), ImageError> {
    let layout = Layout::at(root);
    for (path, text) in FILES {
        put(&layout.path(path), text)?;
    }
    put(&layout.path("/etc/containerd/config.toml"), &containerd_config(options))?;
    for (path, text) in PROGRAMS {
        let path = layout.path(path);
        put(&path, text)?;
        fs::set_permissions(&path, Permissions::from_mode(0o755)).map_err(|source| ImageError::Write { path, source })?;
    }
    for unit in ENABLED {
        let directory = layout.administrator_units();
        let name =
            UnitName::parse(unit).map_err(|error| ImageError::Write { path: directory.join(unit), source: io::Error::other(error) })?;
        enable(&layout, &name)?;
    }
    Ok(())
}

/// The links must be right for the machine, not for the directory its root is mounted on.
fn enable(layout: &Layout, unit: &UnitName) -> Result<(), ImageError> {
    let directory = layout.administrator_units();
    let definition = UnitFiles::new(layout).read(unit);
    for target in &definition.install.wanted_by {
        let wants = directory.join(format!("{target}.wants"));
        let link = wants.join(unit.as_str());
        let failed = |source| ImageError::Write { path: link.clone(), source };
        fs::create_dir_all(&wants).map_err(failed)?;
        if !link.is_symlink() {
            std::os::unix::fs::symlink(format!("/etc/systemd/system/{unit}"), &link).map_err(failed)?;
        }
    }
    Ok(())
}

fn containerd_config(options: &ImageOptions) -> String {
    // Strings of TOML and of JSON are written alike.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    format!(
        "version = 2\n\
         [plugins.\"io.containerd.grpc.v1.cri\"]\n\
         \x20 sandbox_image = {}\n\
         \x20 restrict_oom_score_adj = true\n\
         \x20 [plugins.\"io.containerd.grpc.v1.cri\".cni]\n\
         \x20   bin_dir = {}\n\
         \x20   conf_dir = \"/etc/cni/net.d\"\n",
        quoted(&options.pause_image),
        quoted(&options.network_plugins.to_string_lossy()),
    )
}

fn put(path: &Path, text: &str) -> Result<(), ImageError> {
    let failed = |source| ImageError::Write { path: path.to_owned(), source };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    fs::write(path, text).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init::unit::install::EnabledState;

    #[test]
    fn every_unit_of_the_image_is_understood_whole_and_enabled() {
        let directory = tempfile::tempdir().unwrap();
        let options = ImageOptions { pause_image: "registry.k8s.io/pause:3.10.1".into(), network_plugins: "/usr/lib/cni".into() };
        write(directory.path(), &options).unwrap();
        write(directory.path(), &options).unwrap();
        let layout = Layout::at(directory.path());
        let files = UnitFiles::new(&layout);
        for unit in ENABLED {
            let name = UnitName::parse(unit).unwrap();
            let definition = files.read(&name);
            assert_eq!(definition.notes, [""; 0], "{unit}");
            assert_eq!(definition.service.refusal, None, "{unit}");
            assert_eq!(files.enabled_state(&name), EnabledState::Enabled, "{unit}");
        }
        let kubelet = files.read(&UnitName::parse("kubelet.service").unwrap());
        assert_eq!(kubelet.service.exec_start.len(), 1);
        assert_eq!(kubelet.service.restart_after, std::time::Duration::from_secs(1));
    }
}
