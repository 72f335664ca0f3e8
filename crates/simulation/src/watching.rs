//! One open watch: the changes after a revision, as lines of JSON, with bookmarks, until its time is over.

use crate::{
    faults::Faults,
    selector::Selector,
    store::{Record, Store},
    target::Resource,
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

/// As often as the real server, about.
const BOOKMARK_PERIOD: Duration = Duration::from_mins(1);

/// How a watch was asked for.
#[derive(Debug)]
pub struct WatchRequest {
    pub resource: Resource,
    pub api_version: String,
    pub selector: Selector,
    pub revision: u64,
    pub bookmarks: bool,
    pub timeout: Duration,
    pub metadata_only: bool,
}

/// An open watch.
#[derive(Debug)]
pub struct Watching {
    store: Arc<Mutex<Store>>,
    changed: Arc<Notify>,
    request: WatchRequest,
    ends: Instant,
    next_bookmark: Instant,
    over: bool,
    faults: Faults,
    call: u64,
}

impl Watching {
    pub fn new(store: Arc<Mutex<Store>>, request: WatchRequest, faults: &Faults, call: u64) -> Self {
        let changed = store.lock().unwrap_or_else(PoisonError::into_inner).changed();
        let now = Instant::now();
        let length = faults.watch_breaks_after(call).map_or(request.timeout, |breaks| breaks.min(request.timeout));
        Self { store, changed, request, ends: now + length, next_bookmark: now + BOOKMARK_PERIOD, over: false, faults: *faults, call }
    }

    /// The next line, or none at the end.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if self.over {
                return None;
            }
            // Made before the look, so that a change after the look wakes it.
            let changed = Arc::clone(&self.changed);
            let changed = changed.notified();
            let change =
                self.store.lock().unwrap_or_else(PoisonError::into_inner).next_change(&self.request.resource, self.request.revision);
            match change {
                Err(refusal) => {
                    self.over = true;
                    return Some(json!({"type": "ERROR", "object": refusal.status()}));
                }
                Ok(Some(record)) => {
                    self.request.revision = record.revision;
                    if let Some(event) = self.event(&record) {
                        let lag = self.faults.lag(self.call, record.revision);
                        if !lag.is_zero() {
                            tokio::time::sleep(lag).await;
                        }
                        return Some(event);
                    }
                }
                Ok(None) => {
                    let now = Instant::now();
                    if now >= self.ends {
                        return None;
                    }
                    if now >= self.next_bookmark {
                        self.next_bookmark = now + BOOKMARK_PERIOD;
                        if self.request.bookmarks {
                            return Some(self.bookmark());
                        }
                    }
                    // Changed or elapsed: look again either way.
                    drop(timeout_at(self.ends.min(self.next_bookmark), changed).await);
                }
            }
        }
    }

    /// An object that begins or ceases to match is added or deleted for this watch.
    fn event(&self, record: &Record) -> Option<Value> {
        let matching = |object: &Option<Arc<Value>>| object.clone().filter(|object| self.request.selector.matches(object));
        let (kind, object) = match (matching(&record.before), matching(&record.after)) {
            (None, Some(after)) => ("ADDED", (*after).clone()),
            (Some(_), Some(after)) => ("MODIFIED", (*after).clone()),
            (Some(before), None) => {
                let mut last = (*before).clone();
                last["metadata"]["resourceVersion"] = json!(record.revision.to_string());
                ("DELETED", last)
            }
            (None, None) => return None,
        };
        Some(json!({"type": kind, "object": if self.request.metadata_only { metadata_of(&object) } else { object }}))
    }

    fn bookmark(&mut self) -> Value {
        let revision = self.store.lock().unwrap_or_else(PoisonError::into_inner).revision();
        self.request.revision = revision;
        let kind = if self.request.metadata_only { "PartialObjectMetadata" } else { "Bookmark" };
        let object = json!({
            "apiVersion": self.request.api_version, "kind": kind,
            "metadata": {"resourceVersion": revision.to_string(), "creationTimestamp": null},
        });
        json!({"type": "BOOKMARK", "object": object})
    }
}

/// The form of an object for those who asked for metadata only.
pub fn metadata_of(object: &Value) -> Value {
    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"]})
}
