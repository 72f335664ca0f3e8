//! Watches of one kind: kube's watcher (list, watch, resume, list again) into a [`Cache`], and word of every change to whoever asked.
//!
//! [`crate::Controllers`] makes and runs them; controllers subscribe. One watch may serve many controllers, so that a kind is held in
//! memory once. Managed fields are dropped on arrival: nothing here reads them and they are often the larger half of an object.

use crate::{
    backoff::WatchFailures, cache::Cache, describe::describe, jitter::Jitter, metrics::Metrics, object_key::ObjectKey, readiness::Gate,
};
use futures::{StreamExt, pin_mut};
use kube::{
    Api, Resource,
    runtime::watcher::{self, Event, watcher},
};
use serde::de::DeserializeOwned;
use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

/// What happened to an object of a watch.
#[derive(Debug)]
pub enum Change<'a, K> {
    /// It is new or changed.
    Applied(&'a Arc<K>),
    /// It is gone, or no longer matches the watch's selector; as last seen.
    Removed(&'a Arc<K>),
}

impl<K> Change<'_, K> {
    /// The object, as last seen.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Applied(object) | Self::Removed(object) => object,
        }
    }
}

type Subscriber<K> = Box<dyn Fn(&Change<'_, K>) + Send + Sync>;

/// A watched kind. Cheap to clone; clones are the same watch.
pub struct Watch<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    cache: Cache<K>,
    subscribers: RwLock<Vec<Subscriber<K>>>,
    gates: Vec<Gate>,
}

impl<K> Clone for Watch<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K> fmt::Debug for Watch<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Watch").field("objects", &self.shared.cache.len()).finish_non_exhaustive()
    }
}

impl<K> Watch<K> {
    pub(crate) fn new(gates: Vec<Gate>) -> Self {
        Self { shared: Arc::new(Shared { cache: Cache::default(), subscribers: RwLock::default(), gates }) }
    }

    /// The objects seen so far.
    pub fn cache(&self) -> &Cache<K> {
        &self.shared.cache
    }

    /// Calls `subscriber` at every change from now on, in the watch's own task: it must not block.
    pub fn subscribe(&self, subscriber: impl Fn(&Change<'_, K>) + Send + Sync + 'static) {
        self.shared.subscribers.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(subscriber));
    }

    pub(crate) fn gates(&self) -> Vec<Gate> {
        self.shared.gates.clone()
    }

    fn announce(&self, change: &Change<'_, K>) {
        for subscriber in self.shared.subscribers.read().unwrap_or_else(PoisonError::into_inner).iter() {
            subscriber(change);
        }
    }
}

/// Takes an object as it is now, if it is still there.
pub(crate) fn see_again<K: Resource<DynamicType = ()> + Clone>(watch: &Watch<K>, seen: &mut Option<K>) {
    if let Some(object) = seen
        && let Some(now) = watch.cache().get(&ObjectKey::of(object))
    {
        *object = (*now).clone();
    }
}

/// One stream of a watch: all namespaces, or one of them.
pub(crate) struct Stream<K> {
    pub name: String,
    pub namespace: Option<String>,
    pub api: Api<K>,
    pub config: watcher::Config,
    pub gate: Gate,
}

impl<K> Watch<K>
where
    K: Resource + Clone + DeserializeOwned + fmt::Debug + Send + Sync + 'static,
{
    /// Follows one stream until it is dropped; errors are logged, counted and tried again.
    pub(crate) async fn follow(self, stream: Stream<K>, jitter: Jitter, metrics: Metrics) {
        let mut failures = WatchFailures::new(&stream.name, jitter);
        let mut listed = BTreeSet::new();
        let events = watcher(stream.api, stream.config);
        pin_mut!(events);
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(object)) => {
                    listed.insert(ObjectKey::of(&object));
                    self.apply(object);
                }
                Ok(Event::InitDone) => {
                    failures.forget();
                    for object in self.shared.cache.keep_only(stream.namespace.as_deref(), &listed) {
                        self.announce(&Change::Removed(&object));
                    }
                    listed.clear();
                    if !stream.gate.is_open() {
                        tracing::info!(watch = stream.name, objects = self.shared.cache.len(), "watch synced");
                    }
                    stream.gate.open();
                }
                Ok(Event::Apply(object)) => {
                    failures.forget();
                    self.apply(object);
                }
                Ok(Event::Delete(object)) => {
                    failures.forget();
                    self.shared.cache.remove(&ObjectKey::of(&object));
                    self.announce(&Change::Removed(&Arc::new(object)));
                }
                Err(error) => {
                    let delay = failures.failed();
                    metrics.watch_failed(&stream.name);
                    tracing::warn!(watch = stream.name, error = describe(&error), retry_in = ?delay, "watch failed");
                    tokio::time::sleep(delay).await;
                }
            }
        }
    }

    fn apply(&self, mut object: K) {
        object.meta_mut().managed_fields = None;
        let key = ObjectKey::of(&object);
        let version = object.meta().resource_version.clone();
        let known = self.shared.cache.get(&key).is_some_and(|known| version.is_some() && known.meta().resource_version == version);
        let object = Arc::new(object);
        self.shared.cache.insert(key, Arc::clone(&object));
        // A list read again shows mostly what is known already; that is no reason to reconcile everything.
        if !known {
            self.announce(&Change::Applied(&object));
        }
    }
}
