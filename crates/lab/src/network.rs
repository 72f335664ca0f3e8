//! The lab's own network: a bridge that machines hang on, in a network namespace that has no way out. Its gateway is the
//! supervisor's side of the bridge; it knows the way to every machine's pods, as the routers of a data centre would.

use std::{
    fs,
    net::Ipv4Addr,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use ipnet::{IpNet, Ipv4Net};

use crate::{
    LabError,
    command::{run, run_with_input},
    control_plane::SERVICES,
    machine::Wiring,
};

const BRIDGE: &str = "lab0";
/// The supervisor's address; API server, resolver and default route of every machine.
pub(crate) const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);
pub(crate) const MACHINES_PREFIX: u8 = 16;
/// The address of the lab's MAAS, where it has one: its API and its name server.
pub(crate) const MAAS: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 2);
/// The first machine's address; the fifteen before it are for whatever else a lab serves.
const FIRST_MACHINE: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 16);
/// Pod networks, a /24 a machine.
const FIRST_PODS: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 0);
/// As many networks of pods are there: a /14 of them.
pub(crate) const MOST_MACHINES: u16 = 1024;
/// Networks of the lab's own, which nobody else's may overlap.
const OWN_NETWORKS: [(&str, &str); 4] = [
    ("10.88.0.0/16", "the lab's machines"),
    ("10.244.0.0/14", "the pods"),
    (SERVICES, "the services"),
    ("127.0.0.0/8", "this machine itself"),
];

/// How long a new process may take to be in its namespaces.
const ENTER_WITHIN: Duration = Duration::from_secs(10);

/// The place of a machine in the lab's network, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(pub u16);

impl Place {
    pub fn address(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(FIRST_MACHINE.to_bits() + u32::from(self.0))
    }

    /// The subnet of the pods on this machine.
    pub fn pods(self) -> String {
        format!("{}/24", Ipv4Addr::from_bits(FIRST_PODS.to_bits() + (u32::from(self.0) << 8)))
    }

    /// The lab's end of one of the machine's links.
    fn link(self, number: usize) -> String {
        if number == 0 { format!("machine{}", self.0) } else { format!("machine{}-{number}", self.0) }
    }

    /// The hardware address a rack would know the machine by.
    pub fn hardware_address(self) -> String {
        let [high, low] = self.0.to_be_bytes();
        format!("52:54:00:88:{high:02x}:{low:02x}")
    }
}

/// Makes the bridge in the network namespace this process is in.
pub(crate) fn build() -> Result<(), LabError> {
    run_with_input(
        "ip",
        ["-batch", "-"],
        &format!(
            // Without an address of its own the bridge takes the lowest of its links and changes it as machines come and go, while the
            // other machines go on sending to the old one. Addresses of services are rewritten on their way out, but only what has a way out is sent.
            "link set lo up\nlink add {BRIDGE} address 52:54:00:88:ff:ff type bridge\naddr add {GATEWAY}/{MACHINES_PREFIX} dev {BRIDGE}\n\
             addr add {MAAS}/{MACHINES_PREFIX} dev {BRIDGE}\nlink set {BRIDGE} up\n\
             route add {SERVICES} dev {BRIDGE}\n"
        ),
    )?;
    write_sysctl("net/ipv4/ip_forward", "1")?;
    // Machines on one bridge are told a shorter way past the gateway otherwise, which would hide what firewalls do.
    write_sysctl("net/ipv4/conf/all/send_redirects", "0")?;
    write_sysctl(&format!("net/ipv4/conf/{BRIDGE}/send_redirects"), "0")
}

/// Plugs a machine in: `process` is in the machine's network namespace. Power off unplugs it, as the namespace goes.
pub(crate) fn plug_in(place: Place, wiring: &Wiring, process: u32) -> Result<(), LabError> {
    wait_for_own_network(process)?;
    let mut outside = reach(wiring)?;
    let mut inside = vec!["link set lo up".to_owned()];
    for (number, wire) in wiring.interfaces.iter().enumerate() {
        let (link, name) = (place.link(number), &wire.name);
        outside.push(format!("link add {link} type veth peer name {name} address {} netns {process}", wire.hardware_address));
        outside.push(format!("link set {link} master {BRIDGE} up"));
        inside.extend(wire.addresses.iter().map(|address| format!("addr add {address} dev {name}")));
        inside.push(format!("link set {name} up"));
    }
    outside.extend(wiring.addresses().first().map(|first| format!("route replace {} via {first}", place.pods())));
    inside.extend(wiring.gateway.map(|gateway| format!("route add default via {gateway}")));
    run_with_input("ip", ["-batch", "-"], &lines(&outside))?;
    run_with_input("nsenter", ["--net", "--target", &process.to_string(), "ip", "-batch", "-"], &lines(&inside))?;
    Ok(())
}

fn lines(commands: &[String]) -> String {
    commands.iter().flat_map(|command| [command.as_str(), "\n"]).collect()
}

/// What makes the networks of a machine reachable: the bridge has the gateway's address there, or at least a way.
fn reach(wiring: &Wiring) -> Result<Vec<String>, LabError> {
    let own = IpNet::from(Ipv4Net::new_assert(GATEWAY, MACHINES_PREFIX).trunc());
    let networks = wiring.interfaces.iter().flat_map(|wire| &wire.addresses).map(IpNet::trunc).filter(|network| *network != own);
    networks
        .map(|network| match (conflict(&network), wiring.gateway.filter(|gateway| network.contains(gateway))) {
            (Some(conflict), _) => {
                Err(LabError::MachineState { machine: wiring.hostname.clone(), reason: format!("cannot be wired: {conflict}") })
            }
            (None, Some(gateway)) => Ok(format!("addr replace {gateway}/{} dev {BRIDGE}", network.prefix_len())),
            (None, None) => Ok(format!("route replace {network} dev {BRIDGE}")),
        })
        .collect()
}

/// Why machines of the lab cannot be in this network; nothing if they can.
pub fn conflict(network: &IpNet) -> Option<String> {
    let overlaps = |own: &IpNet| own.contains(network) || network.contains(own);
    let (own, whose) = OWN_NETWORKS.iter().find(|(own, _)| own.parse().is_ok_and(|own| overlaps(&own)))?;
    Some(format!("subnet {network} overlaps {own}, the network of {whose}"))
}

/// `unshare` needs a moment until its process is where it shall be; what is configured before would land in the lab's network.
fn wait_for_own_network(process: u32) -> Result<(), LabError> {
    let ours = fs::read_link("/proc/self/ns/net").map_err(LabError::io("read", "/proc/self/ns/net"))?;
    let path = format!("/proc/{process}/ns/net");
    let deadline = Instant::now() + ENTER_WITHIN;
    loop {
        let theirs = fs::read_link(&path).map_err(LabError::io("read", &path))?;
        if theirs != ours {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(LabError::Command {
                command: "unshare --net".to_owned(),
                words: format!("process {process} still is in the lab's own network after {} s", ENTER_WITHIN.as_secs()),
            });
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Sets a kernel parameter of this network namespace.
pub(crate) fn write_sysctl(name: &str, value: &str) -> Result<(), LabError> {
    let path = Path::new("/proc/sys").join(name);
    fs::write(&path, value).map_err(LabError::io("set", path))
}

/// Takes away what [`plug_in`] left on the bridge.
pub(crate) fn unplug(place: Place, wiring: &Wiring) {
    for number in 0..wiring.interfaces.len() {
        // The link is gone already when its machine lost power; this is for a machine that never came up.
        let _ = run("ip", ["link", "delete", &place.link(number)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_that_overlap_the_labs_own_are_told_with_whose_they_are() {
        let said = |network: &str| conflict(&network.parse().unwrap());
        assert_eq!(said("10.20.0.0/16"), None);
        assert_eq!(said("10.245.3.0/24").unwrap(), "subnet 10.245.3.0/24 overlaps 10.244.0.0/14, the network of the pods");
        assert!(said("10.0.0.0/8").unwrap().contains("the lab's machines"));
    }

    #[test]
    fn every_machine_has_addresses_of_its_own() {
        assert_eq!(Place(0).address().to_string(), "10.88.0.16");
        assert_eq!(Place(0).pods(), "10.244.0.0/24");
        assert_eq!(Place(300).address().to_string(), "10.88.1.60");
        assert_eq!(Place(300).pods(), "10.245.44.0/24");
        assert_eq!(Place(MOST_MACHINES - 1).pods(), "10.247.255.0/24", "the last one is in the network of the pods too");
        assert_ne!(Place(1).hardware_address(), Place(256).hardware_address());
    }
}
