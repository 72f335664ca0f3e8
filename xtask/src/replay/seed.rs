//! The state before the first request, read from the first recorded answers that show it, as a fleet for the emulator. What no answer
//! shows is invented. Nothing of it is kept: it is derived again each time.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use maas_emulator::Fleet;
use serde_json::{Value, json};

use super::{
    mapping::{Kind, Mapping, replace_words},
    oauth::Key,
    recordings::{Recording, relative},
    script::Script,
    seed_machines::Machines,
};

/// What a run starts from.
pub struct Seed {
    pub fleet: Fleet,
    /// One key for everybody who sends requests.
    pub keys: BTreeMap<String, Key>,
    /// All ids of the seed, which stand only for themselves.
    pub mapping: Mapping,
}

/// The recorded answers, asked for what they show.
pub struct Answers<'a>(pub &'a [Recording]);

impl<'a> Answers<'a> {
    fn exchanges(&self) -> impl Iterator<Item = &'a super::recordings::Exchange> {
        self.0.iter().flat_map(|recording| &recording.exchanges)
    }

    /// The first list of a whole collection.
    pub fn list(&self, collection: &str) -> &'a [Value] {
        let lists = |exchange: &&super::recordings::Exchange| exchange.request.lists(collection) && exchange.response.status == 200;
        self.exchanges().find(lists).and_then(|exchange| exchange.response.body.as_array()).map_or(&[], Vec::as_slice)
    }

    /// Successful answers of an operation, with the relative path and the parameters that were asked.
    pub fn operation(&self, operation: &str) -> impl Iterator<Item = (&'a super::recordings::Request, &'a Value)> {
        let answered = self.exchanges().filter(|exchange| exchange.response.status == 200);
        let operation = operation.to_owned();
        answered
            .filter(move |exchange| exchange.request.operation() == Some(&operation))
            .map(|exchange| (&exchange.request, &exchange.response.body))
    }

    /// Everything answers show, one by one also where they are lists.
    fn shown(&self) -> impl Iterator<Item = &'a Value> {
        let rows = |body: &'a Value| body.as_array().map_or(std::slice::from_ref(body), Vec::as_slice);
        self.exchanges().flat_map(move |exchange| rows(&exchange.response.body))
    }

    /// Everybody who sends requests.
    fn senders(&self) -> BTreeSet<&'a str> {
        self.exchanges().filter_map(|exchange| exchange.request.user.as_deref()).collect()
    }
}

/// Reads the seed.
pub fn derive(recordings: &[Recording], script: &Script) -> anyhow::Result<Seed> {
    let answers = Answers(recordings);
    let invented = &script.seed;
    let machines = Machines::new(&answers, invented)?;
    let (users, keys) = users(&answers, &script.joining().collect());
    let fleet = json!({
        "users": users,
        "zones": places(answers.list("zones/")),
        "pools": places(answers.list("resourcepools/")),
        "domains": answers.list("domains/").iter().map(|domain| picked(domain, &["id", "name", "ttl", "authoritative"])).collect::<Vec<_>>(),
        "spaces": spaces(&answers),
        "fabrics": answers.list("fabrics/").iter().map(fabric).collect::<Vec<_>>(),
        "subnets": answers.list("subnets/").iter().map(|subnet| self::subnet(subnet, answers.list("ipranges/"))).collect::<Vec<_>>(),
        "tags": answers.list("tags/").iter().map(|tag| picked(tag, &["name", "comment", "kernel_opts", "definition"])).collect::<Vec<_>>(),
        "images": answers.list("boot-resources/").iter().map(image).collect::<Vec<_>>(),
        "rack": machines.rack(),
        "machines": machines.machines(),
        "events": events(&answers, invented.events, &machines.system_ids()),
        "timings": invented.timings,
        // What stood in for LXD made disks of any size.
        "thin_storage": true,
        "settings": settings(&answers),
    });
    let mut mapping = Mapping::default();
    fix_everything(&fleet, &mut mapping);
    fix_requests(recordings, &mut mapping);
    // Through text, because fields of a fleet remember where they were written.
    let fleet = serde_saphyr::from_str(&fleet.to_string()).context("the recorded state does not make a fleet")?;
    Ok(Seed { fleet, keys, mapping })
}

/// Some keys of an object, those that are there and not null.
pub fn picked(object: &Value, keys: &[&str]) -> Value {
    let present = keys.iter().filter_map(|key| Some(((*key).to_owned(), object.get(*key).filter(|value| !value.is_null())?.clone())));
    Value::Object(present.collect())
}

/// Zones or pools; the default one is always there.
fn places(list: &[Value]) -> Vec<Value> {
    list.iter().filter(|place| place["name"] != "default").map(|place| picked(place, &["id", "name", "description"])).collect()
}

fn spaces(answers: &Answers<'_>) -> Vec<Value> {
    let recorded = answers.list("spaces/");
    if !recorded.is_empty() {
        let defined = recorded.iter().filter(|space| space["id"].as_i64().is_some_and(|id| id >= 0));
        return defined.map(|space| picked(space, &["id", "name"])).collect();
    }
    let vlans = answers.list("fabrics/").iter().filter_map(|fabric| fabric["vlans"].as_array()).flatten();
    let mut named: Vec<(u64, &str)> = vlans.filter_map(|vlan| Some((vlan["id"].as_u64()?, vlan["space"].as_str()?))).collect();
    named.sort_unstable();
    let defined = named.iter().map(|(_, name)| *name).filter(|name| *name != "undefined");
    defined.enumerate().map(|(index, name)| json!({"id": index + 1, "name": name})).collect()
}

fn fabric(fabric: &Value) -> Value {
    let vlan = |vlan: &Value| {
        let mut kept = picked(vlan, &["id", "vid", "name", "mtu"]);
        kept["dhcp"] = vlan["dhcp_on"].clone();
        if vlan["space"] != "undefined" {
            kept["space"] = vlan["space"].clone();
        }
        kept
    };
    let mut kept = picked(fabric, &["id", "name", "class_type"]);
    kept["vlans"] = fabric["vlans"].as_array().into_iter().flatten().map(vlan).collect();
    kept
}

fn subnet(subnet: &Value, ranges: &[Value]) -> Value {
    let range = |range: &Value| {
        let mut kept = picked(range, &["id", "type", "comment"]);
        kept["start"] = range["start_ip"].clone();
        kept["end"] = range["end_ip"].clone();
        if let Some(user) = range["user"]["username"].as_str() {
            kept["user"] = user.into();
        }
        kept
    };
    let mut kept = picked(subnet, &["id", "name", "description", "cidr", "dns_servers", "managed"]);
    if let Some(gateway) = subnet["gateway_ip"].as_str().filter(|gateway| !gateway.is_empty()) {
        kept["gateway"] = gateway.into();
    }
    kept["vlan"] = subnet["vlan"]["id"].clone();
    kept["ranges"] = ranges.iter().filter(|range| range["subnet"]["id"] == subnet["id"]).map(range).collect();
    kept
}

fn image(image: &Value) -> Value {
    let mut kept = picked(image, &["id", "name", "architecture", "title", "base_image", "subarches"]);
    kept["uploaded"] = (image["type"] == "Uploaded").into();
    kept
}

fn settings(answers: &Answers<'_>) -> BTreeMap<String, Value> {
    let named = |request: &super::recordings::Request| request.query.iter().find(|(key, _)| key == "name").map(|(_, value)| value.clone());
    let mut settings = BTreeMap::new();
    for (request, body) in answers.operation("get_config") {
        // Later answers may show what a request has set.
        if let Some(name) = named(request) {
            settings.entry(name).or_insert_with(|| body.clone());
        }
    }
    settings
}

/// Who is there from the beginning, and the keys of everybody who sends requests, recorded or invented ones. The first list of users says
/// who is there; without one, it is whoever does not join later.
fn users(answers: &Answers<'_>, joining: &BTreeSet<&str>) -> (Vec<Value>, BTreeMap<String, Key>) {
    let listed: BTreeSet<&str> = answers.list("users/").iter().filter_map(|user| user["username"].as_str()).collect();
    let is_there = |name: &str| if listed.is_empty() { !joining.contains(name) } else { listed.contains(name) };
    let mut keys = BTreeMap::new();
    let mut users = Vec::new();
    for name in answers.senders() {
        let recorded = answers.shown().find(|body| body["username"] == name && body["email"].is_string());
        let tokens = answers.operation("list_authorisation_tokens").find(|(request, _)| request.user.as_deref() == Some(name));
        let mut named: Vec<(Value, String)> = tokens
            .and_then(|(_, body)| body.as_array())
            .into_iter()
            .flatten()
            .filter_map(|token| Some((token["name"].clone(), token["token"].as_str()?.to_owned())))
            .collect();
        if named.is_empty() {
            let padded = |word: &str, length: usize| format!("{name}{word}{}", "x".repeat(length)).chars().take(length).collect::<String>();
            named.push((Value::Null, format!("{}:{}:{}", padded("consumer", 18), padded("token", 18), padded("secret", 32))));
        }
        if let Some(key) = named.last().and_then(|(_, key)| Key::parse(key)) {
            keys.insert(name.to_owned(), key);
        }
        if !is_there(name) {
            continue;
        }
        users.push(json!({
            "name": name,
            "email": recorded.map_or_else(|| format!("{name}@example.com").into(), |body| body["email"].clone()),
            "superuser": recorded.is_some_and(|body| body["is_superuser"] == true),
            "keys": named.iter().map(|(name, key)| json!({"name": name, "key": key})).collect::<Vec<_>>(),
        }));
    }
    // Administrators first, as they were there first.
    users.sort_by_key(|user| user["superuser"] != true);
    (users, keys)
}

/// Events that answers show and that were there before, and invented ones for the other numbers.
fn events(answers: &Answers<'_>, last: u32, system_ids: &[String]) -> Vec<Value> {
    let shown = answers.operation("query").filter_map(|(_, body)| body["events"].as_array()).flatten();
    let recorded: BTreeMap<u64, &Value> = shown.filter_map(|event| Some((event["id"].as_u64()?, event))).collect();
    // What was recorded is about the first machine; the invented events are about the others.
    let others: Vec<&String> = system_ids
        .iter()
        .filter(|id| !recorded.values().any(|event| event["node"] == **id && event["id"].as_u64() <= Some(u64::from(last))))
        .collect();
    let event = |(index, id): (usize, u32)| match recorded.get(&u64::from(id)) {
        Some(event) => {
            let mut kept = picked(event, &["id", "node", "level", "type", "description", "username"]);
            if kept["username"] == "unknown" {
                kept.as_object_mut().map(|kept| kept.remove("username"));
            }
            kept
        }
        None => json!({
            "id": id, "level": "DEBUG", "type": "Script result",
            "description": "invented changed status from 'Pending' to 'Passed'",
            "node": others.get(index * others.len() / (last as usize + 1)).map_or("", |id| id.as_str()),
        }),
    };
    (1..=last).enumerate().map(event).collect()
}

/// The ids and words of the fleet stand for themselves.
fn fix_everything(fleet: &Value, mapping: &mut Mapping) {
    let collections = [
        ("zones", Kind::Zone),
        ("pools", Kind::Pool),
        ("domains", Kind::Domain),
        ("spaces", Kind::Space),
        ("fabrics", Kind::Fabric),
        ("vlans", Kind::Vlan),
        ("subnets", Kind::Subnet),
        ("ranges", Kind::IpRange),
        ("images", Kind::Image),
        ("interfaces", Kind::Interface),
        ("links", Kind::Link),
        ("disks", Kind::BlockDevice),
        ("events", Kind::Event),
    ];
    match fleet {
        Value::Object(object) => {
            for (key, value) in object {
                let kind = collections.iter().find(|(name, _)| name == key).map(|(_, kind)| *kind);
                for (kind, row) in kind.into_iter().flat_map(|kind| value.as_array().into_iter().flatten().map(move |row| (kind, row))) {
                    mapping.fix(kind, row["id"].to_string());
                }
                match (key.as_str(), value) {
                    ("partition_ids", Value::Array(ids)) => ids.iter().for_each(|id| mapping.fix(Kind::Partition, id.to_string())),
                    ("system_id", Value::String(id)) => mapping.fix(Kind::Machine, id),
                    ("hostname", Value::String(name)) => mapping.fix(Kind::Hostname, name),
                    ("mac", Value::String(mac)) => mapping.fix(Kind::Mac, mac),
                    ("key", Value::String(key)) => key.split(':').for_each(|part| mapping.fix(Kind::Token, part)),
                    _ => fix_everything(value, mapping),
                }
            }
        }
        Value::Array(rows) => rows.iter().for_each(|row| fix_everything(row, mapping)),
        _ => {}
    }
    for kind in [Kind::Pool, Kind::Domain, Kind::Fabric] {
        mapping.fix(kind, "0");
    }
    mapping.fix(Kind::Zone, "1");
}

/// Names and hardware addresses that requests bring were not made up by MAAS, unless an earlier answer showed them first.
fn fix_requests(recordings: &[Recording], mapping: &mut Mapping) {
    let mut made: BTreeSet<String> = BTreeSet::new();
    for exchange in recordings.iter().flat_map(|recording| &recording.exchanges) {
        let request = &exchange.request;
        for value in request.query.iter().chain(&request.form).map(|(_, value)| value.as_str()).chain([relative(&request.path)]) {
            for word in words(value).into_iter().filter(|word| !made.contains(word)) {
                mapping.fix(Kind::Hostname, word.as_str());
                mapping.fix(Kind::Mac, word);
            }
        }
        collect_made(&exchange.response.body, mapping, &mut made);
    }
}

fn words(text: &str) -> Vec<String> {
    let words = std::cell::RefCell::new(Vec::new());
    replace_words(text, |word| {
        words.borrow_mut().push(word.to_owned());
        None
    });
    words.into_inner()
}

fn collect_made(body: &Value, mapping: &Mapping, made: &mut BTreeSet<String>) {
    match body {
        Value::Object(object) => {
            for (key, value) in object {
                match (key.as_str(), value) {
                    ("hostname", Value::String(name)) if !mapping.is_fixed(Kind::Hostname, name) => drop(made.insert(name.clone())),
                    ("mac_address", Value::String(mac)) if !mapping.is_fixed(Kind::Mac, mac) => drop(made.insert(mac.clone())),
                    _ => collect_made(value, mapping, made),
                }
            }
        }
        Value::Array(rows) => rows.iter().for_each(|row| collect_made(row, mapping, made)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::recordings::Exchange;

    /// Who asked, for what, with which parameters, and what was answered.
    type Asked<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], Value);

    fn recordings(asked: &[Asked<'_>]) -> Vec<Recording> {
        let recording = |(number, (user, path, query, body)): (u16, &Asked<'_>)| {
            let request = json!({"method": "GET", "path": format!("/MAAS/api/2.0/{path}"), "query": query, "user": user});
            let exchange: Exchange =
                serde_json::from_value(json!({"request": request, "response": {"status": 200, "body": body}})).unwrap();
            Recording { number, name: (*path).to_owned(), race: false, exchanges: vec![exchange] }
        };
        (1..).zip(asked).map(recording).collect()
    }

    fn names(recordings: &[Recording], joining: &[&str]) -> (Vec<String>, Vec<String>) {
        let (users, keys) = users(&Answers(recordings), &joining.iter().copied().collect());
        let named = |user: &Value| user["name"].as_str().unwrap().to_owned();
        (users.iter().map(named).collect(), keys.into_keys().collect())
    }

    #[test]
    fn a_setting_is_what_its_first_answer_says() {
        let asked: &[(&str, &str)] = &[("op", "get_config"), ("name", "maas_name")];
        let recordings = recordings(&[("admin", "maas/", asked, json!("first")), ("admin", "maas/", asked, json!("set since"))]);
        assert_eq!(settings(&Answers(&recordings)), BTreeMap::from([("maas_name".to_owned(), json!("first"))]));
    }

    #[test]
    fn who_joins_later_has_a_key_and_is_not_there_from_the_beginning() {
        let recordings = recordings(&[("admin", "zones/", &[], json!([])), ("bob", "zones/", &[], json!([]))]);
        assert_eq!(names(&recordings, &["bob"]), (vec!["admin".to_owned()], vec!["admin".to_owned(), "bob".to_owned()]));
    }

    #[test]
    fn the_first_list_of_users_says_who_is_there_from_the_beginning() {
        let alone = json!([{"username": "admin"}]);
        let recordings = recordings(&[("admin", "users/", &[], alone), ("bob", "zones/", &[], json!([]))]);
        assert_eq!(names(&recordings, &[]).0, ["admin"]);
    }
}
