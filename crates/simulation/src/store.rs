//! The objects of the server and the history of their changes: one revision counter, conflicts, finalizers, generations.

use crate::{refusal::Refusal, selector::Selector, target::Key, target::Resource};
use manager::Clock;
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::sync::Notify;

/// Which fields each apply manager owns, by the path to the field.
pub type Owners = BTreeMap<String, BTreeSet<Vec<String>>>;

/// One change, as watches read it.
#[derive(Debug, Clone)]
pub struct Record {
    pub revision: u64,
    pub resource: Resource,
    pub before: Option<Arc<Value>>,
    /// The object after the change; none if it is gone, and then `before` carries the revision of its end.
    pub after: Option<Arc<Value>>,
}

/// The part of an object that a write may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Object,
    Status,
}

#[derive(Debug)]
struct Stored {
    value: Arc<Value>,
    owners: Owners,
}

/// The state of the server.
#[derive(Debug)]
pub struct Store {
    clock: Clock,
    revision: u64,
    changed: Arc<Notify>,
    created: u64,
    objects: BTreeMap<Key, Stored>,
    history: Vec<Record>,
    forgotten: u64,
}

impl Store {
    pub fn new(clock: Clock) -> Self {
        Self { clock, revision: 1, changed: Arc::default(), created: 0, objects: BTreeMap::new(), history: Vec::new(), forgotten: 0 }
    }

    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Wakes those who wait whenever the revision grows, first come first served; tokio's watch channel would wake them at random.
    pub fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// Forgets the history, as compaction does: older watches must list again.
    pub fn forget_history(&mut self) {
        self.forgotten = self.revision();
        self.history.clear();
    }

    /// The first change after `revision` that concerns this resource.
    pub fn next_change(&self, resource: &Resource, revision: u64) -> Result<Option<Record>, Refusal> {
        if revision < self.forgotten {
            return Err(Refusal::gone(format!("too old resource version: {revision} ({})", self.forgotten)));
        }
        let start = self.history.partition_point(|record| record.revision <= revision);
        Ok(self.history[start..].iter().find(|record| record.resource == *resource).cloned())
    }

    pub fn get(&self, key: &Key) -> Result<Arc<Value>, Refusal> {
        self.objects.get(key).map(|stored| Arc::clone(&stored.value)).ok_or_else(|| Refusal::not_found(key))
    }

    pub fn list(&self, resource: &Resource, selector: &Selector) -> Vec<Arc<Value>> {
        let of_kind = self.objects.iter().filter(|(key, _)| key.resource == *resource);
        of_kind.filter(|(_, stored)| selector.matches(&stored.value)).map(|(_, stored)| Arc::clone(&stored.value)).collect()
    }

    /// All objects of a resource, whatever its group.
    pub fn all(&self, plural: &str) -> Vec<Value> {
        self.objects.iter().filter(|(key, _)| key.resource.plural == plural).map(|(_, stored)| (*stored.value).clone()).collect()
    }

    pub fn owners(&self, key: &Key) -> Owners {
        self.objects.get(key).map(|stored| stored.owners.clone()).unwrap_or_default()
    }

    pub fn create(&mut self, key: Key, mut value: Value, owners: Owners) -> Result<Arc<Value>, Refusal> {
        if self.objects.contains_key(&key) {
            return Err(Refusal::already_exists(&key));
        }
        self.created += 1;
        let uid = format!("00000000-0000-4000-8000-{:012}", self.created);
        let object = value.as_object_mut().ok_or_else(|| Refusal::bad_request("the body is not an object"))?;
        if !begins_with_a_status(&key.resource) {
            object.remove("status");
        }
        let metadata = metadata_mut(object)?;
        metadata.insert("name".into(), json!(key.name));
        if let Some(namespace) = &key.namespace {
            metadata.insert("namespace".into(), json!(namespace));
        }
        metadata.insert("uid".into(), json!(uid));
        metadata.insert("generation".into(), json!(1));
        metadata.insert("creationTimestamp".into(), json!(self.second()));
        metadata.remove("deletionTimestamp");
        Ok(self.write(key, None, value, owners))
    }

    /// Writes one part of an existing object; returns it as it is now, or as it was last if this removed its last finalizer.
    pub fn update(&mut self, key: Key, mut value: Value, part: Part, owners: Owners) -> Result<Arc<Value>, Refusal> {
        let before = self.get(&key)?;
        check_claims(&key, &before, &value)?;
        let object = value.as_object_mut().ok_or_else(|| Refusal::bad_request("the body is not an object"))?;
        if part == Part::Status {
            let status = object.remove("status");
            object.clone_from(before.as_object().unwrap_or(&Map::new()));
            put(object, "status", status);
        } else {
            put(object, "status", before.get("status").cloned());
            let old = before["metadata"].clone();
            let metadata = metadata_mut(object)?;
            for fixed in ["name", "namespace", "uid", "generation", "creationTimestamp", "deletionTimestamp", "resourceVersion"] {
                put(metadata, fixed, old.get(fixed).cloned());
            }
        }
        if wants(&value) != wants(&before) {
            let generation = before["metadata"]["generation"].as_u64().unwrap_or_default();
            value["metadata"]["generation"] = json!(generation + 1);
        }
        if is_done(&value) {
            return Ok(self.remove(&key, &value));
        }
        if value == *before {
            if let Some(stored) = self.objects.get_mut(&key) {
                stored.owners = owners;
            }
            return Ok(before);
        }
        Ok(self.write(key, Some(before), value, owners))
    }

    /// Deletes an object, or marks it when finalizers hold it; then it is returned.
    pub fn delete(&mut self, key: Key, options: &Value) -> Result<Option<Arc<Value>>, Refusal> {
        let before = self.get(&key)?;
        check_claims(&key, &before, &json!({"metadata": options["preconditions"]}))?;
        if !has_finalizers(&before) {
            self.remove(&key, &before);
            return Ok(None);
        }
        if before["metadata"].get("deletionTimestamp").is_some() {
            return Ok(Some(before));
        }
        let mut value = (*before).clone();
        value["metadata"]["deletionTimestamp"] = json!(self.second());
        value["metadata"]["generation"] = json!(before["metadata"]["generation"].as_u64().unwrap_or_default() + 1);
        let owners = self.owners(&key);
        Ok(Some(self.write(key, Some(before), value, owners)))
    }

    fn write(&mut self, key: Key, before: Option<Arc<Value>>, mut value: Value, owners: Owners) -> Arc<Value> {
        let revision = self.revision() + 1;
        value["metadata"]["resourceVersion"] = json!(revision.to_string());
        let value = Arc::new(value);
        self.history.push(Record { revision, resource: key.resource.clone(), before, after: Some(Arc::clone(&value)) });
        self.objects.insert(key, Stored { value: Arc::clone(&value), owners });
        self.advance(revision);
        value
    }

    fn remove(&mut self, key: &Key, last: &Value) -> Arc<Value> {
        let revision = self.revision() + 1;
        let mut last = last.clone();
        last["metadata"]["resourceVersion"] = json!(revision.to_string());
        let last = Arc::new(last);
        self.objects.remove(key);
        self.history.push(Record { revision, resource: key.resource.clone(), before: Some(Arc::clone(&last)), after: None });
        self.advance(revision);
        last
    }

    fn advance(&mut self, revision: u64) {
        self.revision = revision;
        self.changed.notify_waiters();
    }

    /// Now, in the whole seconds the API shows.
    fn second(&self) -> String {
        self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

/// A resource version or uid in a body is a claim about the object it was made from.
fn check_claims(key: &Key, before: &Value, body: &Value) -> Result<(), Refusal> {
    let differs = |field: &str| body["metadata"][field].as_str().is_some_and(|claim| before["metadata"][field].as_str() != Some(claim));
    if differs("resourceVersion") {
        return Err(Refusal::conflict(key, "the object has been modified; please apply your changes to the latest version and try again"));
    }
    if differs("uid") {
        return Err(Refusal::conflict(key, "the uid is that of another object"));
    }
    Ok(())
}

/// Whether the server keeps the status that a new object comes with: a kubelet registers its Node with one.
fn begins_with_a_status(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "nodes"
}

/// Everything of an object but its metadata and status: what the generation counts.
fn wants(object: &Value) -> Value {
    let mut wants = object.clone();
    if let Some(fields) = wants.as_object_mut() {
        fields.remove("metadata");
        fields.remove("status");
    }
    wants
}

fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

fn is_done(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some() && !has_finalizers(object)
}

fn put(fields: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => drop(fields.insert(name.to_owned(), value)),
        None => drop(fields.remove(name)),
    }
}

fn metadata_mut(object: &mut Map<String, Value>) -> Result<&mut Map<String, Value>, Refusal> {
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    metadata.as_object_mut().ok_or_else(|| Refusal::bad_request("metadata is not an object"))
}
