//! Names the lab's resolver knows: machines, and whatever else a lab serves, such as the endpoint of a cluster.

use std::{
    collections::BTreeMap,
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use crate::LabError;

/// Names of the lab itself: what answers to them, and whose logs are called so. No machine can have them.
const OF_THE_LAB: [&str; 13] = [
    "gateway",
    "localhost",
    "maas",
    "resolver",
    "supervisor",
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "cluster-api",
    "kubeadm-bootstrap",
    "kubeadm-control-plane",
];

/// Whether a machine of this name would take an address or a log away from the lab.
pub(crate) fn is_of_the_lab(name: &str) -> bool {
    OF_THE_LAB.contains(&name)
}

/// The resolver's file of names, which it reads again when it changes.
pub(crate) struct Names {
    path: PathBuf,
    known: Mutex<BTreeMap<String, Vec<Ipv4Addr>>>,
}

impl Names {
    pub fn new(path: PathBuf) -> Self {
        Self { path, known: Mutex::default() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets a name stand for these addresses and no others; for none, it is forgotten.
    pub fn set(&self, name: &str, addresses: &[Ipv4Addr]) -> Result<(), LabError> {
        check(name)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if addresses.is_empty() {
            known.remove(name);
        } else {
            known.insert(name.to_owned(), addresses.to_vec());
        }
        let lines: String =
            known.iter().flat_map(|(name, addresses)| addresses.iter().map(move |address| format!("{address} {name}\n"))).collect();
        // Replaced whole: the resolver may read it at any moment.
        let unfinished = self.path.with_extension("new");
        fs::write(&unfinished, lines).and_then(|()| fs::rename(&unfinished, &self.path)).map_err(LabError::io("write", &self.path))
    }
}

/// Refuses what cannot be a name, or would be more than one in the resolver's files.
pub(crate) fn check(name: &str) -> Result<(), LabError> {
    let plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_'));
    if !plain || name.is_empty() || name.len() > 253 {
        return Err(LabError::Supervisor(format!("{name:?} is no name a resolver can know")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_take_no_name_of_the_lab() {
        assert!(["gateway", "maas", "etcd", "supervisor"].into_iter().all(is_of_the_lab));
        assert!(!["worker-1", "management", "etcd-1", "a-small-01"].into_iter().any(is_of_the_lab));
    }

    #[test]
    fn a_name_may_have_several_addresses_and_be_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let names = Names::new(directory.path().join("hosts"));
        let addresses = [Ipv4Addr::new(10, 88, 0, 16), Ipv4Addr::new(10, 88, 0, 17)];
        names.set("api.lab", &addresses).unwrap();
        assert_eq!(fs::read_to_string(names.path()).unwrap(), "10.88.0.16 api.lab\n10.88.0.17 api.lab\n");
        names.set("api.lab", &[]).unwrap();
        assert_eq!(fs::read_to_string(names.path()).unwrap(), "");
        assert!(names.set("two words", &addresses).is_err());
    }
}
