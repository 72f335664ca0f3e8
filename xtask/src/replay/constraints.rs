//! `constraints_by_type` of an allocation: lists of device numbers under the caller's labels, and in the verbose form objects whose
//! very keys are numbers that MAAS made up. Called by the comparison.

use serde_json::{Map, Value};

use super::{
    compare::{Comparison, shown},
    mapping::Kind,
};

impl Comparison<'_> {
    pub(super) fn constraints(&mut self, path: &str, expected: &Map<String, Value>, got: &Map<String, Value>) {
        self.same_keys(path, expected, got);
        for (key, expected, got) in both(expected, got) {
            let here = format!("{path}.{key}");
            match key {
                "storage" => {
                    self.labels(&here, expected, got, |this, here, theirs, ours| this.devices(here, Kind::BlockDevice, theirs, ours));
                }
                "interfaces" => {
                    self.labels(&here, expected, got, |this, here, theirs, ours| this.devices(here, Kind::Interface, theirs, ours));
                }
                "verbose_storage" => self.keyed(&here, Kind::Node, expected, got, |this, here, theirs, ours| {
                    this.keyed(here, Kind::BlockDevice, theirs, ours, |this, here, theirs, ours| this.value(here, "", theirs, ours));
                }),
                "verbose_interfaces" => self.labels(&here, expected, got, |this, here, theirs, ours| {
                    this.keyed(here, Kind::Node, theirs, ours, |this, here, theirs, ours| {
                        this.devices(here, Kind::Interface, theirs, ours);
                    });
                }),
                _ => self.value(&here, key, expected, got),
            }
        }
    }

    fn same_keys(&mut self, path: &str, expected: &Map<String, Value>, got: &Map<String, Value>) {
        for (key, value) in expected.iter().filter(|(key, _)| !got.contains_key(*key)) {
            self.differ(&format!("{path}.{key}"), &shown(value), "(no such key)");
        }
        for (key, value) in got.iter().filter(|(key, _)| !expected.contains_key(*key)) {
            self.differ(&format!("{path}.{key}"), "(no such key)", &shown(value));
        }
    }

    /// An object whose keys are the caller's words.
    fn labels(&mut self, path: &str, expected: &Value, got: &Value, below: impl Fn(&mut Self, &str, &Value, &Value)) {
        let (Value::Object(expected), Value::Object(got)) = (expected, got) else { return self.value(path, "", expected, got) };
        self.same_keys(path, expected, got);
        for (key, expected, got) in both(expected, got) {
            below(self, &format!("{path}.{key}"), expected, got);
        }
    }

    /// An object whose keys are made-up numbers; they were given in order, so their order pairs them.
    fn keyed(&mut self, path: &str, kind: Kind, expected: &Value, got: &Value, below: impl Fn(&mut Self, &str, &Value, &Value)) {
        let (Value::Object(theirs), Value::Object(ours)) = (expected, got) else { return self.value(path, "", expected, got) };
        if theirs.len() != ours.len() {
            return self.differ(path, &shown(expected), &shown(got));
        }
        for ((their_key, theirs), (our_key, ours)) in in_order(theirs).into_iter().zip(in_order(ours)) {
            let here = format!("{path}.{their_key}");
            if self.made(kind, their_key, our_key) {
                below(self, &here, theirs, ours);
            } else {
                self.differ(&here, their_key, our_key);
            }
        }
    }

    /// A list of device numbers; partitions are written `partition:<number>`.
    fn devices(&mut self, path: &str, kind: Kind, expected: &Value, got: &Value) {
        let (Value::Array(theirs), Value::Array(ours)) = (expected, got) else { return self.value(path, "", expected, got) };
        let partition = |value: &Value| value.as_str()?.strip_prefix("partition:").map(str::to_owned);
        let same = theirs.len() == ours.len()
            && theirs.iter().zip(ours).all(|(theirs, ours)| match (partition(theirs), partition(ours)) {
                (Some(theirs), Some(ours)) => self.made(Kind::Partition, &theirs, &ours),
                (None, None) if theirs.is_u64() && ours.is_u64() => self.made(kind, &theirs.to_string(), &ours.to_string()),
                _ => theirs == ours,
            });
        if !same {
            self.differ(path, &shown(expected), &shown(got));
        }
    }
}

/// The keys both objects have.
fn both<'a>(expected: &'a Map<String, Value>, got: &'a Map<String, Value>) -> impl Iterator<Item = (&'a str, &'a Value, &'a Value)> {
    expected.iter().filter_map(|(key, value)| Some((key.as_str(), value, got.get(key)?)))
}

fn in_order(object: &Map<String, Value>) -> Vec<(&str, &Value)> {
    let mut entries: Vec<(&str, &Value)> = object.iter().map(|(key, value)| (key.as_str(), value)).collect();
    entries.sort_by_key(|(key, _)| key.parse::<u64>().unwrap_or(u64::MAX));
    entries
}
