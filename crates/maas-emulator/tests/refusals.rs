//! Who is refused what, and in which words: as MAAS's source has them where no recording does.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod maas;

use maas::{ADMIN, ALICE, answer, emulator};
use maas_emulator::Emulator;
use serde_json::json;

const FLEET: &str = "
users:
  - {name: admin, superuser: true, keys: [{key: 'ac:at:as'}]}
  - {name: alice, keys: [{key: 'lc:lt:ls'}]}
  - {name: bob}
pools: [{id: 5, name: racks}]
spaces: [{id: 3, name: inner}]
domains: [{name: maas}, {id: 7, name: clusters.example}]
fabrics:
  - {id: 0, name: first, vlans: [{id: 5000, vid: 0}]}
  - {id: 1, name: red, vlans: [{id: 5001, vid: 0, dhcp: true, space: inner}, {id: 5002, vid: 7}]}
subnets:
  - {id: 1, cidr: 10.20.0.0/24, vlan: 5001, dhcp: {start: 10.20.0.100, end: 10.20.0.149}}
  - {id: 2, cidr: 10.30.0.0/24, vlan: 5001}
tags: [{name: big}]
machines:
  - {hostname: hers, status: deployed, owner: alice, image: ubuntu/jammy}
  - {hostname: ready}
";

fn system_id(emulator: &Emulator, hostname: &str) -> String {
    emulator.world(|world| world.all_machines().find(|machine| machine.hostname == hostname).unwrap().system_id.clone())
}

#[tokio::test(start_paused = true)]
async fn annotations_are_the_owners_and_not_even_an_administrators() {
    let emulator = emulator(FLEET);
    let refusal = (409, json!("Cannot set workload annotation: it hasn't been acquired."));
    for operation in ["set_workload_annotations", "set_owner_data"] {
        for hostname in ["hers", "ready"] {
            let path = format!("machines/{}/?op={operation}", system_id(&emulator, hostname));
            assert_eq!(answer(&emulator, ADMIN, "POST", &path, "a=b").await, refusal, "{hostname} {operation}");
        }
    }
    let path = format!("machines/{}/?op=set_workload_annotations", system_id(&emulator, "hers"));
    assert_eq!(answer(&emulator, ALICE, "POST", &path, "a=b").await.1["workload_annotations"], json!({"a": "b"}));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_missed_by_everybody_and_what_is_there_is_refused_to_users_without_a_word() {
    let emulator = emulator(FLEET);
    emulator.world(|world| world.commits += 1);
    let (_, record) = answer(&emulator, ADMIN, "POST", "dnsresourcerecords/", "fqdn=t.maas&rrtype=TXT&rrdata=x").await;
    for (path, missing, model) in [
        ("domains/7/".to_owned(), "domains/99/", "Domain"),
        ("subnets/1/".to_owned(), "subnets/99/", "Subnet"),
        ("resourcepool/5/".to_owned(), "resourcepool/99/", "ResourcePool"),
        ("fabrics/1/vlans/7/".to_owned(), "fabrics/99/vlans/7/", "Fabric"),
        ("spaces/3/".to_owned(), "spaces/99/", "Space"),
        (format!("dnsresourcerecords/{}/", record["id"]), "dnsresourcerecords/99/", "DNSData"),
    ] {
        for method in ["PUT", "DELETE"] {
            assert_eq!(answer(&emulator, ALICE, method, &path, "").await, (403, json!("")), "{method} {path}");
            let words = format!("No {model} matches the given query.");
            assert_eq!(answer(&emulator, ALICE, method, missing, "").await, (404, json!(words)), "{method} {missing}");
        }
    }
    for (method, path) in [("DELETE", "fabrics/1/"), ("POST", "fabrics/1/vlans/"), ("POST", "resourcepools/"), ("PUT", "vlans/5002/")] {
        assert_eq!(answer(&emulator, ALICE, method, path, "").await, (403, json!("")), "{method} {path}");
    }
    let missing = (404, json!("VLAN with specified ID does not exist."));
    assert_eq!(answer(&emulator, ALICE, "PUT", "vlans/99/", "").await, missing);
    let reserved = (403, json!("This method is reserved for admin users."));
    for (method, path) in [("POST", "domains/"), ("POST", "subnets/"), ("PUT", "zones/nosuch/"), ("DELETE", "zones/default/")] {
        assert_eq!(answer(&emulator, ALICE, method, path, "").await, reserved, "{method} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn tags_are_refused_to_users_without_a_word_and_without_a_look() {
    let emulator = emulator(FLEET);
    for (method, path) in [
        ("POST", "tags/"),
        ("PUT", "tags/big/"),
        ("PUT", "tags/nosuch/"),
        ("DELETE", "tags/nosuch/"),
        ("POST", "tags/nosuch/?op=update_nodes"),
        ("POST", "tags/nosuch/?op=rebuild"),
    ] {
        assert_eq!(answer(&emulator, ALICE, method, path, "name=new").await, (403, json!("")), "{method} {path}");
    }
    let stale = (409, json!("Definition supplied '//x' doesn't match current definition ''"));
    assert_eq!(answer(&emulator, ADMIN, "POST", "tags/big/?op=update_nodes", "definition=//x").await, stale);
}

#[tokio::test(start_paused = true)]
async fn a_user_who_has_something_stays_and_one_who_is_not_there_is_gone() {
    let emulator = emulator(FLEET);
    for form in ["ip=10.20.0.60", "ip=10.20.0.61"] {
        assert_eq!(answer(&emulator, ALICE, "POST", "ipaddresses/?op=reserve", form).await.0, 200);
    }
    let delete = async |name: &str| answer(&emulator, ADMIN, "DELETE", &format!("users/{name}/"), "").await;
    let words = |what: &str| (400, json!(format!("User alice cannot be deleted: {what} are still allocated")));
    assert_eq!(delete("alice").await, words("2 static IP address(es), 1 node(s)"));
    let range = answer(&emulator, ALICE, "POST", "ipranges/", "type=reserved&start_ip=10.20.0.70&end_ip=10.20.0.79").await;
    assert_eq!(range.0, 200, "{}", range.1);
    assert_eq!(delete("alice").await, words("2 static IP address(es), 1 IP range(s), 1 node(s)"));
    for name in ["nosuch", "bob", "bob", "alice/?transfer_resources_to=admin#"] {
        assert_eq!(delete(name).await, (204, json!("")), "{name}");
    }
    assert_eq!(delete("admin").await, (400, json!("An administrator cannot self-delete.")));
    let owner = emulator.world(|world| world.all_machines().find(|machine| machine.hostname == "hers").unwrap().owner);
    assert_eq!(owner, emulator.world(|world| world.user_named("admin").map(|user| user.id)));
}

#[tokio::test(start_paused = true)]
async fn a_new_user_is_an_administrator_by_one_or_zero_and_by_no_other_word() {
    let emulator = emulator(FLEET);
    let create = async |superuser: &str| {
        let form = format!("username=carol{superuser}&email=c@example.com&password=p&is_superuser={superuser}");
        answer(&emulator, ADMIN, "POST", "users/", &form).await
    };
    for (word, is_superuser) in [("0", false), ("1", true)] {
        assert_eq!(create(word).await.1["is_superuser"], json!(is_superuser));
    }
    for word in ["true", "yes", ""] {
        assert_eq!(create(word).await, (500, json!(format!("Not a valid Boolean value (0 or 1): '{word}'"))));
    }
    assert_eq!(answer(&emulator, ADMIN, "POST", "users/", "username=d").await, (400, json!("No provided email!")));
}

#[tokio::test(start_paused = true)]
async fn a_domain_with_names_in_it_stays_and_says_which() {
    let emulator = emulator(FLEET);
    for name in ["api", "*", "@"] {
        assert_eq!(answer(&emulator, ADMIN, "POST", "dnsresources/", &format!("name={name}&domain=clusters.example")).await.0, 200);
    }
    let (status, words) = answer(&emulator, ADMIN, "DELETE", "domains/7/", "").await;
    let words = words.as_str().unwrap();
    let told =
        "through protected foreign keys: 'DNSResource.domain'.\", {<DNSResource: name=api>, <DNSResource: name=*>, <DNSResource: name=@>})";
    assert!(status == 500 && words.ends_with(told), "{status} {words}");
}

#[tokio::test(start_paused = true)]
async fn a_subnet_whose_dynamic_range_is_served_stays() {
    let emulator = emulator(FLEET);
    let delete = async |subnet: &str| answer(&emulator, ADMIN, "DELETE", &format!("subnets/{subnet}/"), "").await;
    let words = "Cannot delete a subnet that is actively servicing a dynamic IP range. (Delete the dynamic range or disable DHCP first.)";
    assert_eq!(delete("1").await, (400, json!(words)));
    assert_eq!(delete("2").await.0, 204, "it has no range");
    assert_eq!(answer(&emulator, ADMIN, "PUT", "vlans/5001/", "dhcp_on=false").await.0, 200);
    assert_eq!(delete("1").await.0, 204);
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_no_space_is_shown_as_one_that_cannot_be_changed() {
    let emulator = emulator(FLEET);
    let (_, spaces) = answer(&emulator, ALICE, "GET", "spaces/", "").await;
    let undefined = spaces.as_array().unwrap().last().unwrap();
    assert_eq!((&undefined["id"], &undefined["name"]), (&json!(-1), &json!("undefined")));
    assert_eq!(undefined["resource_uri"], "/MAAS/api/2.0/spaces/undefined/");
    assert!(undefined["vlans"].as_array().unwrap().iter().any(|vlan| vlan["id"] == 5002), "{undefined}");
    assert_eq!(&answer(&emulator, ALICE, "GET", "spaces/undefined/", "").await.1, undefined);
    for (method, done) in [("PUT", "modified"), ("DELETE", "deleted")] {
        let words = format!("Space cannot be {done}: undefined");
        assert_eq!(answer(&emulator, ADMIN, method, "spaces/-1/", "name=x").await, (400, json!(words)));
    }
}

#[tokio::test(start_paused = true)]
async fn the_networks_of_a_fabric_are_taken_away_from_the_outside_in() {
    let emulator = emulator(FLEET);
    let delete = async |path: &str| answer(&emulator, ADMIN, "DELETE", path, "").await;
    assert_eq!(delete("fabrics/0/").await, (400, json!("This fabric is the default fabric, it cannot be deleted.")));
    let present = "Can't delete fabric; the following subnets are still present: 10.20.0.0/24, 10.30.0.0/24";
    assert_eq!(delete("fabrics/1/").await, (400, json!(present)));
    let first = "This VLAN is the default VLAN in the fabric, it cannot be deleted.";
    assert_eq!(delete("vlans/5001/").await, (400, json!(first)));
    let path = format!("nodes/{}/interfaces/", system_id(&emulator, "ready"));
    let (_, interfaces) = answer(&emulator, ADMIN, "GET", &path, "").await;
    let tagged = format!("parent={}&vlan=5002", interfaces[0]["id"]);
    assert_eq!(answer(&emulator, ADMIN, "POST", &format!("{path}?op=create_vlan"), &tagged).await.0, 200);
    assert_eq!(delete("fabrics/1/vlans/7/").await.0, 204);
    let (_, left) = answer(&emulator, ADMIN, "GET", &path, "").await;
    assert_eq!(left.as_array().unwrap().len(), 1, "what was for its tag alone went with it: {left}");
}

#[tokio::test(start_paused = true)]
async fn machines_that_are_ready_are_not_among_those_released_together() {
    let emulator = emulator(FLEET);
    let (hers, ready) = (system_id(&emulator, "hers"), system_id(&emulator, "ready"));
    let release = async || answer(&emulator, ADMIN, "POST", "machines/?op=release", &format!("machines={hers}&machines={ready}")).await;
    assert_eq!(release().await, (200, json!([hers])));
    let words = format!("Machine(s) cannot be released in their current state: {hers} ('Releasing').");
    assert_eq!(release().await, (409, json!(words)));
}

#[tokio::test(start_paused = true)]
async fn tests_that_did_not_fail_are_not_overridden() {
    let emulator = emulator(FLEET);
    let path = format!("machines/{}/?op=override_failed_testing", system_id(&emulator, "ready"));
    let words = "Unable to override node status. Node is not in 'Failed testing' status.";
    assert_eq!(answer(&emulator, ADMIN, "POST", &path, "").await, (409, json!(words)));
}

#[tokio::test(start_paused = true)]
async fn rescue_mode_takes_the_machine_and_gives_back_only_what_is_deployed() {
    let states = ["new", "ready", "allocated", "deployed", "broken", "failed_deployment"];
    let row = |state: &&str| format!("{{hostname: {}, status: {state}, owner: alice, image: ubuntu/jammy}}", state.replace('_', "-"));
    let machines: Vec<String> = states.iter().map(row).collect();
    let fleet = FLEET.split("machines:").next().unwrap().to_owned() + &format!("machines: [{}]\n", machines.join(", "));
    let emulator = emulator(&fleet);
    let owner = |name: &str| {
        emulator.world(|world| {
            let machine = world.all_machines().find(|machine| machine.hostname == name).unwrap();
            (machine.status.name(), machine.owner.map(|owner| world.user_name(owner).to_owned()))
        })
    };
    for state in states {
        let name = state.replace('_', "-");
        let (before, _) = owner(&name);
        let path = format!("machines/{}/", system_id(&emulator, &name));
        assert_eq!(answer(&emulator, ADMIN, "POST", &format!("{path}?op=rescue_mode"), "").await.0, 200, "{state}");
        tokio::time::sleep(std::time::Duration::from_mins(5)).await;
        assert_eq!(owner(&name), ("Rescue mode", Some("admin".to_owned())), "{state}: whoever mends it has it");
        let again = (409, json!("Invalid transition: Rescue mode -> Entering rescue mode."));
        assert_eq!(answer(&emulator, ADMIN, "POST", &format!("{path}?op=rescue_mode"), "").await, again);
        assert_eq!(answer(&emulator, ADMIN, "POST", &format!("{path}?op=exit_rescue_mode"), "").await.0, 200, "{state}");
        tokio::time::sleep(std::time::Duration::from_mins(5)).await;
        assert_eq!(owner(&name), (before, (state == "deployed").then(|| "admin".to_owned())), "{state}");
        let gone = (409, json!(format!("Invalid transition: {before} -> Exiting rescue mode.")));
        assert_eq!(answer(&emulator, ADMIN, "POST", &format!("{path}?op=exit_rescue_mode"), "").await, gone);
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_without_room_says_so_of_cores_and_memory_together() {
    let emulator = emulator(&format!("{FLEET}vm_hosts: [{{id: 3, name: h, cores: 8, memory: 8192}}]\n"));
    let compose = async |form: &str| answer(&emulator, ADMIN, "POST", "vm-hosts/3/?op=compose", form).await;
    let ratio = async |form: &str| assert_eq!(answer(&emulator, ADMIN, "PUT", "vm-hosts/3/", form).await.0, 200);
    let cores = |ratio: &str, available: i64, wanted: u32| {
        format!("CPU overcommit ratio is {ratio} and there are {available} available resources; {wanted} requested.")
    };
    let words = |problems: &str| (503, json!(format!("Unable to compose KVM instance in 'h'. {problems}")));
    ratio("cpu_over_commit_ratio=0.5&memory_over_commit_ratio=0.5").await;
    assert_eq!(compose("cores=5&memory=2048").await, words(&cores("0.5", 8, 5)));
    let memory = "Memory overcommit ratio is 0.5 and there are 8192 available resources; 8000 requested.";
    assert_eq!(compose("cores=5&memory=8000").await, words(&format!("{}{memory}", cores("0.5", 8, 5))));
    assert_eq!(compose("pinned_cores=1&pinned_cores=2&pinned_cores=3&memory=1024").await.0, 200, "pinned cores are not counted");
    ratio("cpu_over_commit_ratio=2&memory_over_commit_ratio=10").await;
    assert_eq!(compose("cores=8&memory=1024").await.0, 200);
    assert_eq!(compose("cores=8&memory=1024").await, words(&cores("2.0", -3, 8)), "what is left without the ratio");
    let comma = (400, json!("Tag may not contain a \",\"."));
    assert_eq!(answer(&emulator, ADMIN, "POST", "vm-hosts/3/?op=add_tag", "tag=a,b").await, comma);
}

#[tokio::test(start_paused = true)]
async fn strangers_are_asked_for_machines_that_are_only_being_got_to_know() {
    let machines = "machines: [{hostname: new, status: new, interfaces: [{mac: '52:54:00:00:00:01'}]}, {hostname: m, interfaces: [{mac: '52:54:00:00:00:02'}]}]\n";
    let emulator = emulator(&(FLEET.split("machines:").next().unwrap().to_owned() + machines));
    let known = async |key: Option<&str>, mac: &str| answer(&emulator, key, "GET", &format!("machines/?op=is_registered{mac}"), "").await;
    for (mac, to_users, to_strangers) in [("01", true, false), ("02", true, true), ("03", false, false)] {
        let mac = format!("&mac_address=52-54-00-00-00-{mac}");
        assert_eq!(known(ALICE, &mac).await.1, json!(to_users), "{mac}");
        assert_eq!(known(None, &mac).await.1, json!(to_strangers), "{mac}");
    }
    assert_eq!(known(None, "").await, (400, json!("No provided mac_address!")));
}
