//! Calls that are wrong, large or untimely: each gets an answer, and nothing that was there is lost.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod maas;

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use maas_emulator::faults::{MachineFault, MachineHarm};
use maas_emulator::{Emulator, Fault, Fleet};

/// Calls as the administrator of a fleet that names no users; status and body.
async fn call(emulator: &Emulator, method: &str, path: &str, form: &str) -> (u16, String) {
    call_at(emulator, method, path, form, &emulator.clock().now().as_second().to_string()).await
}

async fn call_at(emulator: &Emulator, method: &str, path: &str, form: &str, timestamp: &str) -> (u16, String) {
    maas::call_at(emulator, Some(Fleet::DEFAULT_KEY), method, path, form, timestamp).await
}

fn system_id(emulator: &Emulator, hostname: &str) -> String {
    emulator.world(|world| world.all_machines().find(|machine| machine.hostname == hostname).unwrap().system_id.clone())
}

fn status(emulator: &Emulator, hostname: &str) -> &'static str {
    emulator.world(|world| world.all_machines().find(|machine| machine.hostname == hostname).unwrap().status.name())
}

#[tokio::test(start_paused = true)]
async fn numbers_beyond_all_measure_are_answered() {
    let emulator = maas::emulator("machines: [{hostname: m, count: 2}]\nvm_hosts: [{name: host}]");
    assert_eq!(call_at(&emulator, "GET", "users/?op=whoami", "", "-9223372036854775808").await.0, 401);
    let machine = system_id(&emulator, "m01");
    assert_eq!(call(&emulator, "PUT", &format!("machines/{machine}/"), "cpu_count=2147483647&memory=2147483647").await.0, 200);
    for _ in 0..2 {
        call(&emulator, "POST", "vm-hosts/3/?op=compose", "storage=root:18446744073&skip_commissioning=true").await;
    }
    assert_eq!(call(&emulator, "GET", "vm-hosts/", "").await.0, 200);
    assert_eq!(call(&emulator, "POST", "maas/?op=set_config", "name=node_timeout&value=18446744073709551615").await.0, 400);
    assert_eq!(call(&emulator, "POST", "maas/?op=set_config", "name=node_timeout&value=2147483647").await.0, 200);
    let other = system_id(&emulator, "m02");
    assert_eq!(call(&emulator, "POST", &format!("machines/{other}/?op=deploy"), "").await.0, 200);
    for cidr in ["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", "::/0", "0.0.0.0/0"] {
        assert_eq!(call(&emulator, "POST", "subnets/", &format!("cidr={cidr}")).await.0, 200);
        for operation in ["statistics", "unreserved_ip_ranges", "reserved_ip_ranges", "ip_addresses"] {
            assert_eq!(call(&emulator, "GET", &format!("subnets/cidr:{cidr}/?op={operation}"), "").await.0, 200, "{operation} of {cidr}");
        }
        call(&emulator, "POST", "ipaddresses/?op=reserve", &format!("subnet={cidr}")).await;
    }
    assert_eq!(call(&emulator, "PUT", "vm-hosts/3/", "cpu_over_commit_ratio=nan").await.0, 400, "not a number is not a ratio");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_no_form_is_not_read_as_one() {
    let emulator = maas::emulator("");
    let before = emulator.world(|world| world.zones.len());
    let request = Request::post("/MAAS/api/2.0/zones/").header("content-type", "text/plain").body(Bytes::from_static(b"name=z")).unwrap();
    assert_eq!(emulator.answer(request).await.unwrap().status(), 401);
    assert_eq!(call(&emulator, "POST", "zones/", "").await.0, 400);
    assert_eq!(emulator.world(|world| world.zones.len()), before);
}

#[tokio::test(start_paused = true)]
async fn machines_that_begin_in_the_middle_of_something_go_on_with_it() {
    let emulator = maas::emulator(
        "
machines:
  - {hostname: commissioning, status: commissioning, owner: admin}
  - {hostname: deploying, status: deploying, owner: admin, image: ubuntu/jammy}
  - {hostname: releasing, status: releasing, owner: admin}
  - {hostname: erasing, status: disk_erasing, owner: admin}
  - {hostname: testing, status: testing, owner: admin}
  - {hostname: entering, status: entering_rescue_mode, owner: admin}
",
    );
    tokio::time::sleep(Duration::from_mins(2)).await;
    let settled = ["commissioning", "deploying", "releasing", "erasing", "testing", "entering"].map(|name| status(&emulator, name));
    assert_eq!(settled, ["Ready", "Deployed", "Ready", "Ready", "Ready", "Rescue mode"]);
}

#[tokio::test(start_paused = true)]
async fn tests_that_are_stopped_leave_the_machine_to_everybody() {
    let emulator = maas::emulator("machines: [{hostname: m}]");
    let id = system_id(&emulator, "m");
    assert_eq!(call(&emulator, "POST", &format!("machines/{id}/?op=test"), "").await.0, 200);
    let (answered, body) = call(&emulator, "POST", &format!("machines/{id}/?op=abort"), "").await;
    assert_eq!(answered, 200);
    assert!(body.contains("\"status_name\": \"Testing\""), "the answer shows the state that is being left");
    assert_eq!(emulator.world(|world| world.all_machines().next().unwrap().owner), None);
    assert_eq!(status(&emulator, "m"), "Ready");
}

#[tokio::test(start_paused = true)]
async fn names_of_any_letters_get_bridges() {
    let emulator = maas::emulator("machines: [{hostname: m}]");
    let id = system_id(&emulator, "m");
    let (subnet, vlan) = emulator.world(|world| world.subnets.values().next().map(|subnet| (subnet.id, subnet.vlan)).unwrap());
    let form = format!("name=b{}&mac_address=52:54:00:aa:bb:cc&vlan={vlan}", "%C3%A9".repeat(11));
    let (made, body) = call(&emulator, "POST", &format!("nodes/{id}/interfaces/?op=create_physical"), &form).await;
    assert_eq!(made, 200, "{body}");
    let interface: serde_json::Value = serde_json::from_str(&body).unwrap();
    let link = format!("nodes/{id}/interfaces/{}/?op=link_subnet", interface["id"]);
    let (linked, body) = call(&emulator, "POST", &link, &format!("mode=AUTO&subnet={subnet}")).await;
    assert_eq!(linked, 200, "{body}");
    let (allocated, body) = call(&emulator, "POST", "machines/?op=allocate", "bridge_all=true").await;
    assert_eq!(allocated, 200, "{body}");
    assert!(body.contains(&format!("\"name\": \"br-b{}\"", "é".repeat(11))), "{body}");
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_is_refused_leaves_the_machine_as_it_was() {
    let emulator = maas::emulator("machines: [{hostname: m}]");
    let id = system_id(&emulator, "m");
    for wrong in ["bridge_all=true&bridge_fd=abc", "bridge_all=true&bridge_stp=maybe", "bridge_fd=abc", "bridge_type=nonsense"] {
        let (refused, words) = call(&emulator, "POST", &format!("machines/{id}/?op=deploy"), wrong).await;
        assert_eq!(refused, 400, "{wrong}: {words}");
        assert_eq!(status(&emulator, "m"), "Ready", "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn tests_that_free_a_failed_machine_leave_nothing_of_its_owner() {
    let emulator = maas::emulator(
        "machines: [{hostname: m, status: failed_deployment, owner: admin, image: ubuntu/jammy, annotations: {cluster: theirs}, agent_name: them}]",
    );
    let id = system_id(&emulator, "m");
    assert_eq!(call(&emulator, "POST", &format!("machines/{id}/?op=test"), "").await.0, 200);
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(status(&emulator, "m"), "Ready");
    let (_, body) = call(&emulator, "GET", &format!("machines/{id}/"), "").await;
    let machine: serde_json::Value = serde_json::from_str(&body).unwrap();
    let left = (&machine["owner"], &machine["workload_annotations"], &machine["osystem"], &machine["ip_addresses"]);
    assert_eq!(left, (&serde_json::Value::Null, &serde_json::json!({}), &serde_json::json!(""), &serde_json::json!([])));
}

#[tokio::test(start_paused = true)]
async fn a_deployed_machine_that_fails_its_tests_and_passes_them_then_is_still_its_owners() {
    let emulator = maas::emulator("machines: [{hostname: m, status: deployed, owner: admin, image: ubuntu/jammy}]");
    let place = format!("machines/{}/?op=test", system_id(&emulator, "m"));
    emulator.inject(Fault::Machine(MachineFault { machine: None, times: Some(1), harm: MachineHarm::FailTest })).unwrap();
    for settled in ["Failed testing", "Deployed"] {
        assert_eq!(call(&emulator, "POST", &place, "").await.0, 200);
        tokio::time::sleep(Duration::from_mins(5)).await;
        assert_eq!(status(&emulator, "m"), settled);
        let (owned, image) =
            emulator.world(|world| world.all_machines().map(|machine| (machine.owner.is_some(), machine.osystem.clone())).next().unwrap());
        assert_eq!((owned, image.as_str()), (true, "ubuntu"), "{settled}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_abort_that_is_refused_changes_nothing_now_or_later() {
    let emulator = maas::emulator(
        "
timings: {deploy: [600, 600], commission: [600, 600], test: [600, 600], erase: [600, 600]}
machines:
  - {hostname: deploying, status: deploying, owner: admin, image: ubuntu/jammy}
  - {hostname: commissioning, status: commissioning, owner: admin}
  - {hostname: testing, status: testing, owner: admin}
  - {hostname: erasing, status: disk_erasing, owner: admin}
",
    );
    tokio::time::sleep(Duration::from_secs(10)).await;
    let state = |name: &str| {
        emulator.world(|world| {
            let machine = world.all_machines().find(|machine| machine.hostname == name).unwrap();
            (machine.status.name(), machine.owner.is_some(), machine.status_message.clone())
        })
    };
    for name in ["deploying", "commissioning", "testing", "erasing"] {
        let (before, place) = (state(name), format!("machines/{}/", system_id(&emulator, name)));
        let silent = MachineFault { machine: Some(name.into()), times: Some(1), harm: MachineHarm::BmcError("BMC down".into()) };
        emulator.inject(Fault::Machine(silent)).unwrap();
        assert_eq!(call(&emulator, "POST", &format!("{place}?op=abort"), "").await, (500, "BMC down".to_owned()));
        assert_eq!(state(name), before, "at once");
        assert_eq!(call(&emulator, "POST", &format!("{place}?op=power_off"), "").await.0, 200);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!((state(name).0, state(name).1), (before.0, before.1), "a switch that stops nothing");
        assert_eq!(call(&emulator, "POST", &format!("{place}?op=abort"), "").await.0, 200);
        // Being switched off once more does not make the abort forgotten.
        assert_eq!(call(&emulator, "POST", &format!("{place}?op=power_off"), "").await.0, 200);
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    let ended = ["deploying", "commissioning", "testing", "erasing"].map(|name| status(&emulator, name));
    assert_eq!(ended, ["Allocated", "New", "Ready", "Failed disk erasing"]);
}

#[tokio::test(start_paused = true)]
async fn tests_that_are_stopped_leave_a_failed_machine_with_its_owner() {
    let emulator = maas::emulator("machines: [{hostname: m, status: failed_deployment, owner: admin, image: ubuntu/jammy}]");
    let place = format!("machines/{}/", system_id(&emulator, "m"));
    for operation in ["test", "abort"] {
        assert_eq!(call(&emulator, "POST", &format!("{place}?op={operation}"), "").await.0, 200);
    }
    assert_eq!(status(&emulator, "m"), "Failed deployment");
    assert!(emulator.world(|world| world.all_machines().next().unwrap().owner.is_some()), "it is still theirs to release");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_hosts_others_is_deleted_only_with_a_word_that_means_yes() {
    let emulator = maas::emulator(
        "machines: [{hostname: m, status: deployed, owner: admin, image: ubuntu/jammy}]\nvm_hosts: [{name: host, machine: m}]",
    );
    let path = format!("machines/{}/", system_id(&emulator, "m"));
    for word in ["no", "off", "FALSE", "0", ""] {
        let first = (400, "The following VM hosts must be removed first: host".to_owned());
        assert_eq!(call(&emulator, "DELETE", &format!("{path}?force={word}"), "").await, first, "{word}");
    }
    let neither = (400, "Invalid force: Value should be 'true' or 'false'".to_owned());
    assert_eq!(call(&emulator, "DELETE", &format!("{path}?force=maybe"), "").await, neither);
    assert_eq!(call(&emulator, "DELETE", &format!("{path}?force=yes"), "").await.0, 204);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_hosts_others_is_not_released_among_many() {
    let emulator = maas::emulator(
        "machines: [{hostname: m, status: deployed, owner: admin, image: ubuntu/jammy}]\nvm_hosts: [{name: host, machine: m}]",
    );
    let id = system_id(&emulator, "m");
    let (refused, words) = call(&emulator, "POST", "machines/?op=release", &format!("machines={id}")).await;
    assert_eq!((refused, words.as_str()), (400, "The following VM hosts must be removed first: host"));
}

#[tokio::test(start_paused = true)]
async fn large_answers_are_kept_and_counted() {
    let emulator = maas::emulator("machines: [{hostname: m, count: 50}]");
    assert_eq!(call(&emulator, "GET", "machines/", "").await.0, 200);
    let (size, kept) = emulator.journal(|journal| journal.entries().last().map(|entry| (entry.size, entry.response.is_some())).unwrap());
    assert!(size > 500_000 && kept, "{size} bytes, kept: {kept}");
    let token = Fleet::DEFAULT_KEY.split(':').nth(1).unwrap();
    assert_eq!(emulator.journal(|journal| journal.by_key()[token]), 1);
    assert_eq!(call(&emulator, "GET", "no-such-thing/", "").await.0, 404);
    assert_eq!(emulator.journal(|journal| journal.by_user()["admin"]), 2, "a call to nowhere counts for who made it");
}

#[tokio::test(start_paused = true)]
async fn values_that_are_none_are_refused_by_their_field() {
    let emulator =
        maas::emulator("machines: [{hostname: m, count: 2}]\nvm_hosts: [{id: 3, name: host}]\nsubnets: [{id: 1, cidr: 10.20.0.0/24}]");
    let machine = format!("machines/{}/", system_id(&emulator, "m01"));
    let image = format!("name=custom/a&architecture=amd64/generic&sha256={}", "0".repeat(64));
    for (method, path, form, words) in [
        ("PUT", machine.as_str(), "cpu_count=abc", "Enter a whole number."),
        ("PUT", &machine, "memory=xyz", "Enter a whole number."),
        ("PUT", &machine, "memory=-1", "greater than or equal to 0"),
        ("PUT", &machine, "cpu_count=4294967295", "less than or equal to 2147483647"),
        ("POST", "tags/", "name=t&definition=//[", "Invalid XPath"),
        ("POST", "tags/", "name=t&definition=//node[@id='a]", "Invalid XPath"),
        ("POST", "tags/", "name=t&definition=//node[]", "Invalid XPath"),
        ("POST", "machines/?op=allocate", "bridge_fd=abc", "Invalid bridge_fd"),
        ("POST", "boot-resources/", "name=custom/a&architecture=amd64/generic&sha256=zz&size=3", "sha256"),
        ("POST", "boot-resources/", &format!("{image}&size=18446744073709551615"), "less than or equal to 9223372036854775807"),
        ("POST", "boot-resources/", &format!("{image}&size=3&filetype=nonsense"), "Select a valid choice. nonsense"),
        ("POST", "vm-hosts/3/?op=compose", "pinned_cores=abc", "pinned_cores"),
        ("PUT", "subnets/1/", "gateway_ip=192.168.9.9", "Gateway IP must be within CIDR range."),
        ("PUT", "subnets/1/", "gateway_ip=fd00::1", "Gateway IP must be within CIDR range."),
    ] {
        let (status, body) = call(&emulator, method, path, form).await;
        assert!(status == 400 && body.contains(words), "{path} {form}: {status} {body}");
    }
    assert_eq!(call(&emulator, "POST", "tags/", "name=t&definition=//node[@id='a']/b").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn an_upload_whose_digest_is_wrong_is_refused_at_its_end_and_can_be_ended_rightly() {
    let emulator = maas::emulator("machines: [{hostname: m}]");
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let form = format!("name=custom/a&architecture=amd64/generic&sha256={digest}&size=3");
    let (created, body) = call(&emulator, "POST", "boot-resources/", &form).await;
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    let uri = &body["sets"].as_object().unwrap().values().next().unwrap()["files"]["root.tgz"]["upload_uri"];
    let place = uri.as_str().unwrap().strip_prefix("/MAAS/api/2.0/").unwrap().to_owned();
    assert_eq!(created, 201, "{body}");
    let deploy = format!("machines/{}/?op=deploy", system_id(&emulator, "m"));
    assert_eq!(call(&emulator, "PUT", &place, "a").await.0, 200);
    let (refused, words) = call(&emulator, "POST", &deploy, "distro_series=custom/a").await;
    assert!(refused == 400 && words.contains("'custom/a' is not a valid distro_series.") && !words.contains("'custom/a',"), "{words}");
    assert_eq!(status(&emulator, "m"), "Ready", "half an image is none");
    let (refused, words) = call(&emulator, "PUT", &place, "xx").await;
    assert_eq!((refused, words.as_str()), (400, "Saved content does not match given SHA256 value."));
    assert_eq!(call(&emulator, "PUT", &place, "bc").await.0, 200);
    let (again, body) = call(&emulator, "POST", "boot-resources/", &form).await;
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    let complete: Vec<&serde_json::Value> = body["sets"].as_object().unwrap().values().map(|set| &set["complete"]).collect();
    assert_eq!((again, complete), (201, vec![&true.into(), &false.into()]), "what is there stays while another version arrives");
    assert_eq!(call(&emulator, "PUT", &format!("boot-resources/{}/upload/9999/", body["id"]), "a").await.0, 404);
    assert_eq!(call(&emulator, "POST", &deploy, "distro_series=custom/a").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn events_are_followed_from_any_number() {
    let emulator = maas::emulator("machines: [{hostname: m}]");
    assert_eq!(call(&emulator, "POST", "machines/?op=allocate", "").await.0, 200);
    let count = async |place: &str| {
        let (status, body) = call(&emulator, "GET", &format!("events/?op=query&level=DEBUG&{place}"), "").await;
        assert_eq!(status, 200, "{place}: {body}");
        serde_json::from_str::<serde_json::Value>(&body).unwrap()["count"].as_u64().unwrap()
    };
    let all = count("").await;
    assert!(all > 0);
    for (place, expected) in [("after=-1", all), ("after=0", all), ("after=4294967296", 0), ("before=-1", 0), ("before=4294967296", all)] {
        assert_eq!(count(place).await, expected, "{place}");
    }
    assert_eq!(call(&emulator, "GET", "events/?op=query&after=x", "").await.0, 400);
}

#[tokio::test(start_paused = true)]
async fn the_user_of_maas_itself_can_be_read_where_the_list_says() {
    let emulator = maas::emulator("");
    let (_, list) = call(&emulator, "GET", "users/", "").await;
    let list: Vec<serde_json::Value> = serde_json::from_str(&list).unwrap();
    for user in list {
        let path = user["resource_uri"].as_str().unwrap().strip_prefix("/MAAS/api/2.0/").unwrap().to_owned();
        let (status, body) = call(&emulator, "GET", &path, "").await;
        assert_eq!((status, serde_json::from_str::<serde_json::Value>(&body).unwrap_or_default()), (200, user), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn more_fields_than_django_takes_are_refused_before_anybody_reads_them() {
    let emulator = maas::emulator("machines: [{hostname: m, status: allocated, owner: admin}]");
    let place = format!("machines/{}/?op=set_workload_annotations", system_id(&emulator, "m"));
    let form = |count: usize| (0..count).map(|number| format!("k{number}=v")).collect::<Vec<_>>().join("&");
    assert_eq!(call(&emulator, "POST", &place, &form(1_000)).await.0, 200);
    assert_eq!(call(&emulator, "POST", &place, &form(1_001)).await.0, 400);
    assert_eq!(call(&emulator, "GET", &format!("machines/?{}", form(1_001)), "").await.0, 400);
    let (_, body) = call(&emulator, "POST", &place, "k1=first&k1=last&k2=x&k2=").await;
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&body["owner_data"]["k1"], &body["owner_data"]["k2"]), (&"last".into(), &serde_json::Value::Null));
}

#[tokio::test(start_paused = true)]
async fn disks_of_composed_machines_need_room_in_a_pool() {
    let fleet = "machines: [{hostname: m, status: deployed, owner: admin, image: ubuntu/jammy}]\nvm_hosts: [{name: host}]";
    let compose = |storage: &str| format!("storage={storage}&skip_commissioning=true");
    let emulator = maas::emulator(fleet);
    let host = emulator.world(|world| world.vm_hosts.values().next().unwrap().id);
    let place = format!("vm-hosts/{host}/?op=compose");
    let (full, words) = call(&emulator, "POST", &place, &compose("root:99999")).await;
    assert_eq!((full, words.as_str()), (503, "Unable to compose machine because: LXD: storage pool is full"));
    assert_eq!(call(&emulator, "POST", &place, &compose("root:8(local)")).await.0, 200, "a tag that names no pool leaves the default one");
    let mut composed = 1;
    while call(&emulator, "POST", &place, &compose("root:400")).await.0 == 200 {
        composed += 1;
        assert!(composed < 20, "the pools never fill up");
    }
    let free = emulator.world(|world| world.machines.values().filter(|machine| machine.vm_host == Some(host)).count());
    assert_eq!(free, composed);
    emulator.inject(Fault::FullStorage { vm_host: "host".into() }).unwrap();
    assert_eq!(call(&emulator, "POST", &place, &compose("root:1")).await.0, 503);
    let allocated = call(&emulator, "POST", "machines/?op=allocate", "cpu_count=2").await;
    assert_eq!(allocated.0, 409, "an allocation composes nothing there either: {}", allocated.1);
    let unknown = emulator.inject(Fault::FullStorage { vm_host: "nosuch".into() }).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no VM host \"nosuch\"");
}
