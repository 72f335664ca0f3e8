//! The constraints of lists and allocations: each of them can leave a machine out, and none of them is taken without being meant.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod maas;

use maas::{call, emulator};
use maas_client::{MachineFilter, MachineStatus, PowerState};
use maas_emulator::{Emulator, Fleet};
use serde_json::{Value, json};

const FLEET: &str = "
zones: [{name: az1}]
pools: [{name: fast}]
tags: [{name: big}]
domains: [{name: maas}, {name: other.example}]
fabrics:
  - {name: red, class_type: optic, vlans: [{id: 5001, vid: 0, name: untagged, dhcp: true}]}
  - {name: blue, class_type: copper, vlans: [{id: 5002, vid: 7, name: seven}]}
subnets:
  - {cidr: 10.20.0.0/24, vlan: 5001}
  - {cidr: 10.30.0.0/24, vlan: 5002}
machines:
  - {hostname: one, system_id: aaaaa1, zone: az1, pool: fast, tags: [big], cpus: 16, memory: 65536, devices: [{vendor_id: '8086', product_id: '1'}],
     interfaces: [{mac: '52:54:00:00:00:01', vlan: 5001, speed: 10000}], disks: [{size: 900000000000}]}
  - {hostname: two, system_id: aaaaa2, domain: other.example, cpus: 2, memory: 2048, architecture: arm64/generic,
     interfaces: [{mac: '52:54:00:00:00:02', vlan: 5002, speed: 1000}], disks: [{size: 20000000000}]}
  - {hostname: three, system_id: aaaaa3, status: deployed, owner: admin, agent_name: mine, image: ubuntu/jammy, ephemeral: true,
     interfaces: [{mac: '52:54:00:00:00:03', vlan: 5002, speed: 1000}]}
";

async fn listed(emulator: &Emulator, filter: &str) -> (u16, Value) {
    let (status, body) = call(emulator, Some(Fleet::DEFAULT_KEY), "GET", &format!("machines/?{filter}"), "").await;
    let body: Value = serde_json::from_str(&body).unwrap_or(Value::String(body));
    let names = body.as_array().map(|list| list.iter().map(|machine| machine["hostname"].clone()).collect());
    (status, names.unwrap_or(body))
}

#[tokio::test(start_paused = true)]
async fn the_filters_of_the_client_leave_the_same_machines_out() {
    let emulator = emulator(FLEET);
    let client = maas::administrator(&emulator);
    let all = MachineFilter::new;
    for (filter, names) in [
        (all(), "one two three"),
        (all().not_system_id(&"aaaaa1".into()), "two three"),
        (all().not_hostname("one").not_hostname("two"), "three"),
        (all().not_mac_address("52:54:00:00:00:01"), "two three"),
        (all().not_domain("other.example"), "one three"),
        (all().not_agent_name("mine"), "one two"),
        (all().not_architecture("arm64/generic"), "one three"),
        (all().not_owner("admin"), "one two"),
        (all().not_power_state(PowerState::On), "one two"),
        (all().not_status(MachineStatus::Deployed), "one two"),
        (all().not_vlan("vid:7"), "one"),
        (all().not_fabric("red"), "two three"),
        (all().fabric_class("optic"), "one"),
        (all().not_fabric_class("optic"), "two three"),
        (all().not_link_speed(1000), "one"),
    ] {
        let listed = client.machines().list(&filter).await.unwrap();
        let listed: Vec<String> = listed.into_iter().map(|machine| machine.hostname).collect();
        assert_eq!(listed.join(" "), names, "{filter:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_filter_leaves_machines_out() {
    let emulator = emulator(FLEET);
    for (filter, names) in [
        ("id=aaaaa1", json!(["one"])),
        ("system_id=aaaaa1", json!(["one"])),
        ("not_id=aaaaa1", json!(["two", "three"])),
        ("not_system_id=aaaaa1&not_system_id=aaaaa2", json!(["three"])),
        ("hostname=one", json!(["one"])),
        ("not_hostname=one", json!(["two", "three"])),
        ("mac_address=52:54:00:00:00:01", json!(["one"])),
        ("not_mac_address=52:54:00:00:00:01", json!(["two", "three"])),
        ("domain=other.example", json!(["two"])),
        ("not_domain=other.example", json!(["one", "three"])),
        ("zone=az1", json!(["one"])),
        ("not_in_zone=az1", json!(["two", "three"])),
        ("pool=fast", json!(["one"])),
        ("not_in_pool=fast", json!(["two", "three"])),
        ("tags=big", json!(["one"])),
        ("not_tags=big", json!(["two", "three"])),
        ("arch=arm64/generic", json!(["two"])),
        ("not_arch=arm64/generic", json!(["one", "three"])),
        ("cpu_count=16", json!(["one"])),
        ("cpu_speed=99999", json!([])),
        ("mem=65536", json!(["one"])),
        ("status=deployed", json!(["three"])),
        ("not_status=deployed", json!(["one", "two"])),
        ("power_state=on", json!(["three"])),
        ("not_power_state=on", json!(["one", "two"])),
        ("owner=admin", json!(["three"])),
        ("not_owner=admin", json!(["one", "two"])),
        ("agent_name=mine", json!(["three"])),
        ("not_agent_name=mine", json!(["one", "two"])),
        ("deployment_target=memory", json!(["three"])),
        ("pod=somewhere", json!([])),
        ("pod_type=lxd", json!([])),
        ("subnets=cidr:10.20.0.0/24", json!(["one"])),
        ("not_subnets=cidr:10.20.0.0/24", json!(["two", "three"])),
        ("vlans=5001", json!(["one"])),
        ("vlans=vid:7", json!(["two", "three"])),
        ("vlans=name:untagged&vlans=name:seven", json!([])),
        ("not_vlans=seven", json!(["one"])),
        ("fabrics=red", json!(["one"])),
        ("fabrics=red&fabrics=name:blue", json!(["one", "two", "three"])),
        ("not_fabrics=red", json!(["two", "three"])),
        ("fabric_classes=copper", json!(["two", "three"])),
        ("not_fabric_classes=copper", json!(["one"])),
        ("link_speed=10000", json!(["one"])),
        ("not_link_speed=1000", json!(["one"])),
        ("storage=root:500", json!(["one"])),
        ("interfaces=a:fabric=red", json!(["one"])),
        ("devices=vendor_id=8086", json!(["one"])),
    ] {
        assert_eq!(listed(&emulator, filter).await, (200, names), "{filter}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_nobody_can_mean_is_refused_by_its_name() {
    let emulator = emulator(FLEET);
    for (filter, key) in [
        ("vlans=nosuch", "vlans"),
        ("not_vlans=vid:9", "not_vlans"),
        ("fabrics=nosuch", "fabrics"),
        ("not_fabrics=name:nosuch", "not_fabrics"),
        ("link_speed=fast", "link_speed"),
        ("not_link_speed=fast", "not_link_speed"),
        ("not_status=nosuch", "not_status"),
        ("not_power_state=dim", "not_power_state"),
        ("not_owner=nosuch", "not_owner"),
        ("not_arch=z80", "not_arch"),
        ("not_mac_address=x", "not_mac_address"),
        ("devices=asdf", "devices"),
        ("devices=colour=red", "devices"),
        ("connected_to=x", "connected_to"),
        ("parent=x", "parent"),
        ("osystem=x", "osystem"),
    ] {
        let (status, body) = listed(&emulator, filter).await;
        assert!(status == 400 && body.get(key).is_some(), "{filter}: {status} {body}");
    }
    let (status, body) = call(&emulator, Some(Fleet::DEFAULT_KEY), "POST", "machines/?op=allocate", "not_hostname=one").await;
    assert!(status == 400 && body.contains("No such constraint."), "an allocation knows no {body}");
}

#[tokio::test(start_paused = true)]
async fn an_allocation_takes_the_machine_that_the_cables_and_exclusions_leave() {
    for (form, name) in [
        ("fabrics=red", "one"),
        ("vlans=5002", "two"),
        ("not_system_id=aaaaa2", "one"),
        ("not_arch=arm64/generic", "one"),
        ("link_speed=5000", "one"),
        ("not_fabric_classes=optic", "two"),
        ("not_vlans=seven", "one"),
    ] {
        let emulator = emulator(FLEET);
        let (status, body) = call(&emulator, Some(Fleet::DEFAULT_KEY), "POST", "machines/?op=allocate", form).await;
        let body: Value = serde_json::from_str(&body).unwrap_or(Value::String(body));
        assert_eq!((status, &body["hostname"]), (200, &json!(name)), "{form}");
    }
    let emulator = emulator(FLEET);
    let (status, body) = call(&emulator, Some(Fleet::DEFAULT_KEY), "POST", "machines/?op=allocate", "fabrics=red&not_arch=amd64").await;
    assert!(status == 409 && body.contains("('not_arch', ['amd64'])"), "{body}");
}

#[tokio::test(start_paused = true)]
async fn an_allocation_by_a_name_nobody_has_composes_a_machine_of_another_name() {
    let hosts = "vm_hosts: [{name: host, cores: 8, memory: 16384, zone: az1}]";
    let emulator = emulator(&format!("{FLEET}{hosts}"));
    let allocate = async |form: &str| {
        let (status, body) = call(&emulator, Some(Fleet::DEFAULT_KEY), "POST", "machines/?op=allocate", form).await;
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    };
    let virtual_machines = || emulator.world(|world| world.all_machines().filter(|machine| machine.vm_host.is_some()).count());
    let (status, taken) = allocate("name=one").await;
    assert_eq!((status, &taken["hostname"], virtual_machines()), (200, &json!("one"), 0), "a machine of the name is Ready");

    // Taken by now, so no Ready machine has the name. What keeps VM hosts out keeps the machine from being composed.
    for form in ["name=one&not_pod=host", "name=one&not_pod_type=lxd", "name=one&system_id=aaaaa1", "name=one&tags=big", "name=one&mem=512"]
    {
        let (status, refused) = allocate(form).await;
        assert_eq!((status, virtual_machines()), (409, 0), "{form}: {refused}");
    }
    let (status, composed) = allocate("name=one&not_in_zone=az1&pool=fast&agent_name=mine").await;
    assert_eq!((status, &composed["pod"]["name"], &composed["status_name"]), (200, &json!("host"), &json!("Allocated")), "{composed}");
    assert_ne!(composed["hostname"], json!("one"), "the name asked for is not given to it");
    assert_eq!((&composed["zone"]["name"], &composed["pool"]["name"]), (&json!("default"), &json!("default")));

    let (status, tried) = allocate("name=one.maas&dry_run=true").await;
    assert_eq!((status, &tried["status_name"], &tried["owner"], virtual_machines()), (200, &json!("Ready"), &json!(null), 2));
    let (status, taken) = allocate(&format!("name={}", tried["hostname"].as_str().unwrap())).await;
    assert_eq!((status, &taken["system_id"], virtual_machines()), (200, &tried["system_id"], 2), "it waits for whoever names it");
}
