//! What MAAS checks before it does something, and what it lets pass.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod maas;

use maas::{ADMIN, ALICE, answer, call, client, emulator, post, settled};
use maas_client::{Allocate, Deploy, MachineStatus, SystemId};
use maas_emulator::Emulator;
use serde_json::{Value, json};

const FLEET: &str = "
users:
  - {name: admin, superuser: true, keys: [{key: 'ac:at:as'}]}
  - {name: alice, keys: [{key: 'lc:lt:ls'}]}
zones: [{name: az1}]
domains: [{name: maas}, {name: clusters.example}]
subnets: [{cidr: 10.20.0.0/24, gateway: 10.20.0.1, dhcp: {start: 10.20.0.100, end: 10.20.0.149}}]
machines: [{hostname: m, count: 2}]
";

#[tokio::test(start_paused = true)]
async fn a_broken_machine_that_is_fixed_is_deployed_if_it_was_and_ready_otherwise() {
    let emulator = emulator(FLEET);
    let admin = client(&emulator, "ac:at:as");
    let (deployed, allocated) = (admin.machines().allocate(&Allocate::new()).await.unwrap(), Allocate::new());
    admin.machine(&deployed.system_id).deploy(&Deploy::default()).await.unwrap();
    settled(&admin, &deployed.system_id, MachineStatus::Deployed).await.unwrap();
    let allocated = admin.machines().allocate(&allocated).await.unwrap();
    for (machine, fixed) in [(deployed, MachineStatus::Deployed), (allocated, MachineStatus::Ready)] {
        let machine = admin.machine(&machine.system_id);
        assert_eq!(machine.mark_broken(Some("fan")).await.unwrap().status, MachineStatus::Broken);
        tokio::time::sleep(std::time::Duration::from_secs(10)).await;
        let after = machine.mark_fixed(None).await.unwrap();
        assert_eq!((after.status, after.owner, after.osystem.as_str()), (fixed, None, ""));
    }
}

#[tokio::test(start_paused = true)]
async fn machines_of_users_wait_for_an_administrator() {
    let emulator = emulator(FLEET);
    let form = "architecture=amd64&mac_addresses=52:54:00:99:00:01&hostname=hers&power_type=ipmi&zone=az1&commission=true";
    let (status, machine) = post(&emulator, ALICE, "machines/", form).await;
    assert_eq!(status, 200, "{machine}");
    assert_eq!((&machine["status_name"], &machine["owner"], &machine["zone"]["name"]), (&json!("New"), &Value::Null, &json!("default")));
    assert_eq!(machine["architecture"], "amd64/generic");
    assert_eq!(post(&emulator, ALICE, "machines/?op=accept_all", "").await, (200, json!([])));
    let id = machine["system_id"].as_str().unwrap().to_owned();
    assert_eq!(post(&emulator, ALICE, "machines/?op=accept", &format!("machines={id}")).await.0, 403);
    let (_, accepted) = post(&emulator, ADMIN, "machines/?op=accept", &format!("machines={id}")).await;
    assert_eq!(accepted[0]["status_name"], "Commissioning");
    let admin = client(&emulator, "ac:at:as");
    settled(&admin, &SystemId::from(id.as_str()), MachineStatus::Ready).await.unwrap();
    assert_eq!(post(&emulator, ADMIN, "machines/?op=accept_all", "").await, (200, json!([])), "nobody waits any more");
}

#[tokio::test(start_paused = true)]
async fn machines_that_nobody_knows_tell_of_themselves() {
    let emulator = emulator(FLEET);
    let form = "architecture=amd64&mac_addresses=52:54:00:99:00:02&commission=true";
    let (status, machine) = post(&emulator, None, "machines/", form).await;
    assert_eq!((status, &machine["status_name"]), (200, &json!("Commissioning")));
    assert_eq!(machine.get("interface_set"), None, "strangers are shown little: {machine}");
    let admin = client(&emulator, "ac:at:as");
    let id = SystemId::from(machine["system_id"].as_str().unwrap());
    settled(&admin, &id, MachineStatus::New).await.unwrap();
    let again = "architecture=amd64/generic&mac_addresses=52:54:00:99:00:02&power_type=ipmi&power_parameters_power_address=10.0.0.9";
    let (_, same) = post(&emulator, None, "machines/", again).await;
    assert_eq!((&same["system_id"], &same["power_type"]), (&machine["system_id"], &json!("ipmi")));
    assert_eq!(post(&emulator, None, "machines/", "mac_addresses=52:54:00:99:00:03").await.0, 400, "of what kind is it?");
    assert_eq!(post(&emulator, None, "machines/?op=allocate", "").await.0, 400);
}

#[tokio::test(start_paused = true)]
async fn machines_are_of_known_architectures_and_ways_of_power() {
    let emulator = emulator(FLEET);
    let create = async |form: &str| post(&emulator, ADMIN, "machines/", form).await;
    let (status, body) = create("architecture=vax&mac_addresses=52:54:00:99:00:04&power_type=steam").await;
    assert_eq!(status, 400);
    assert!(
        body["architecture"][0].as_str().unwrap().starts_with("'vax/generic' is not a valid architecture.  It should be one of: 'amd64/")
    );
    assert_eq!(body["power_type"], json!(["Select a valid choice. steam is not one of the available choices."]));
    let (_, body) = create("power_type=lxd&architecture=amd64/generic").await;
    let bare =
        json!({"mac_addresses": ["This field is required."], "power_type": ["Can't set power type to lxd without network interfaces"]});
    assert_eq!(body, bare);
    let (_, body) = create("architecture=amd64&mac_addresses=zz&mac_addresses=yy").await;
    let merged = "One or more MAC addresses is invalid. ('zz' is not a valid MAC address. \u{2014} 'yy' is not a valid MAC address.)";
    assert_eq!(body, json!({"mac_addresses": [merged]}));
    assert_eq!(create("power_type=ipmi&power_parameters_power_address=10.0.0.7").await.0, 200, "its BMC is enough");
    let id = emulator.world(|world| world.all_machines().next().unwrap().system_id.clone());
    for (form, field) in [("architecture=vax/1", "architecture"), ("power_type=steam", "power_type"), ("swap_size=1X", "swap_size")] {
        let (status, body) = call(&emulator, ADMIN, "PUT", &format!("machines/{id}/"), form).await;
        assert!(status == 400 && body.contains(field), "{status} {body}");
    }
    let (_, body) = call(&emulator, ADMIN, "PUT", &format!("machines/{id}/"), "swap_size=4G").await;
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["swap_size"], json!(4_000_000_000_u64));
}

#[tokio::test(start_paused = true)]
async fn dynamic_ranges_keep_clear_of_everything_in_use() {
    let emulator = emulator(FLEET);
    assert_eq!(post(&emulator, ADMIN, "ipaddresses/?op=reserve", "ip=10.20.0.60").await.0, 200);
    let range = async |kind: &str, start: &str, end: &str| {
        post(&emulator, ADMIN, "ipranges/", &format!("type={kind}&start_ip={start}&end_ip={end}")).await
    };
    let both = |words: &str| (400, json!({"start_ip": [words], "end_ip": [words]}));
    let conflict = both("Requested dynamic range conflicts with an existing IP address or range.");
    assert_eq!(range("dynamic", "10.20.0.50", "10.20.0.70").await, conflict, "an address is reserved there");
    assert_eq!(range("dynamic", "10.20.0.1", "10.20.0.9").await, conflict, "the gateway is there");
    assert_eq!(range("dynamic", "10.20.0.140", "10.20.0.150").await, conflict, "another range is there");
    assert_eq!(range("dynamic", "10.20.0.61", "10.20.0.70").await.0, 200);
    assert_eq!(range("reserved", "10.20.0.50", "10.20.0.60").await.0, 200, "reserved ranges may hold addresses");
    let network = json!({"start_ip": ["Reserved network address cannot be included in IP range."]});
    assert_eq!(range("reserved", "10.20.0.0", "10.20.0.5").await, (400, network));
    let broadcast = json!({"end_ip": ["Broadcast address cannot be included in IP range."]});
    assert_eq!(range("reserved", "10.20.0.250", "10.20.0.255").await, (400, broadcast));
    let backwards = json!({"end_ip": ["End IP address must not be less than Start IP address."]});
    assert_eq!(range("reserved", "10.20.0.9", "10.20.0.8").await, (400, backwards));
}

#[tokio::test(start_paused = true)]
async fn a_long_list_shows_machines_as_reading_them_one_by_one_does() {
    let fleet = FLEET.replace("count: 2", "count: 30, tags: [worker]")
        + "  - {hostname: host, status: deployed, owner: admin, image: ubuntu/jammy}\nvm_hosts: [{name: kvm, machine: host}]\n";
    let emulator = emulator(
        &fleet.replace("machines: [{hostname: m, count: 30, tags: [worker]}]", "machines:\n  - {hostname: m, count: 30, tags: [worker]}"),
    );
    let admin = client(&emulator, "ac:at:as");
    let host = emulator.world(|world| world.vm_hosts.values().next().unwrap().id.to_string());
    assert_eq!(post(&emulator, ADMIN, &format!("vm-hosts/{host}/?op=compose"), "").await.0, 200);
    post(&emulator, ADMIN, "dnsresources/", "fqdn=api.maas&ip_addresses=10.20.0.9").await;
    let taken = admin.machines().allocate(&Allocate::new()).await.unwrap().system_id;
    admin.machine(&taken).deploy(&Deploy::default()).await.unwrap();
    let (_, list) = call(&emulator, ADMIN, "GET", "machines/", "").await;
    let list: Vec<Value> = serde_json::from_str(&list).unwrap();
    assert_eq!(list.len(), 32);
    assert!(list.iter().any(|machine| machine["parent"].is_object()), "one is virtual");
    for machine in list {
        let (_, one) = call(&emulator, ADMIN, "GET", &format!("machines/{}/", machine["system_id"].as_str().unwrap()), "").await;
        assert_eq!(machine, serde_json::from_str::<Value>(&one).unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn settings_are_of_their_kind() {
    let emulator = emulator(FLEET);
    let set = async |name: &str, value: &str| post(&emulator, ADMIN, "maas/?op=set_config", &format!("name={name}&value={value}")).await;
    for (name, value) in [
        ("node_timeout", "abc"),
        ("node_timeout", "-1"),
        ("node_timeout", "99999999999999999999"),
        ("default_distro_series", "nosuch"),
        ("commissioning_distro_series", "nosuch"),
        ("default_osystem", "nosuch"),
        ("enable_disk_erasing_on_release", "perhaps"),
        ("default_storage_layout", "nosuch"),
    ] {
        let (status, words) = set(name, value).await;
        assert!(status == 400 && words[name].is_array(), "{name}={value}: {status} {words}");
    }
    for (name, value) in [("node_timeout", "45"), ("default_distro_series", "noble"), ("enable_disk_erasing_on_release", "true")] {
        assert_eq!(set(name, value).await, (200, json!("OK")), "{name}={value}");
    }
}

#[tokio::test(start_paused = true)]
async fn disks_are_laid_out_anew_on_ready_machines_only() {
    let emulator = emulator(FLEET);
    let machine = client(&emulator, "ac:at:as").machines().allocate(&Allocate::new()).await.unwrap().system_id;
    let restore = "Machine must be in a ready or failed testing state to restore";
    for (form, refusal) in [
        ("set_storage_layout", "Cannot change the storage layout on a machine that is not Ready.".to_owned()),
        ("restore_networking_configuration", format!("{restore} networking configuration")),
        ("restore_storage_configuration", format!("{restore} storage configuration.")),
        ("restore_default_configuration", format!("{restore} default networking and storage configuration.")),
    ] {
        let refused = post(&emulator, ADMIN, &format!("machines/{machine}/?op={form}"), "storage_layout=flat").await;
        assert_eq!(refused, (409, json!(refusal)), "{form}");
    }
    post(&emulator, ADMIN, &format!("machines/{machine}/?op=release"), "").await;
    tokio::time::sleep(std::time::Duration::from_mins(1)).await;
    let set = async |layout: &str| {
        post(&emulator, ADMIN, &format!("machines/{machine}/?op=set_storage_layout"), &format!("storage_layout={layout}")).await
    };
    assert_eq!(set("flat").await.0, 200);
    assert_eq!(set("default").await.0, 400, "that is no layout");
    let none = "Failed to configure storage layout 'custom': No custom storage layout configuration found";
    assert_eq!(set("custom").await, (400, json!(none)));
}

#[test]
fn a_fleet_with_a_gateway_outside_its_subnet_or_without_a_machine_in_an_entry_is_refused_by_line_and_field() {
    for (fleet, line, field) in [
        ("zones: []\nsubnets:\n  - {cidr: 10.20.0.0/24, gateway: 10.21.0.1}\n", 3, "gateway"),
        ("machines:\n  - {hostname: m, count: 0}\n", 2, "count"),
        ("vm_hosts:\n  - {name: h, storage_pools: [{name: a, total: 18446744073709551615, default: true}]}\n", 2, "total"),
        ("vm_hosts:\n  - {name: h, memory: 18446744073709551615}\n", 2, "memory"),
    ] {
        let fleet = maas_emulator::Fleet::from_yaml(fleet).unwrap();
        let error = Emulator::new(fleet, maas_emulator::Options::default()).err().unwrap();
        assert!(error.line == Some(line) && error.field.ends_with(field), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_are_found_by_who_caused_them_and_an_empty_page_leads_back() {
    let emulator = emulator(FLEET);
    assert_eq!(post(&emulator, ADMIN, "machines/?op=allocate", "").await.0, 200);
    let query = async |text: &str| answer(&emulator, ADMIN, "GET", &format!("events/?op=query&level=DEBUG&{text}"), "").await;
    let mine = query("owner=admin").await.1;
    assert!(mine["count"].as_u64().unwrap() > 0, "{mine}");
    assert!(mine["events"].as_array().unwrap().iter().all(|event| event["username"] == "admin"), "{mine}");
    assert_eq!(query("owner=alice").await.1["count"], 0);
    let empty = query("after=1000").await.1;
    assert_eq!(empty["next_uri"], "/MAAS/api/2.0/events/?op=query&level=DEBUG", "{empty}");
    assert!(empty["prev_uri"].as_str().unwrap().ends_with("&before=1001"), "{empty}");
    assert_eq!(query("after=1000&colour=red").await.1["next_uri"], empty["next_uri"], "what nobody reads is not passed on");
    let empty = query("before=1").await.1;
    assert!(empty["next_uri"].as_str().unwrap().ends_with("&after=0") && empty["prev_uri"].is_null(), "{empty}");
    let (_, other) = call(&emulator, ADMIN, "GET", "events/?limit=1&op=query", "").await;
    let other: Value = serde_json::from_str(&other).unwrap();
    assert!(other["next_uri"].as_str().unwrap().contains("?limit=1&op=query"), "parameters keep their order: {other}");
    assert_eq!(query("mac_address=zz&mac_address=y").await, (400, json!("Invalid MAC address(es): zz, y")));
    assert_eq!(query("zone=nosuch").await.1["count"], 0, "nobody misses a zone here");
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_vm_hosts_are_in_stays() {
    let emulator = emulator(&format!("{FLEET}pools: [{{name: racks}}]\nvm_hosts: [{{name: h, pool: racks}}]\n"));
    let (status, words) = call(&emulator, ADMIN, "DELETE", "resourcepool/1/", "").await;
    assert_eq!((status, words.as_str()), (400, "Pool has VM hosts in it, it cannot be deleted."));
}

#[tokio::test(start_paused = true)]
async fn tests_are_for_more_states_than_commissioning_and_say_nothing_of_them() {
    let states = ["new", "missing", "retired", "failed_testing"];
    let machines: Vec<String> = states.iter().map(|state| format!("{{hostname: {}, status: {state}}}", state.replace('_', "-"))).collect();
    let emulator =
        emulator(&format!("users: [{{name: admin, superuser: true, keys: [{{key: 'ac:at:as'}}]}}]\nmachines: [{}]\n", machines.join(", ")));
    let find = |state: &str| {
        let name = state.replace('_', "-");
        emulator.world(|world| {
            let machine = world.all_machines().find(|machine| machine.hostname == name).unwrap();
            (machine.system_id.clone(), machine.status.name(), machine.owner.is_some())
        })
    };
    let (failed, ..) = find("failed_testing");
    assert_eq!(post(&emulator, ADMIN, &format!("machines/{failed}/?op=commission"), "").await.0, 400);
    for state in &states[..3] {
        let (id, before, owned) = find(state);
        assert_eq!(post(&emulator, ADMIN, &format!("machines/{id}/?op=test"), "").await.0, 200, "{state}");
        tokio::time::sleep(std::time::Duration::from_mins(10)).await;
        assert_eq!(find(state), (id, before, owned));
    }
}

#[tokio::test(start_paused = true)]
async fn vm_hosts_depend_on_the_rack_and_on_their_address_and_where_there_are_none_nobody_asks_for_rights() {
    let create = "type=lxd&power_address=192.0.2.1&name=h";
    let without = emulator(&format!("{FLEET}version: removed\n"));
    for (key, method, path) in
        [(ALICE, "GET", "pods/4/?op=parameters"), (ADMIN, "POST", "vm-hosts/4/?op=nosuch"), (ADMIN, "GET", "vm-clusters/")]
    {
        assert_eq!(call(&without, key, method, path, "").await.0, 410, "{path}");
    }
    let emulator = emulator(FLEET);
    let (_, host) = post(&emulator, ADMIN, "vm-hosts/", create).await;
    let refresh = format!("vm-hosts/{}/?op=refresh", host["id"]);
    assert_eq!((post(&emulator, ADMIN, &refresh, "").await.0, &host["total"]["cores"]), (503, &json!(0)));
    assert_eq!(call(&emulator, ADMIN, "PUT", &format!("vm-hosts/{}/", host["id"]), "power_address=10.20.0.77").await.0, 200);
    let (status, host) = post(&emulator, ADMIN, &refresh, "").await;
    assert!(status == 200 && host["total"]["cores"].as_u64().unwrap() > 0, "{host}");
    emulator.inject(maas_emulator::Fault::NoRack).unwrap();
    for (path, form) in [("vm-hosts/", "type=lxd&power_address=10.20.0.78&name=i"), (refresh.as_str(), "")] {
        let (status, words) = post(&emulator, ADMIN, path, form).await;
        assert!(status == 503 && words.as_str().unwrap().starts_with("Unable to connect to any rack controller"), "{path}: {words}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_vm_host_reaches_its_project_and_credentials_and_leaves_what_it_does_not_name() {
    let emulator = emulator(FLEET);
    let create = "type=lxd&power_address=192.0.2.1&name=h&project=one&certificate=c&key=k&password=trust";
    let id = post(&emulator, ADMIN, "vm-hosts/", create).await.1["id"].clone();
    let change = async |form: &str| call(&emulator, ADMIN, "PUT", &format!("vm-hosts/{id}/"), form).await;
    let parameters = async || {
        let (status, body) = call(&emulator, ADMIN, "GET", &format!("vm-hosts/{id}/?op=parameters"), "").await;
        assert_eq!(status, 200);
        serde_json::from_str::<Value>(&body).unwrap()
    };
    assert_eq!(change("project=two&certificate=d&key=l&password=again&power_pass=nothing-of-lxd").await.0, 200);
    assert_eq!(parameters().await, json!({"power_address": "192.0.2.1", "project": "two", "certificate": "d", "key": "l"}));
    assert_eq!(change("name=other").await.0, 200);
    assert_eq!(parameters().await["project"], "two", "what is not named stays");
    let required = |field: &str| json!({ field: ["This field is required."] });
    let fixed = json!({"type": ["Cannot change the type of a pod. Delete and re-create the pod with a different type."]});
    for (form, refusal) in
        [("project=&key=m", required("project")), ("power_address=", required("power_address")), ("type=virsh&project=three", fixed)]
    {
        let (status, body) = change(form).await;
        assert_eq!((status, serde_json::from_str::<Value>(&body).unwrap()), (400, refusal), "{form}");
    }
    assert_eq!(parameters().await["key"], "l", "what is refused changes nothing");
    let (_, host) = change("type=lxd&certificate=&key=&power_address=10.20.0.77&default_macvlan_mode=private").await;
    let host: Value = serde_json::from_str(&host).unwrap();
    let made = parameters().await;
    assert!(made["certificate"].as_str().unwrap().starts_with("-----BEGIN") && made["key"] != "l", "MAAS makes a pair of its own: {made}");
    assert_eq!((&host["total"]["cores"], &host["default_macvlan_mode"]), (&json!(16), &json!("private")), "it answers at its new address");
    let id = post(&emulator, ADMIN, "vm-hosts/", "type=virsh&power_address=10.20.0.78").await.1["id"].clone();
    assert_eq!(call(&emulator, ADMIN, "PUT", &format!("vm-hosts/{id}/"), "power_pass=secret&project=none-in-libvirt").await.0, 200);
    let (_, body) = call(&emulator, ADMIN, "GET", &format!("vm-hosts/{id}/?op=parameters"), "").await;
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), json!({"power_address": "10.20.0.78", "power_pass": "secret"}));
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_for_others_go_on_when_their_fault_is_over_and_are_not_counted_for_the_next() {
    use maas_emulator::faults::{CallFault, CallHarm, CallPattern};
    let emulator = emulator(FLEET);
    let together = || {
        let matching = CallPattern { path: Some("tags/".to_owned()), ..CallPattern::default() };
        emulator
            .inject(maas_emulator::Fault::Call(CallFault { matching, skip: 0, times: None, harm: CallHarm::Together { calls: 3 } }))
            .unwrap();
    };
    let began = tokio::time::Instant::now();
    let tag = async |name: &str| post(&emulator, ADMIN, "tags/", &format!("name={name}")).await.0;
    together();
    let ended = async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        emulator.clear_faults();
        together();
    };
    assert_eq!(tokio::join!(tag("a"), tag("b"), ended), (200, 200, ()));
    assert_eq!(began.elapsed().as_secs(), 1);
    assert_eq!(tag("c").await, 200);
    assert!(began.elapsed().as_secs() > 10, "it waited for two others in vain");
}

#[tokio::test(start_paused = true)]
async fn a_machine_in_the_wrong_state_is_not_asked_which_image_it_lacks() {
    let emulator = emulator(&format!("{FLEET}  \n").replace("{hostname: m, count: 2}", "{hostname: m}, {hostname: n, status: new}"));
    let id = |name: &str| emulator.world(|world| world.all_machines().find(|machine| machine.hostname == name).unwrap().system_id.clone());
    let deploy = async |name: &str, form: &str| post(&emulator, ADMIN, &format!("machines/{}/?op=deploy", id(name)), form).await;
    let state = json!("Can't deploy a machine that is in the 'New' state");
    assert_eq!(deploy("n", "distro_series=nosuch").await, (409, state.clone()));
    assert_eq!(deploy("n", "hwe_kernel=nosuch").await, (409, state));
    assert_eq!(deploy("n", "distro_series=nosuch&bridge_stp=maybe").await.0, 400, "what cannot be read comes first");
    assert_eq!(deploy("m", "distro_series=nosuch").await.0, 400);
}

#[tokio::test(start_paused = true)]
async fn zones_and_pools_may_have_spaces_in_their_names_but_no_dots() {
    let emulator = emulator(FLEET);
    for path in ["zones/", "resourcepools/"] {
        for name in ["a+b", "_", "\u{e9}t\u{e9}-1"] {
            assert_eq!(post(&emulator, ADMIN, path, &format!("name={name}")).await.0, 200, "{path} {name}");
        }
        for name in ["a.b", "-x", "+", "a/b"] {
            let refusal = (400, json!({"name": ["Enter a valid value."]}));
            assert_eq!(post(&emulator, ADMIN, path, &format!("name={name}")).await, refusal, "{path} {name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn plain_members_of_a_json_object_are_fields_where_something_is_created_or_updated() {
    let emulator = emulator(FLEET);
    let send = async |method: &str, path: &str, body: Value| {
        let (status, body) = maas::call_json(&emulator, ADMIN, method, path, &body).await;
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    };
    let (status, zone) = send("POST", "zones/", json!({"name": "json", "description": "by hand", "op": "none"})).await;
    assert_eq!((status, &zone["name"], &zone["description"]), (200, &json!("json"), &json!("by hand")), "{zone}");
    let (_, domain) = send("PUT", "domains/0/", json!({"ttl": 30, "name": null})).await;
    assert_eq!((&domain["ttl"], &domain["name"]), (&json!(30), &json!("maas")), "{domain}");
    assert_eq!(send("POST", "zones/", json!(["name"])).await.0, 400);
    assert_eq!(send("POST", "machines/?op=allocate", json!({})).await, (500, json!("'dict' object has no attribute 'lists'")));
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_named_twice_is_tagged_once() {
    let emulator = emulator(FLEET);
    assert_eq!(post(&emulator, ADMIN, "tags/", "name=t").await.0, 200);
    let machine = emulator.world(|world| world.machines.values().next().unwrap().system_id.clone());
    let update = async |form: String| post(&emulator, ADMIN, "tags/t/?op=update_nodes", &form).await;
    assert_eq!(update(format!("add={machine}&add={machine}")).await, (200, json!({"added": 1, "removed": 0})));
    assert_eq!(update(format!("remove={machine}&remove={machine}")).await, (200, json!({"added": 0, "removed": 1})));
    for nodes in ["devices", "rack_controllers", "region_controllers"] {
        let path = format!("tags/t/?op={nodes}");
        assert_eq!(call(&emulator, ADMIN, "GET", &path, "").await, (200, "[]".to_owned()), "{nodes}");
    }
}

#[tokio::test(start_paused = true)]
async fn vm_hosts_and_compositions_are_told_every_field_that_is_wrong() {
    let emulator = emulator(FLEET);
    let fields = |problems: &Value| -> Vec<String> { problems.as_object().unwrap().keys().cloned().collect() };
    let (status, problems) = post(&emulator, ADMIN, "vm-hosts/", "type=lxd&name=a_b&zone=nosuch&pool=nosuch").await;
    assert_eq!((status, fields(&problems)), (400, ["name", "pool", "power_address", "zone"].map(str::to_owned).to_vec()));
    let (_, host) = post(&emulator, ADMIN, "vm-hosts/", "type=lxd&power_address=10.20.0.50&name=lxd1").await;
    let path = format!("vm-hosts/{}/", host["id"]);
    let wrong = "name=a_b&cpu_over_commit_ratio=11&memory_over_commit_ratio=x&default_storage_pool=nosuch&type=virsh";
    let (status, problems) = call(&emulator, ADMIN, "PUT", &path, wrong).await;
    let problems: Value = serde_json::from_str(&problems).unwrap();
    let expected = ["cpu_over_commit_ratio", "default_storage_pool", "memory_over_commit_ratio", "name", "type"];
    assert_eq!((status, fields(&problems)), (400, expected.map(str::to_owned).to_vec()));
    let compose = async |form: &str| post(&emulator, ADMIN, &format!("vm-hosts/{}/?op=compose", host["id"]), form).await;
    let (status, problems) = compose("hostname=a_b&cores=-1&memory=x&zone=az1&storage=root:big&interfaces=none").await;
    assert_eq!(status, 400, "{problems}");
    assert_eq!(fields(&problems), ["cores", "hostname", "interfaces", "memory", "storage", "zone"]);
    assert_eq!(problems["cores"], json!(["Ensure this value is greater than or equal to 1."]));
}

#[tokio::test(start_paused = true)]
async fn an_operation_left_empty_by_the_query_is_none_and_by_the_form_an_unknown_one() {
    let emulator = emulator(FLEET);
    assert_eq!(call(&emulator, ADMIN, "GET", "zones/az1/?op=", "").await.0, 200);
    assert_eq!(post(&emulator, ADMIN, "machines/?op=", "op=accept_all").await, (200, json!([])));
    let unknown = (400, json!("Unrecognised signature: method=POST op="));
    assert_eq!(post(&emulator, ADMIN, "zones/", "op=&name=z").await, unknown);
}
