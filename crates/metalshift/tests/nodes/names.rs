//! What resolves in a lab, and what has no way out.

use std::fs;
use std::process::Stdio;

use super::{SOON, inside, lab, text};
use crate::waiting::until;

const NAMED_FLEET: &str = "
users: [{name: admin, superuser: true, keys: [{key: 'names:token:secret'}]}]
domains: [{name: racks.example}]
subnets: [{id: 1, cidr: 10.20.0.0/24}]
machines:
  - {hostname: rack-a, interfaces: [{name: eth0, links: [{mode: static, subnet: 1, address: 10.20.0.11}]}]}
";
const KEY: &str = "names:token:secret";

#[tokio::test]
async fn names_of_machines_and_domains_resolve_inside_and_nothing_has_a_way_out() {
    let Some(lab) = lab().await else { return };
    lab.control().set_name("api.example.lab", &[[10, 88, 0, 9].into(), [10, 88, 0, 10].into()]).await.unwrap();
    for (from, name, address) in [(None, "worker-1", "10.88.0.17"), (Some("management"), "worker-1.lab", "10.88.0.17")] {
        let found = inside(lab, from, &["getent", "ahostsv4", name]).await;
        assert!(text(&found).starts_with(address), "{name}: {found:?}");
    }
    until("a name given later has both its addresses", SOON, async || {
        let found = text(&inside(lab, Some("worker-1"), &["getent", "ahostsv4", "api.example.lab"]).await);
        found.contains("10.88.0.9") && found.contains("10.88.0.10")
    })
    .await;
    let unknown = inside(lab, Some("worker-1"), &["getent", "ahostsv4", "example.org"]).await;
    assert_eq!(unknown.status.code(), Some(2), "an unknown name is said to be unknown");
    // Only routes are asked for: no packet is sent anywhere. 192.0.2.1 is nobody's address.
    let routes = inside(lab, None, &["ip", "route", "get", "192.0.2.1"]).await;
    assert!(!routes.status.success(), "the lab has a way out: {}", text(&routes));
}

#[tokio::test]
async fn names_of_a_maas_resolve_on_machines_and_in_pods_once_its_domains_are_passed_on() {
    let Some(lab) = lab().await else { return };
    let fleet = lab.directory().path().join("named.yaml");
    fs::write(&fleet, NAMED_FLEET).unwrap();
    let mut maas = lab.control().enter(None).await.unwrap();
    maas.args(["setpriv", "--pdeathsig", "KILL", "--", env!("CARGO_BIN_EXE_metalshift"), "emulator", "--fleet"]).arg(&fleet);
    let mut maas =
        maas.args(["--listen", "10.88.0.1:5250", "--dns", "10.88.0.1:5253"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let key: Vec<&str> = KEY.split(':').collect();
    let authorization = format!(
        "Authorization: OAuth oauth_signature_method=PLAINTEXT, oauth_consumer_key={}, oauth_token={}, oauth_signature=%26{}, \
         oauth_timestamp=4102444800, oauth_nonce=1",
        key[0], key[1], key[2]
    );
    let create = ["busybox", "wget", "-qO-", "--header", &authorization, "--post-data", "fqdn=api.racks.example&ip_addresses=10.20.0.21"];
    until("the MAAS has made the name of a cluster", SOON, async || {
        inside(lab, None, &[&create[..], &["http://10.88.0.1:5250/MAAS/api/2.0/dnsresources/"]].concat()).await.status.success()
    })
    .await;
    assert_eq!(text(&inside(lab, Some("worker-1"), &["dig", "+short", "rack-a.racks.example"]).await), "", "nobody answers for it yet");

    let server = "10.88.0.1:5253".parse().unwrap();
    lab.control().forward_domains(server, &["racks.example".into(), "0.20.10.in-addr.arpa".into()]).await.unwrap();
    let questions: [(&[&str], &str); 5] = [
        (&["rack-a.racks.example"], "10.20.0.11"),
        (&["api.racks.example"], "10.20.0.21"),
        (&["+tcp", "api.racks.example"], "10.20.0.21"),
        (&["-x", "10.20.0.11"], "rack-a.racks.example."),
        (&["@10.96.0.10", "api.racks.example"], "10.20.0.21"),
    ];
    for (question, expected) in questions {
        until(&format!("{question:?} is {expected}"), SOON, async || {
            let words = [&["dig", "+short", "+time=1", "+tries=1"], question].concat();
            text(&inside(lab, Some("worker-1"), &words).await) == expected
        })
        .await;
    }
    assert_eq!(text(&inside(lab, Some("worker-1"), &["dig", "+short", "worker-1.lab"]).await), "10.88.0.17", "the lab's own names stay");

    let refused = lab.control().forward_domains(server, &["lab".into()]).await.expect_err("the lab's own domain").to_string();
    assert!(refused.contains("answers for the domain lab itself"), "{refused}");
    lab.control().forward_domains(server, &[]).await.unwrap();
    until("the domain is nobody's again", SOON, async || {
        text(&inside(lab, Some("worker-1"), &["dig", "+time=1", "+tries=1", "api.racks.example"]).await).contains("status: NXDOMAIN")
    })
    .await;
    maas.kill().unwrap();
    maas.wait().unwrap();
}

#[tokio::test]
async fn a_machine_cannot_be_called_like_a_part_of_the_lab() {
    let Some(lab) = lab().await else { return };
    for name in ["gateway", "etcd"] {
        let refused = lab.control().add_machine(name).await.expect_err("a name of the lab").to_string();
        assert!(refused.contains("a part of the lab itself has that name"), "{refused}");
    }
    assert!(text(&inside(lab, Some("worker-1"), &["getent", "hosts", "gateway"]).await).starts_with("10.88.0.1 "));
}
