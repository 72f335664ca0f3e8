//! The constraints of lists and allocations: each of them can leave a machine out, and none of them is taken without being meant.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod maas;

use maas::{answer, call, emulator, post};
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
  - {hostname: one, system_id: aaaaa1, zone: az1, pool: fast, tags: [big], cpus: 16, memory: 65536, devices: [{vendor_id: '8086', product_id: '1', vendor_name: Intel}],
     interfaces: [{mac: '52:54:00:00:00:01', vlan: 5001, speed: 10000}], disks: [{size: 900000000000}]}
  - {hostname: two, system_id: aaaaa2, domain: other.example, cpus: 2, memory: 2048, architecture: arm64/generic,
     interfaces: [{mac: '52:54:00:00:00:02', vlan: 5002, speed: 1000}], disks: [{size: 20000000000}]}
  - {hostname: three, system_id: aaaaa3, status: deployed, owner: admin, agent_name: mine, image: ubuntu/jammy, ephemeral: true,
     interfaces: [{mac: '52:54:00:00:00:03', vlan: 5002, speed: 1000}]}
";

async fn listed(emulator: &Emulator, filter: &str) -> (u16, Value) {
    let (status, body) = answer(emulator, Some(Fleet::DEFAULT_KEY), "GET", &format!("machines/?{filter}"), "").await;
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
        ("not_id=aaaaa1", json!(["two", "three"])),
        ("hostname=one", json!(["one"])),
        ("not_hostname=one", json!(["two", "three"])),
        ("mac_address=52:54:00:00:00:01", json!(["one"])),
        ("domain=other.example", json!(["two"])),
        ("not_domain=other.example", json!(["one", "three"])),
        ("zone=az1", json!(["one"])),
        ("not_in_zone=az1", json!(["two", "three"])),
        ("pool=fast", json!(["one"])),
        ("not_in_pool=fast", json!(["two", "three"])),
        ("tags=big", json!(["one"])),
        ("tags=big+big,big", json!(["one"])),
        ("not_tags=big", json!(["two", "three"])),
        ("not_tags=nosuch", json!(["one", "two", "three"])),
        ("arch=arm64/generic", json!(["two"])),
        ("not_arch=arm64/generic", json!(["one", "three"])),
        ("not_arch=arm64", json!(["one", "two", "three"])),
        ("cpu_count=16", json!(["one"])),
        ("cpu_speed=99999", json!([])),
        ("mem=65536", json!(["one"])),
        ("status=deployed", json!(["three"])),
        ("not_status=deployed", json!(["one", "two"])),
        ("simple_status=deployed&simple_status=failed", json!(["three"])),
        ("simple_status=ready&status=deployed", json!([])),
        ("not_simple_status=ready", json!(["three"])),
        ("power_state=on", json!(["three"])),
        ("not_power_state=on", json!(["one", "two"])),
        ("owner=admin", json!(["three"])),
        ("not_owner=admin", json!(["one", "two"])),
        ("not_owner=nosuch", json!(["one", "two", "three"])),
        ("agent_name=mine", json!(["three"])),
        ("not_agent_name=mine", json!(["one", "two"])),
        ("deployment_target=memory", json!(["three"])),
        ("not_deployment_target=memory", json!(["one", "two"])),
        ("pod=somewhere", json!([])),
        ("pod_type=lxd", json!([])),
        ("not_pod_type=lxd", json!(["one", "two", "three"])),
        ("subnets=cidr:10.20.0.0/24", json!(["one"])),
        ("subnets=cidr:10.20.0.0/24&subnets=name:nosuch", json!(["one"])),
        ("subnets=cidr:10.20.0.0/24&subnets=10.30.0.0/24", json!([])),
        ("subnets=fabric:red", json!(["one"])),
        ("subnets=vid:7", json!(["two", "three"])),
        ("subnets=ip:10.20.0.9", json!(["one"])),
        ("not_subnets=cidr:10.20.0.0/24", json!(["two", "three"])),
        ("vlans=id:5001", json!(["one"])),
        ("vlans=7", json!(["two", "three"])),
        ("vlans=untagged", json!(["one"])),
        ("vlans=vid:7&vlans=nosuch", json!(["two", "three"])),
        ("vlans=name:untagged&vlans=name:seven", json!(["one", "two", "three"])),
        ("not_vlans=seven", json!(["one"])),
        ("fabrics=red", json!(["one"])),
        ("fabrics=nosuch", json!([])),
        ("fabrics=red&fabrics=blue", json!(["one", "two", "three"])),
        ("not_fabrics=nosuch", json!(["one", "two", "three"])),
        ("not_fabrics=red", json!(["two", "three"])),
        ("fabric_classes=copper", json!(["two", "three"])),
        ("not_fabric_classes=copper", json!(["one"])),
        ("link_speed=10000", json!(["one"])),
        ("storage=root:500", json!(["one"])),
        ("interfaces=a:fabric=red", json!(["one"])),
        ("interfaces=a:fabric=red,fabric=blue", json!(["one", "two", "three"])),
        ("interfaces=a:not_fabric=red", json!(["two", "three"])),
        ("interfaces=a:vlan=7,subnet_cidr=10.30.0.0/24", json!(["two", "three"])),
        ("devices=vendor_id=8086", json!(["one"])),
        ("devices=vendor_id=8086,vendor_name=intel", json!(["one"])),
        ("comment=not+minded", json!(["one", "two", "three"])),
    ] {
        assert_eq!(listed(&emulator, filter).await, (200, names), "{filter}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_nobody_can_mean_is_refused_by_its_name() {
    let emulator = emulator(FLEET);
    let unknown = "No such constraint.";
    let range = "VLAN tag (VID) out of range (0-4094; 0 for untagged.)";
    for (filter, key, words) in [
        ("vlans=nosuch", "vlans", "No matching VLANs found."),
        ("not_vlans=vid:9&not_vlans=nosuch", "not_vlans", "No matching VLANs found."),
        ("vlans=5001", "vlans", range),
        ("subnets=name:nosuch", "subnets", "No matching subnets found."),
        ("not_subnets=cidr:10.99.0.0/24", "not_subnets", "No matching subnets found."),
        ("link_speed=fast", "link_speed", "Invalid link speed: number required."),
        ("cpu_count=", "cpu_count", "Invalid CPU count: number required."),
        ("zone=nosuch&zone=az1&zone=another", "zone", "No such zone(s): another, nosuch."),
        ("tags=nosuch,big,another", "tags", "No such tag(s): 'another', 'nosuch'."),
        ("arch=z80&arch=vax", "arch", "Architecture not recognised."),
        ("arch=amd64/nosuch", "arch", "Architecture not recognised."),
        ("owner=nosuch&owner=another", "owner", "No such owner: 'another'."),
        ("not_status=nosuch", "not_status", "Select a valid choice. nosuch is not one of the available choices."),
        ("simple_status=disk_erasing", "simple_status", "Select a valid choice. disk_erasing is not one of the available choices."),
        ("not_power_state=dim", "not_power_state", "Select a valid choice. dim is not one of the available choices."),
        ("devices=asdf", "devices", "Unknown devices constraint: 'asdf"),
        ("devices=vendor_id=1,colour=red", "devices", "Unknown devices constraint: 'colour"),
        ("storage=root:10,+data:10", "storage", "Malformed storage constraint, \"root:10, data:10\"."),
        ("interfaces=a:name", "interfaces", "Malformed key/value pair in constraint: 'name'"),
        ("interfaces=a:name=x;a:name=y", "interfaces", "Constraint label defined more than once: 'a'"),
        ("interfaces=a:not_mode=unconfigured", "interfaces", "Unknown interfaces constraint: 'not_mode"),
        ("system_id=aaaaa1", "system_id", unknown),
        ("not_system_id=aaaaa1", "not_system_id", unknown),
        ("not_mac_address=52:54:00:00:00:01", "not_mac_address", unknown),
        ("not_link_speed=1000", "not_link_speed", unknown),
        ("connected_to=x", "connected_to", unknown),
        ("parent=x", "parent", unknown),
        ("osystem=x", "osystem", unknown),
        ("format=json", "format", unknown),
    ] {
        let (status, body) = listed(&emulator, filter).await;
        assert_eq!((status, &body[key]), (400, &json!([words])), "{filter}: {body}");
    }
    for form in ["not_hostname=one", "not_system_id=aaaaa1", "hostname=one"] {
        let (status, body) = call(&emulator, Some(Fleet::DEFAULT_KEY), "POST", "machines/?op=allocate", form).await;
        assert!(status == 400 && body.contains(unknown), "an allocation knows no {form}: {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_allocation_that_nothing_fits_says_how_it_was_understood() {
    let emulator = emulator(FLEET);
    for (form, resolved) in [
        ("tags=big&cpu_count=99", "cpu_count=99.0 tags=big"),
        ("cpu_count=99&cpu_count=98.5&mem=1", "cpu_count=99.0,98.5 mem=1.0"),
        ("zone=az1&zone=default&cpu_count=99", "cpu_count=99.0 zone=az1,default"),
        ("subnets=ip:10.30.0.1&subnets=10.20.0.0/24", "subnets=1,2"),
        ("not_vlans=vid:7&not_vlans=untagged", "not_vlans=5001,5002"),
        ("not_tags=x,y&fabrics=nosuch&not_owner=nobody", "fabrics=nosuch not_owner=nobody not_tags=x,y"),
        ("deployment_target=memory", "deployment_target=True"),
        ("storage=root:9999&interfaces=a:name=nosuch", "interfaces=a:name=nosuch storage=root:9999"),
        ("name=nosuch&agent_name=mine&comment=x&bridge_type=ovs&dry_run=true", "name=nosuch"),
        ("arch=arm64/generic&tags=big", "arch=arm64/generic tags=big"),
    ] {
        let (status, words) = call(&emulator, Some(Fleet::DEFAULT_KEY), "POST", "machines/?op=allocate", form).await;
        assert!(status == 409 && words.ends_with(&format!("(resolved to \"{resolved}\")")), "{form}: {status} {words}");
    }
    let (_, words) = call(&emulator, Some(Fleet::DEFAULT_KEY), "POST", "machines/?op=allocate", "system_id=nosuch&cpu_count=1").await;
    assert_eq!(words, "No machine with system ID nosuch available.");
}

#[tokio::test(start_paused = true)]
async fn a_partition_is_asked_for_by_a_tag_and_named_as_one() {
    let emulator = emulator(FLEET);
    let allocate = async |form: &str| {
        let form = format!("system_id=aaaaa1&dry_run=true&{form}");
        let (status, body) = post(&emulator, Some(Fleet::DEFAULT_KEY), "machines/?op=allocate", &form).await;
        (status, body["constraints_by_type"].clone())
    };
    let root = emulator.world(|world| {
        let machine = world.all_machines().find(|machine| machine.system_id == "aaaaa1").unwrap();
        let partitions = machine.disks[0].partitions();
        partitions.iter().find(|row| row.filesystem.as_ref().unwrap().mount_point.as_deref() == Some("/")).unwrap().id
    });
    let named = format!("partition:{root}");
    assert_eq!(allocate("storage=root:500(partition)").await, (200, json!({"storage": {"root": [named]}})));
    let (_, verbose) = allocate("storage=500(partition)&verbose=true").await;
    assert_eq!(
        (&verbose["storage"], &verbose["verbose_interfaces"]),
        (&Value::Null, &json!({})),
        "without a label it is not told: {verbose}"
    );
    assert_eq!(allocate("storage=root:900(partition)").await.0, 409, "the disk is as large, the partition is not");
    assert_eq!(allocate("storage=root:500(partition,ssd)").await.0, 409);
    assert_eq!(allocate("storage=root:500,data:1(partition)").await.0, 409, "every partition holds something");
}

#[tokio::test(start_paused = true)]
async fn an_allocation_takes_the_machine_that_the_cables_and_exclusions_leave() {
    for (form, name) in [
        ("fabrics=red", "one"),
        ("vlans=id:5002", "two"),
        ("not_power_state=on&name=one", "one"),
        ("not_arch=arm64/generic", "one"),
        ("link_speed=5000", "one"),
        ("not_fabric_classes=optic", "two"),
        ("not_vlans=seven", "one"),
        ("not_arch=amd64&not_tags=nosuch&cpu_count=16", "one"),
    ] {
        let emulator = emulator(FLEET);
        let (status, body) = post(&emulator, Some(Fleet::DEFAULT_KEY), "machines/?op=allocate", form).await;
        assert_eq!((status, &body["hostname"]), (200, &json!(name)), "{form}");
    }
    let emulator = emulator(FLEET);
    let form = "fabrics=red&not_arch=amd64/generic";
    let (status, body) = call(&emulator, Some(Fleet::DEFAULT_KEY), "POST", "machines/?op=allocate", form).await;
    assert!(status == 409 && body.contains("('not_arch', ['amd64/generic'])"), "{body}");
}

#[tokio::test(start_paused = true)]
async fn an_allocation_by_a_name_nobody_has_composes_a_machine_of_another_name() {
    let hosts = "vm_hosts: [{name: host, cores: 8, memory: 16384, zone: az1}]";
    let emulator = emulator(&format!("{FLEET}{hosts}"));
    let allocate = async |form: &str| post(&emulator, Some(Fleet::DEFAULT_KEY), "machines/?op=allocate", form).await;
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
