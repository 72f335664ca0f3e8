//! What names, domains and records may be, and what becomes of them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod maas;

use maas::{ADMIN, ALICE, call, emulator, post};
use serde_json::{Value, json};

const FLEET: &str = "
users:
  - {name: admin, superuser: true, keys: [{key: 'ac:at:as'}]}
  - {name: alice, keys: [{key: 'lc:lt:ls'}]}
domains: [{name: maas}, {name: clusters.example}]
subnets: [{cidr: 10.20.0.0/24, gateway: 10.20.0.1, dhcp: {start: 10.20.0.100, end: 10.20.0.149}}]
machines: [{hostname: m, count: 2}]
";

#[tokio::test(start_paused = true)]
async fn names_with_addresses_are_one_label_of_a_known_domain() {
    let emulator = emulator(FLEET);
    let bad = |name: &str| (400, json!({"__all__": [format!("Invalid dnsresource name: {name}.")]}));
    let create = async |form: &str| post(&emulator, ADMIN, "dnsresources/", form).await;
    for name in ["a.b", "a_b", "-a", "a-", &"a".repeat(65)] {
        assert_eq!(create(&format!("name={name}&domain=maas&ip_addresses=10.20.0.9")).await, bad(name));
    }
    assert_eq!(create("name=a_b&domain=maas").await.0, 200, "without addresses it may have an underscore");
    for name in ["a b", "a..b", ".a", &"a".repeat(150)] {
        assert_eq!(create(&format!("name={name}&domain=maas")).await, bad(name));
    }
    let long = "a".repeat(192);
    assert_eq!(create(&format!("name={long}&domain=maas")).await.0, 400);
    for name in ["a.b.maas", "a.b.nosuch", "nosuch"] {
        let unknown = (404, json!("No Domain matches the given query."));
        assert_eq!(create(&format!("fqdn={name}&ip_addresses=10.20.0.9")).await, unknown, "all after the first dot is the domain");
    }
    assert_eq!(create("fqdn=*.maas&ip_addresses=10.20.0.9").await.0, 500, "MAAS cannot split it");
    assert_eq!(create("name=*&domain=maas&ip_addresses=10.20.0.9").await.1["fqdn"], "*.maas");
    for (ttl, words) in [
        ("-1", "Ensure this value is greater than or equal to 0."),
        ("99999999999999999999", "Ensure this value is less than or equal to 2147483647."),
        ("1.5", "Enter a whole number."),
    ] {
        assert_eq!(create(&format!("fqdn=t.maas&address_ttl={ttl}")).await, (400, json!({"address_ttl": [words]})));
    }
    let (_, first) = create("fqdn=api.clusters.example&ip_addresses=10.20.0.9").await;
    let (_, second) = create("name=@&domain=clusters.example&ip_addresses=10.20.0.10").await;
    assert_eq!(second["fqdn"], "clusters.example");

    let path = format!("dnsresources/{}/", first["id"]);
    let put = async |form: &str| call(&emulator, ADMIN, "PUT", &path, form).await;
    assert_eq!(put("name=b.c").await.0, 400);
    assert_eq!(put("domain=maas").await.0, 400, "here a domain is a number");
    assert!(put("fqdn=x.maas&ip_addresses=10.20.0.9").await.1.contains("api.clusters.example"), "a whole name is not read");
    let (status, renamed) = put("name=%40").await;
    assert_eq!(status, 200, "MAAS looks for others of the name only when one is created: {renamed}");
}

#[tokio::test(start_paused = true)]
async fn a_full_name_is_read_only_where_neither_part_of_it_is_given() {
    let emulator = emulator(FLEET);
    let create = async |form: &str| post(&emulator, ADMIN, "dnsresources/", form).await;
    assert_eq!(create("name=api&domain=clusters.example&fqdn=other.maas").await.1["fqdn"], "api.clusters.example");
    assert_eq!(create("name=web&fqdn=other.clusters.example").await.1["fqdn"], "web.maas");
    let nameless = (400, json!({"name": ["This field is required."]}));
    assert_eq!(create("domain=clusters.example&fqdn=other.clusters.example").await, nameless);
    assert_eq!(create("fqdn=other.clusters.example").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn domains_keep_to_the_rules_when_they_are_renamed() {
    let emulator = emulator(FLEET);
    let put = async |form: &str| call(&emulator, ADMIN, "PUT", "domains/1/", form).await;
    assert!(put("name=maas").await.1.contains("already exists"));
    assert!(put("name=a_b").await.1.contains("Invalid domain name: a_b."));
    assert_eq!(put("name=clusters.example&ttl=30").await.0, 200, "its own name is no other's");
}

#[tokio::test(start_paused = true)]
async fn records_have_the_form_of_their_type_and_an_alias_stands_alone() {
    let emulator = emulator(FLEET);
    let create = async |form: &str| post(&emulator, ADMIN, "dnsresourcerecords/", form).await;
    for form in [
        "name=_a._tcp&domain=maas&rrtype=SRV&rrdata=bad",
        "fqdn=a.maas&rrtype=MX&rrdata=foo",
        "fqdn=a.maas&rrtype=MX&rrdata=70000 b.maas",
        "fqdn=a.maas&rrtype=CNAME&rrdata=a b",
        "name=a b&domain=maas&rrtype=TXT&rrdata=x",
        "name=a..b&domain=maas&rrtype=TXT&rrdata=x",
    ] {
        let (status, words) = create(form).await;
        assert!(status == 400 && words["__all__"].is_array(), "{form}: {status} {words}");
    }
    assert_eq!(create("name=_a._tcp&domain=maas&rrtype=SRV&rrdata=0 10 2380 a.maas").await.0, 200);
    assert_eq!(create("fqdn=_a._tcp.x.maas&rrtype=SRV&rrdata=0 10 2380 a.maas").await.1["fqdn"], "_a._tcp.x.maas");
    assert_eq!(create("fqdn=_a._tcp.maas&rrtype=SRV&rrdata=0 10 2380 a.maas").await.0, 404, "a service takes three labels");
    let (status, alias) = create("fqdn=alias.maas&rrtype=CNAME&rrdata=a.maas").await;
    assert_eq!(status, 200, "{alias}");
    let apart = json!({"__all__": ["CNAME records for a name cannot coexist with non-CNAME records."]});
    assert_eq!(create("fqdn=alias.maas&rrtype=TXT&rrdata=x").await, (400, apart.clone()));
    assert_eq!(create("fqdn=alias.maas&rrtype=CNAME&rrdata=b.maas").await.0, 400);
    assert_eq!(create("fqdn=text.maas&rrtype=TXT&rrdata=x").await.0, 200);
    assert_eq!(create("fqdn=text.maas&rrtype=CNAME&rrdata=a.maas").await, (400, apart));
    let (_, names) = call(&emulator, ADMIN, "GET", "dnsresources/?fqdn=alias.maas", "").await;
    let names: Value = serde_json::from_str(&names).unwrap();
    let path = format!("dnsresources/{}/", names[0]["id"]);
    assert_eq!(call(&emulator, ADMIN, "PUT", &path, "ip_addresses=10.20.0.9").await.0, 400);
}

#[tokio::test(start_paused = true)]
async fn a_reservation_with_a_host_name_is_refused_before_anything_is_reserved_or_has_that_name() {
    let emulator = emulator(FLEET);
    let reserve = async |form: &str| post(&emulator, ALICE, "ipaddresses/?op=reserve", form).await;
    let mac = emulator.world(|world| world.interfaces.values().next().unwrap().mac.clone());
    let taken = format!("subnet=10.20.0.0/24&hostname=a&mac={mac}");
    let long = format!("subnet=10.20.0.0/24&hostname={}", "a".repeat(192));
    for (form, status, words) in [
        ("subnet=10.20.0.0/24&hostname=a.nosuch.example", 404, "No Domain matches the given query."),
        ("ip=10.20.0.120&hostname=a.nosuch.example", 403, "belongs to an existing dynamic range"),
        ("ip=192.0.2.1&hostname=a", 400, "No known subnet for IP address: 192.0.2.1."),
        ("ip=nonsense&hostname=a", 400, "ip_address"),
        (&taken, 400, "already belongs to m01"),
        (&long, 400, "at most 191 characters (it has 192)"),
    ] {
        let (refused, body) = reserve(form).await;
        assert!(refused == status && body.to_string().contains(words), "{form}: {refused} {body}");
    }
    let kept = || emulator.world(|world| (world.names.len(), world.addresses.values().filter(|address| address.user.is_some()).count()));
    assert_eq!(kept(), (0, 0));

    let names = async || -> Vec<(String, usize)> {
        let (_, body) = call(&emulator, ADMIN, "GET", "dnsresources/", "").await;
        let body: Value = serde_json::from_str(&body).unwrap();
        let row = |row: &Value| (row["fqdn"].as_str().unwrap().to_owned(), row["ip_addresses"].as_array().unwrap().len());
        body.as_array().unwrap().iter().map(row).collect()
    };
    for form in ["subnet=10.20.0.0/24&hostname=a", "ip=10.20.0.60&hostname=a.maas", "ip=10.20.0.61&hostname=b.clusters.example"] {
        assert_eq!(reserve(form).await.0, 200, "{form}");
    }
    assert_eq!(
        names().await,
        [("a.maas".to_owned(), 2), ("b.clusters.example".to_owned(), 1)],
        "a name that is there gets one more address"
    );
    assert_eq!(kept(), (2, 3));
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_given_back_takes_names_along_that_lead_nowhere_else() {
    let emulator = emulator(FLEET);
    for form in ["fqdn=one.maas&ip_addresses=10.20.0.71", "fqdn=two.maas&ip_addresses=10.20.0.71 10.20.0.72"] {
        assert_eq!(post(&emulator, ADMIN, "dnsresources/", form).await.0, 200);
    }
    assert_eq!(post(&emulator, ADMIN, "ipaddresses/?op=release", "ip=10.20.0.71").await.0, 204);
    let names = || emulator.world(|world| world.names.values().map(|name| (name.name.clone(), name.addresses.len())).collect::<Vec<_>>());
    assert_eq!(names(), [("two".to_owned(), 1)]);
}

#[tokio::test(start_paused = true)]
async fn all_names_are_those_nobody_made_before_the_rows_of_each_domain() {
    let emulator = emulator(FLEET);
    post(&emulator, ADMIN, "dnsresources/", "fqdn=api.clusters.example&ip_addresses=10.20.0.70").await;
    post(&emulator, ADMIN, "dnsresources/", "fqdn=web.maas&ip_addresses=10.20.0.71&address_ttl=5").await;
    assert_eq!(post(&emulator, ALICE, "ipaddresses/?op=reserve", "ip=10.20.0.72").await.0, 200);
    let list = async |key: Option<&str>, query: &str| -> Vec<Value> {
        let (status, body) = call(&emulator, key, "GET", &format!("dnsresources/?{query}"), "").await;
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    };
    let names = |rows: &[Value]| -> Vec<(String, bool)> {
        let name = |row: &Value| (row["fqdn"].as_str().unwrap().to_owned(), row["id"] == -1);
        rows.iter().map(name).filter(|(name, _)| !name.starts_with('m')).collect()
    };
    let row = |name: &str, implicit: bool| (name.to_owned(), implicit);
    let (web, api) = ("web.maas", "api.clusters.example");
    let reserved = row("10-20-0-72.maas", true);
    let all = list(ADMIN, "all=true").await;
    assert_eq!(names(&all), [row(web, true), reserved.clone(), row(web, false), row(api, true), row(api, false)], "{all:?}");
    let record = &all.iter().find(|row| row["fqdn"] == web && row["id"] == -1).unwrap()["resource_records"][0];
    let explicit = all.iter().find(|row| row["fqdn"] == web && row["id"] != -1).unwrap();
    assert_eq!((&record["dnsresource_id"], &record["ttl"], &record["rrdata"]), (&explicit["id"], &json!(5), &json!("10.20.0.71")));
    assert_eq!(names(&list(ALICE, "all=yes").await), [reserved, row(web, false), row(api, false)], "others' addresses are not shown");
    assert_eq!(names(&list(ADMIN, "all=on&rrtype=a&name=web").await), [row(web, true)], "rows have no address records");
    assert_eq!(names(&list(ADMIN, "all=off").await), [row(web, false), row(api, false)]);
    for path in ["dnsresources/?all=maybe", "ipaddresses/?all=maybe"] {
        let refusal = (400, "Invalid all: Value should be 'true' or 'false'".to_owned());
        assert_eq!(call(&emulator, ADMIN, "GET", path, "").await, refusal);
    }
}
