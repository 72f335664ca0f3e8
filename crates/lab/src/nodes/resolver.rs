//! The lab's resolver: the names of the lab, domains somebody in the lab answers for, and nothing else. The host's resolver is out of
//! reach on purpose.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rustix::mount::mount_bind;

use crate::{LabDirectory, LabError, names, network::GATEWAY, probe::Probe, process::Component};

/// The domain of the lab's own names.
const OWN: &str = "lab";

/// Lets every process of the lab ask the lab's resolver: this mount namespace is not the host's.
pub(super) fn use_here(directory: &LabDirectory) -> Result<(), LabError> {
    let ours = directory.path().join("resolv.conf");
    fs::write(&ours, format!("nameserver {GATEWAY}\nsearch {OWN}\n")).map_err(LabError::io("write", &ours))?;
    let file = Path::new("/etc/resolv.conf");
    // Often a link into /run, which may point nowhere; then nobody here can ask the host's resolver anyway.
    let Ok(target) = file.canonicalize() else { return Ok(()) };
    mount_bind(&ours, &target).map_err(|error| LabError::io("replace", target)(error.into()))
}

/// The resolver's configuration, which it reads again when it changes.
pub(crate) struct Resolver {
    configuration: PathBuf,
    names: PathBuf,
    /// Domains with the server that answers for each.
    forwarded: Mutex<BTreeMap<String, SocketAddr>>,
}

impl Resolver {
    /// Writes a configuration with the lab's names and these domains.
    pub fn configure(configuration: PathBuf, names: &Path, forwarded: &BTreeMap<String, SocketAddr>) -> Result<Self, LabError> {
        let forwarded: BTreeMap<String, SocketAddr> =
            forwarded.iter().map(|(domain, server)| Ok((checked(domain)?, *server))).collect::<Result<_, LabError>>()?;
        let resolver = Self { configuration, names: names.to_owned(), forwarded: Mutex::default() };
        resolver.write(&forwarded)?;
        Ok(Self { forwarded: Mutex::new(forwarded), ..resolver })
    }

    /// Passes questions about these domains and no others on to a server. A domain that cannot be is told, and keeps no other from it.
    pub fn forward(&self, server: SocketAddr, domains: &[String]) -> Result<(), LabError> {
        let (domains, refused): (Vec<_>, Vec<_>) = domains.iter().map(|domain| checked(domain)).partition(Result::is_ok);
        let domains = domains.into_iter().filter_map(Result::ok);
        let mut forwarded = self.forwarded.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = forwarded.clone();
        changed.retain(|_, other| *other != server);
        changed.extend(domains.map(|domain| (domain, server)));
        if changed != *forwarded {
            self.write(&changed)?;
            *forwarded = changed;
        }
        refused.into_iter().next().map_or(Ok(()), |refused| refused.map(drop))
    }

    pub fn component(&self, program: &Path) -> Component {
        let address = SocketAddr::new(IpAddr::V4(GATEWAY), 53);
        Component {
            name: "resolver".to_owned(),
            program: program.to_owned(),
            arguments: vec!["-conf".into(), self.configuration.display().to_string()],
            address: format!("dns://{address}"),
            probe: Probe::Tcp { address },
        }
    }

    fn write(&self, forwarded: &BTreeMap<String, SocketAddr>) -> Result<(), LabError> {
        // Replaced whole: the resolver may read it at any moment.
        let unfinished = self.configuration.with_extension("new");
        fs::write(&unfinished, corefile(&self.names, forwarded))
            .and_then(|()| fs::rename(&unfinished, &self.configuration))
            .map_err(LabError::io("write", &self.configuration))
    }
}

/// A domain as the configuration has it; the lab's own and all domains together are not somebody else's.
fn checked(domain: &str) -> Result<String, LabError> {
    let domain = domain.trim_end_matches('.').to_ascii_lowercase();
    names::check(&domain)?;
    if domain == OWN {
        return Err(LabError::Supervisor(format!("the lab's resolver answers for the domain {domain} itself: choose another one")));
    }
    Ok(domain)
}

fn corefile(names: &Path, forwarded: &BTreeMap<String, SocketAddr>) -> String {
    let listen = format!("bind {GATEWAY} 127.0.0.1\n  errors");
    let mut text = format!(
        ". {{\n  {listen}\n  reload 2s 1s\n  hosts {} {{\n    ttl 5\n    reload 500ms\n    fallthrough\n  }}\n  \
         template ANY ANY . {{\n    rcode NXDOMAIN\n  }}\n}}\n",
        names.display()
    );
    for (domain, server) in forwarded {
        // A server that is started again is asked at once: without the count of its failures nobody calls it dead.
        let _ = writeln!(text, "{domain} {{\n  {listen}\n  forward . {server} {{\n    max_fails 0\n  }}\n}}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_passed_on_until_nobody_answers_for_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("Corefile");
        let server = |port| SocketAddr::from(([10, 88, 0, 1], port));
        let from_the_start = BTreeMap::from([("maas".to_owned(), server(5300))]);
        let resolver = Resolver::configure(path.clone(), Path::new("/hosts"), &from_the_start).unwrap();
        let blocks = || -> Vec<(String, Option<String>)> {
            let text = fs::read_to_string(&path).unwrap();
            let block = |text: &str| {
                let (domain, rest) = text.split_once(' ')?;
                Some((domain.to_owned(), rest.split_once("forward . ").map(|(_, rest)| rest.split(' ').next().unwrap().to_owned())))
            };
            text.split("\n}\n").filter_map(block).collect()
        };
        let own = (".".to_owned(), None);
        let passed_on = |domain: &str, server: &str| (domain.to_owned(), Some(server.to_owned()));
        assert_eq!(blocks(), [own.clone(), passed_on("maas", "10.88.0.1:5300")]);

        resolver.forward(server(5301), &["K8s.Example.".into(), "20.10.in-addr.arpa".into()]).unwrap();
        resolver.forward(server(5300), &[]).unwrap();
        let now = [own, passed_on("20.10.in-addr.arpa", "10.88.0.1:5301"), passed_on("k8s.example", "10.88.0.1:5301")];
        assert_eq!(blocks(), now);

        for bad in ["", ".", "lab", "two words", "a {\n", "10.20.0.0/24"] {
            let refused = resolver.forward(server(5302), &[bad.into(), "fine.example".into()]);
            assert!(refused.is_err(), "{bad:?}");
            assert!(blocks().contains(&passed_on("fine.example", "10.88.0.1:5302")), "{bad:?} keeps no other domain from being passed on");
            resolver.forward(server(5302), &[]).unwrap();
        }
        assert_eq!(blocks(), now);
    }
}
