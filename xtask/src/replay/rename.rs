//! `--rename`: hosts, system ids, users, addresses and keys become others of the same form, everywhere at once: in what the seed is
//! read from, in requests, in expectations and in the script. Orders stay as they are: subnets keep theirs, and so do names.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use serde_json::Value;

use super::{
    addresses::{self, Addresses},
    mapping::{Kind, replace_labels, replace_words},
    oauth::{self, Key},
    ordered::others_in_order,
    recordings::{Recording, Request, relative},
    script::{Action, Script},
    walk,
};

/// What becomes what.
#[derive(Debug, Default)]
pub struct Rename {
    /// Whole words: system ids and users.
    words: BTreeMap<String, String>,
    /// What stands before the number in host names.
    hosts: BTreeMap<String, String>,
    /// Parts of keys; long enough to be found anywhere.
    keys: BTreeMap<String, String>,
    /// Host names that have no number, and VM hosts.
    labels: BTreeMap<String, String>,
    addresses: Addresses,
    /// How much larger ids become, by what they name.
    offsets: BTreeMap<Kind, u32>,
    /// Third octet of hardware addresses that recordings made up themselves.
    mac: String,
}

/// What the seed numbers.
const NUMBERED: [Kind; 13] = [
    Kind::BlockDevice,
    Kind::Domain,
    Kind::Fabric,
    Kind::Image,
    Kind::Interface,
    Kind::IpRange,
    Kind::Link,
    Kind::Partition,
    Kind::Pool,
    Kind::Space,
    Kind::Subnet,
    Kind::Vlan,
    Kind::Zone,
];

/// Words found in recordings, by what they name.
#[derive(Default)]
struct Found {
    system_ids: BTreeSet<String>,
    users: BTreeSet<String>,
    /// Everybody who is named by an answer; lists of users are sorted.
    listed_users: BTreeSet<String>,
    hosts: BTreeSet<String>,
    labels: BTreeSet<String>,
    keys: BTreeSet<String>,
    addresses: addresses::Found,
    /// All words, so that new ones are really new.
    words: BTreeSet<String>,
}

impl Rename {
    /// Chooses new names for everything the recordings name.
    pub fn new(recordings: &[Recording], seed: u64) -> Self {
        let mut found = Found::default();
        for exchange in recordings.iter().flat_map(|recording| &recording.exchanges) {
            let request = &exchange.request;
            found.users.extend(request.user.clone());
            found.text(&request.path);
            for (key, value) in request.query.iter().chain(&request.form) {
                found.text(value);
                if key == "hostname" {
                    found.host(value);
                }
                if key == "name" && is_vm_host(&request.path) {
                    found.label(value);
                }
                if key == "username" && relative(&request.path) == "users/" {
                    found.users.insert(value.clone());
                }
            }
            found.value("", &exchange.response.body);
        }
        let mut random = Rng::with_seed(seed);
        let mut taken = found.words.clone();
        let mut others = |words: &BTreeSet<String>| -> BTreeMap<String, String> {
            words.iter().map(|word| (word.clone(), other(word, &mut random, &mut taken))).collect()
        };
        let mut words = others(&found.system_ids);
        let keys = others(&found.keys);
        let strangers = &found.listed_users - &found.users;
        words.extend(others_in_order(&found.users, &strangers, &mut random, &mut taken));
        // A VM host that is called as a machine stays called so.
        found.labels.retain(|label| host_parts(label).is_none_or(|(prefix, _)| !found.hosts.contains(prefix)));
        // Both are names of machines, which are sorted together.
        let names = others_in_order(&(&found.hosts | &found.labels), &BTreeSet::new(), &mut random, &mut taken);
        let of = |words: &BTreeSet<String>| {
            names.iter().filter(|(word, _)| words.contains(*word)).map(|(word, other)| (word.clone(), other.clone())).collect()
        };
        let (hosts, labels) = (of(&found.hosts), of(&found.labels));
        let addresses = found.addresses.others(&mut random);
        let offsets = NUMBERED.into_iter().map(|kind| (kind, random.u32(1..2000))).collect();
        Self { words, hosts, labels, keys, addresses, offsets, mac: format!("{:02x}", random.u8(1..)) }
    }

    /// Renames what recordings hold.
    pub fn recordings(&self, recordings: &mut [Recording]) {
        let secrets: BTreeMap<String, String> = secrets(recordings);
        for exchange in recordings.iter_mut().flat_map(|recording| &mut recording.exchanges) {
            walk::exchange(exchange, &mut |kind, id| self.id(kind, id));
            self.request(&mut exchange.request, &secrets);
            self.value(&mut exchange.response.body);
        }
    }

    /// Renames what the script names.
    pub fn script(&self, script: &mut Script) {
        let rename = |text: &mut String| *text = self.text(text);
        script.added.iter_mut().flat_map(|added| &mut added.values).for_each(rename);
        for action in script.steps.iter_mut().flat_map(|step| &mut step.actions) {
            match action {
                Action::Call(call) => {
                    rename(&mut call.user);
                    rename(&mut call.path);
                    call.form.values_mut().for_each(rename);
                }
                Action::Fault(fault) => self.value(fault),
                Action::Join(user) => rename(user),
                Action::Set(set) => {
                    rename(&mut set.machine);
                    set.discovered.iter_mut().for_each(|discovered| rename(&mut discovered.address));
                }
                Action::Relink(relink) => {
                    rename(&mut relink.user);
                    rename(&mut relink.machine);
                    relink.subnet.iter_mut().for_each(|subnet| *subnet = self.id(Kind::Subnet, subnet));
                }
                Action::Wait(_) | Action::Clock(_) | Action::Clear(_) => {}
            }
        }
    }

    /// The other number of an id. The smallest ones are those of defaults, which a MAAS always gives the same.
    fn id(&self, kind: Kind, id: &str) -> String {
        let number = id.parse::<u32>().ok().filter(|number| *number > u32::from(kind == Kind::Zone));
        let moved = number.zip(self.offsets.get(&kind)).map(|(number, offset)| (number + offset).to_string());
        moved.unwrap_or_else(|| id.to_owned())
    }

    fn request(&self, request: &mut Request, secrets: &BTreeMap<String, String>) {
        let hmac_secret = request.auth.as_deref().and_then(oauth::hmac_token).and_then(|token| secrets.get(&token));
        let values = request.query.iter_mut().chain(&mut request.form).map(|(_, value)| value);
        let single = [&mut request.user, &mut request.auth, &mut request.raw_body];
        for text in values.chain([&mut request.path]).chain(single.into_iter().flatten()) {
            *text = self.text(text);
        }
        // What was signed has changed, and what it was signed with.
        if let (Some(secret), Some(auth)) = (hmac_secret, &request.auth) {
            let signed = oauth::sign_hmac(auth, &self.text(secret), &request.method, &request.path, &request.query);
            request.auth = signed.or_else(|| request.auth.clone());
        }
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(rows) => rows.iter_mut().for_each(|row| self.value(row)),
            Value::Object(object) => {
                let entries = std::mem::take(object);
                object.extend(entries.into_iter().map(|(key, mut value)| {
                    self.value(&mut value);
                    (self.text(&key), value)
                }));
            }
            _ => {}
        }
    }

    /// A text with the new names in it.
    pub fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (key, other) in self.keys.iter().filter(|(key, _)| text.contains(*key)).collect::<Vec<_>>() {
            text = text.replace(key, other);
        }
        if !self.mac.is_empty() {
            text = text.replace("52:54:00:", &format!("52:54:{}:", self.mac));
        }
        self.addresses.text(&self.whole_words(&self.labels(&text)))
    }

    fn labels(&self, text: &str) -> String {
        replace_labels(text, |label| self.labels.get(label).cloned())
    }

    fn whole_words(&self, text: &str) -> String {
        // "admin" is also what MAAS calls administrators in its sentences.
        let sentence = ["admin users", "admin privileges", "an admin"].iter().any(|words| text.contains(words));
        replace_words(text, |word| {
            let known = self.words.get(word).filter(|_| !(sentence && word == "admin"));
            known.cloned().or_else(|| {
                let (prefix, number) = host_parts(word)?;
                Some(format!("{}{number}", self.hosts.get(prefix)?))
            })
        })
    }
}

impl Found {
    fn text(&mut self, text: &str) {
        let words = text.split(|character: char| !character.is_ascii_alphanumeric()).map(str::to_owned);
        self.words.extend(words);
        self.addresses.text(text);
    }

    fn host(&mut self, name: &str) {
        match host_parts(name) {
            Some((prefix, _)) => drop(self.hosts.insert(prefix.to_owned())),
            None => self.label(name),
        }
    }

    /// Refusals stand under the name of the field, too, and names that are none are what is tried.
    fn label(&mut self, name: &str) {
        let simple = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
        if !name.is_empty() && name.chars().all(simple) {
            self.labels.insert(name.to_owned());
        }
    }

    fn value(&mut self, key: &str, value: &Value) {
        match value {
            Value::Array(rows) => rows.iter().for_each(|row| self.value(key, row)),
            Value::Object(object) => {
                let uri = object.get("resource_uri").and_then(Value::as_str).unwrap_or_default();
                if let Some(name) = object.get("name").and_then(Value::as_str).filter(|_| is_vm_host(uri)) {
                    self.label(name);
                }
                object.iter().for_each(|(key, value)| self.value(key, value));
            }
            Value::String(text) => {
                self.text(text);
                match key {
                    "system_id" => drop(self.system_ids.insert(text.clone())),
                    "hostname" => self.host(text),
                    "username" => drop(self.listed_users.insert(text.clone())),
                    "token" => self.keys.extend(text.split(':').map(str::to_owned)),
                    "token_key" | "token_secret" | "consumer_key" => drop(self.keys.insert(text.clone())),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

fn is_vm_host(path: &str) -> bool {
    ["vm-hosts/", "pods/"].iter().any(|collection| relative(path).starts_with(collection))
}

/// A host name such as `node08b`: what stands before the number, and the rest.
fn host_parts(word: &str) -> Option<(&str, &str)> {
    let digits = word.find(|character: char| character.is_ascii_digit())?;
    let (prefix, rest) = word.split_at(digits);
    let simple = !prefix.is_empty() && prefix.chars().all(|character| character.is_ascii_lowercase());
    (simple && rest.chars().all(|character| character.is_ascii_alphanumeric())).then_some((prefix, rest))
}

/// A new word of the same form: digits stay digits, letters keep their case.
fn other(word: &str, random: &mut Rng, taken: &mut BTreeSet<String>) -> String {
    // Bounded, because very short words may all be taken.
    for _ in 0..1000 {
        let mut changed = |character: char| match character {
            '0'..='9' => random.digit(10),
            'a'..='z' => random.lowercase(),
            'A'..='Z' => random.uppercase(),
            other => other,
        };
        let candidate: String = word.chars().map(&mut changed).collect();
        if taken.insert(candidate.clone()) {
            return candidate;
        }
    }
    word.to_owned()
}

/// The secrets of all tokens the recordings show.
fn secrets(recordings: &[Recording]) -> BTreeMap<String, String> {
    fn collect(value: &Value, secrets: &mut BTreeMap<String, String>) {
        match value {
            Value::Array(rows) => rows.iter().for_each(|row| collect(row, secrets)),
            Value::Object(object) => {
                if let Some(key) = object.get("token").and_then(Value::as_str).and_then(Key::parse) {
                    secrets.insert(key.token, key.secret);
                }
            }
            _ => {}
        }
    }
    let mut secrets = BTreeMap::new();
    recordings.iter().flat_map(|recording| &recording.exchanges).for_each(|exchange| collect(&exchange.response.body, &mut secrets));
    secrets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rename() -> Rename {
        let pair = |from: &str, to: &str| BTreeMap::from([(from.to_owned(), to.to_owned())]);
        let mut words = pair("admin", "abcde");
        words.extend(pair("abc123", "xyz789"));
        Rename {
            words,
            hosts: pair("node", "nxyz"),
            keys: pair("SecretOfLength18xx", "OtherOfLengthAlsoo"),
            labels: pair("lxd-dead", "lxyz-abcd").into_iter().chain(pair("vm", "vq")).collect(),
            addresses: Addresses::default(),
            offsets: BTreeMap::from([(Kind::Zone, 70)]),
            mac: "7f".into(),
        }
    }

    #[test]
    fn whole_words_host_names_and_keys_become_others() {
        let rename = rename();
        assert_eq!(rename.text("/users/admin/"), "/users/abcde/");
        assert_eq!(rename.text("(admin) - node08b.maas"), "(abcde) - nxyz08b.maas");
        assert_eq!(rename.text("/vm-hosts/ of lxd-dead, vm.maas and install_vm"), "/vm-hosts/ of lxyz-abcd, vq.maas and install_vm");
        assert_eq!(rename.text("%26SecretOfLength18xx"), "%26OtherOfLengthAlsoo");
        assert_eq!(rename.text("52:54:00:01:00:01 of abc123"), "52:54:7f:01:00:01 of xyz789");
    }

    #[test]
    fn sentences_about_administrators_stay() {
        assert_eq!(rename().text("This method is reserved for admin users."), "This method is reserved for admin users.");
        assert_eq!(rename().text("administrators"), "administrators");
    }

    #[test]
    fn ids_become_larger_but_for_those_of_defaults() {
        assert_eq!(rename().id(Kind::Zone, "3"), "73");
        assert_eq!(rename().id(Kind::Zone, "1"), "1");
        assert_eq!(rename().id(Kind::Event, "3"), "3");
        assert_eq!(rename().id(Kind::Zone, "az1"), "az1");
    }

    #[test]
    fn new_words_have_the_form_of_the_old_and_are_new() {
        let mut random = Rng::with_seed(1);
        let mut taken = BTreeSet::from(["a1".to_owned()]);
        for _ in 0..200 {
            let word = other("a1", &mut random, &mut taken);
            assert!(word.len() == 2 && word.as_bytes()[0].is_ascii_lowercase() && word.as_bytes()[1].is_ascii_digit(), "{word}");
        }
        assert_eq!(taken.len(), 201);
    }

    #[test]
    fn a_list_of_users_stays_sorted_whoever_of_them_is_renamed() {
        let listed = ["MAAS", "admin", "alfred", "alice", "alistair", "bo", "bob", "zoe"];
        let rows: Vec<Value> = listed.iter().map(|name| serde_json::json!({ "username": name })).collect();
        let exchange = |user: &str| {
            let request = serde_json::json!({ "method": "GET", "path": "/MAAS/api/2.0/users/", "user": user });
            let response = serde_json::json!({ "status": 200, "body_kind": "json", "body": rows });
            serde_json::from_value(serde_json::json!({ "request": request, "response": response })).unwrap()
        };
        for seed in 1..=8 {
            let callers = ["admin", "alice", "alistair", "bo", "bob"];
            let exchanges = callers.iter().map(|user| exchange(user)).collect();
            let mut recordings = [Recording { number: 5, name: "users-list".into(), race: false, exchanges }];
            Rename::new(&recordings, seed).recordings(&mut recordings);
            let body = &recordings[0].exchanges[0].response.body;
            let names: Vec<&str> = body.as_array().unwrap().iter().map(|row| row["username"].as_str().unwrap()).collect();
            assert!(names.is_sorted(), "seed {seed}: {names:?}");
            assert!(names[1] != "admin" && names[3] != "alice" && names[2] == "alfred", "seed {seed}: {names:?}");
        }
    }
}
