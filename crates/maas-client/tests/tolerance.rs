//! Answers of other versions: whatever is dropped, null or new in an answer, it can still be read.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

#[path = "support/recordings.rs"]
mod recordings;
mod support;

use std::collections::BTreeMap;

use maas_client::{
    Allocate, Client, Compose, Deploy, DnsFilter, EventFilter, EventPlace, Id, LinkSubnet, MachineFilter, MachineStatus, PowerOff,
    PowerState, Release, Reserve, SubnetName, SystemId, VmHostSettings,
};
use proptest::{
    prelude::{Just, Strategy, any, prop_oneof},
    test_runner::{Config, TestRunner},
};
use serde_json::{Map, Value, json};

/// What a version we do not know may do to a value.
#[derive(Clone, Debug)]
enum Change {
    Drop,
    Null,
    /// Another text where there was a text, another number where there was a number.
    Another(u32),
    /// A key nobody has heard of beside it.
    Beside,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![Just(Change::Drop), Just(Change::Null), any::<u32>().prop_map(Change::Another), Just(Change::Beside)]
}

/// Maps whose keys are names somebody chose: a version cannot have keys of its own there.
const CHOSEN_KEYS: [&str; 6] = ["storage", "interfaces", "sets", "files", "workload_annotations", "owner_data"];

/// What says of which thing an answer is: one without it is refused, whatever else it holds.
const NAMING_KEYS: [&str; 7] = ["id", "system_id", "events", "total_addresses", "ip", "username", "added"];

/// The value with the next changes to its parts, if there are any for them.
fn changed(parent: &str, value: &Value, next: &mut impl FnMut() -> Option<Change>) -> Option<Value> {
    let value = match value {
        Value::Object(map) => {
            let mut result = Map::new();
            for (key, inner) in map {
                if parent.is_empty() && NAMING_KEYS.contains(&key.as_str()) {
                    result.insert(key.clone(), inner.clone());
                    continue;
                }
                match next() {
                    Some(Change::Drop) => {}
                    Some(Change::Null) => drop(result.insert(key.clone(), Value::Null)),
                    Some(Change::Another(seed)) => drop(result.insert(key.clone(), another(inner, seed))),
                    Some(Change::Beside) => {
                        result.insert(key.clone(), inner.clone());
                        if CHOSEN_KEYS.contains(&parent) {
                            continue;
                        }
                        result.insert(format!("{key}_unheard_of"), json!({ "deep": [1, null, { "er": "x" }] }));
                    }
                    None => {
                        if let Some(inner) = changed(key, inner, next) {
                            result.insert(key.clone(), inner);
                        }
                    }
                }
            }
            Value::Object(result)
        }
        Value::Array(list) => list.iter().filter_map(|inner| changed(parent, inner, next)).collect(),
        scalar => match next() {
            Some(Change::Null) => Value::Null,
            Some(Change::Drop) => return None,
            Some(Change::Another(seed)) => another(scalar, seed),
            Some(Change::Beside) | None => scalar.clone(),
        },
    };
    Some(value)
}

fn another(value: &Value, seed: u32) -> Value {
    match value {
        Value::String(_) => json!(format!("unheard-of-{seed}")),
        Value::Number(_) => {
            [json!(seed), json!(-i64::from(seed)), json!(u64::MAX), json!(0.5), json!(seed.to_string())][seed as usize % 5].clone()
        }
        Value::Bool(yes) => json!(!yes),
        other => other.clone(),
    }
}

/// Reads an answer as each of the kinds it may be of.
async fn read(client: &Client, number: u32) -> Result<(), maas_client::Error> {
    let id = SystemId::from("abc123");
    match number {
        36 => client.zones().list().await.map(drop),
        56 => client.machines().list(&MachineFilter::new()).await.map(drop),
        531 => client.machine(&id).read().await.map(drop),
        107 | 110 | 111 | 491 => client.machines().allocate(&Allocate::new()).await.map(drop),
        154 => client.machine(&id).deploy(&Deploy::default()).await.map(drop),
        176 => client.machine(&id).power_off(PowerOff::Hard, None).await.map(drop),
        190 => client.machine(&id).set_workload_annotations(&BTreeMap::new()).await.map(drop),
        196 => client.machine(&id).release(&Release::default()).await.map(drop),
        235 => client.machines().release(&[], None).await.map(drop),
        282 => client.tags().update_nodes("t", &[], &[]).await.map(drop),
        342 => client.dns_resources().create("a.example", None, &[]).await.map(drop),
        376 | 384 => client.ip_addresses().reserve(&Reserve::default()).await.map(drop),
        418 => client.interfaces(&id).link_subnet(Id::new(3), &LinkSubnet::default()).await.map(drop),
        445 => client.vm_hosts().create("lxd", &VmHostSettings::default()).await.map(drop),
        466 => client.vm_hosts().compose(Id::new(1), &Compose::default()).await.map(drop),
        2 => client.whoami().await.map(drop),
        161 => client.events().query(&EventFilter::new(), EventPlace::Newest, None).await.map(drop),
        275 => client.tags().list().await.map(drop),
        314 => client.boot_resources().read(Id::new(1)).await.map(drop),
        333 => client.domains().list().await.map(drop),
        354 | 548 => client.dns_resources().list(&DnsFilter::default()).await.map(drop),
        371 => client.dns_records().list(None).await.map(drop),
        389 => client.ip_addresses().list_all().await.map(drop),
        396 => client.subnets().list().await.map(drop),
        400 => client.subnets().ip_addresses(&SubnetName::Id(Id::new(1))).await.map(drop),
        403 => client.subnets().statistics(&SubnetName::Id(Id::new(1))).await.map(drop),
        406 => client.ip_ranges().list().await.map(drop),
        409 => client.vlans().list_fabrics().await.map(drop),
        434 => client.interfaces(&id).list().await.map(drop),
        489 => client.vm_hosts().read(Id::new(1)).await.map(drop),
        other => panic!("{other} is of no kind"),
    }
}

#[test]
fn answers_survive_dropped_keys_nulls_and_values_nobody_has_heard_of() {
    let Some(exchanges) = recordings::all() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let reads = [2, 36, 56, 531, 161, 275, 314, 333, 354, 548, 371, 389, 396, 400, 403, 406, 409, 434, 489];
    let writes = [107, 110, 111, 154, 176, 190, 196, 235, 282, 342, 376, 384, 418, 445, 466, 491];
    for number in reads.into_iter().chain(writes) {
        let exchange = exchanges.iter().find(|exchange| exchange.number == number).unwrap();
        assert!(exchange.succeeded() && exchange.is_json(), "{number}");
        let strategy = (proptest::collection::vec(change(), 1..40), 1usize..40);
        let cases = if exchange.body.to_string().len() > 50_000 { 32 } else { 128 };
        let mut runner = TestRunner::new(Config { failure_persistence: None, cases, ..Config::default() });
        let result = runner.run(&strategy, |(changes, step)| {
            let mut counter = 0;
            let mut rest = changes.into_iter().cycle().take(400);
            let body = changed("", &exchange.body, &mut || {
                counter += 1;
                if counter % step == 0 { rest.next() } else { None }
            });
            let body = body.unwrap_or_default();
            let (transport, _) = support::always(support::json(&body.to_string()));
            let outcome = runtime.block_on(read(&support::builder().build_on(transport), number));
            proptest::prop_assert!(outcome.is_ok(), "{number}: {outcome:?}");
            Ok(())
        });
        result.unwrap_or_else(|error| panic!("{error}"));
    }
}

#[tokio::test]
async fn a_machine_that_says_nothing_is_not_taken_for_something() {
    let (transport, _) = support::always(support::json(
        r#"{"system_id": "abc123", "status": null, "power_state": null, "zone": null, "pool": {"id": null}}"#,
    ));
    let machine = support::builder().build_on(transport).machine(&SystemId::from("abc123")).read().await.unwrap();
    assert_eq!((machine.status, machine.power_state), (MachineStatus::Other(-1), PowerState::Unknown));
    assert_eq!((machine.zone.id, machine.pool.id), (Id::new(-1), Id::new(-1)));
}

#[tokio::test]
async fn new_states_are_kept_as_they_came() {
    let (transport, _) =
        support::always(support::json(r#"{"system_id": "abc123", "status": 99, "status_name": "Levitating", "power_state": "dimmed"}"#));
    let machine = support::builder().build_on(transport).machine(&SystemId::from("abc123")).read().await.unwrap();
    assert_eq!((machine.status, machine.power_state), (MachineStatus::Other(99), PowerState::Other("dimmed".to_owned())));
}
