//! How a kind plugs in: a [`Controller`] is a watched kind, what else makes its objects due, and an async `reconcile`.
//!
//! It takes keys from its [`Queue`], looks the object up in the cache and reconciles it: never the same object twice at once, no more
//! than `concurrency` at a time, each within a timeout. An error, a timeout or a panic makes the object due again after a delay that
//! grows with its failures. Everything of one controller runs in one task, so the order of events is the order of their causes.

use crate::{
    backoff::Failures,
    clock::Clock,
    describe::describe,
    jitter::Jitter,
    metrics::{Metrics, Outcome},
    object_key::ObjectKey,
    queue::Queue,
    readiness::Gate,
    shown::PassError,
    supervisor::panic_message,
    watches::{Change, Watch},
};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Client, Resource, ResourceExt};
use std::{
    collections::BTreeMap,
    error::Error,
    fmt,
    num::NonZeroUsize,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// When an object is due again after a success. A change of it or of what it depends on always makes it due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// At the next change, or after the sync period at the latest.
    AwaitChange,
    /// After this time.
    RequeueAfter(Duration),
}

/// What a reconcile gets beside its object.
#[derive(Clone)]
pub struct Context {
    /// The cluster.
    pub client: Client,
    /// The time of day.
    pub clock: Clock,
    /// Randomness.
    pub jitter: Jitter,
    /// How often this object failed in a row before this attempt.
    pub failures: u32,
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Context").field("failures", &self.failures).finish_non_exhaustive()
    }
}

/// Everything that a controller needs of the manager that runs it.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub client: Client,
    pub clock: Clock,
    pub jitter: Jitter,
    pub metrics: Metrics,
    pub sync_period: Duration,
}

type Cause = Box<dyn Error + Send + Sync>;
type Reconcile<K> = Arc<dyn Fn(Arc<K>, Context) -> BoxFuture<'static, Result<Action, Cause>> + Send + Sync>;

/// Annotations that only controllers of ours write.
const OUR_ANNOTATIONS: &str = "metalshift.io/";

/// What was last heard of each object. A change of nothing but the status or our own annotations is no news: the controller wrote it, and
/// an object that failed would wake itself by noting what it is about to try.
#[derive(Default)]
struct Heard {
    objects: Mutex<BTreeMap<ObjectKey, ObjectMeta>>,
}

impl Heard {
    fn is_news<K: Resource>(&self, change: &Change<'_, K>) -> bool {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let object = &**change.object();
        match change {
            Change::Applied(_) => {
                // The generation stands for the spec.
                let mut said = ObjectMeta { resource_version: None, managed_fields: None, ..object.meta().clone() };
                if let Some(annotations) = &mut said.annotations {
                    annotations.retain(|name, _| !name.starts_with(OUR_ANNOTATIONS));
                }
                objects.insert(ObjectKey::of(object), said.clone()) != Some(said)
            }
            // Its turn finds it gone and forgets its failures.
            Change::Removed(_) => {
                objects.remove(&ObjectKey::of(object));
                true
            }
        }
    }
}

/// When an object is due again if nobody asks for it before.
enum Next {
    /// It is in order, or was changed by somebody else meanwhile.
    Look(Duration),
    /// It failed.
    Attempt(Duration),
    Never,
}

/// A controller of one kind.
pub struct Controller<K> {
    kind: &'static str,
    primary: Watch<K>,
    gates: Vec<Gate>,
    queue: Arc<Queue>,
    reconcile: Reconcile<K>,
    concurrency: NonZeroUsize,
    timeout: Duration,
}

/// Makes objects of a controller due from outside, for example when MAAS reports an event of their machine.
#[derive(Debug, Clone)]
pub struct Pokes {
    queue: Arc<Queue>,
}

impl Pokes {
    /// Makes the object due now, or when it may be tried again after it failed.
    pub fn poke(&self, key: ObjectKey) {
        self.queue.poke(key);
    }

    /// Makes the object due after this time, also if it failed, or when it is due anyway if that is sooner.
    pub fn poke_after(&self, key: ObjectKey, delay: Duration) {
        self.queue.add_at(key, Instant::now() + delay);
    }

    /// Whether both make objects of the same controller due.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.queue, &other.queue)
    }
}

impl<K> fmt::Debug for Controller<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Controller").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl<K> Controller<K>
where
    K: Resource + Send + Sync + 'static,
{
    /// A controller of the objects of `primary`. `kind` is its name in logs and metrics.
    pub fn new<Reconciler, Running, Failure>(kind: &'static str, primary: &Watch<K>, reconcile: Reconciler) -> Self
    where
        Reconciler: Fn(Arc<K>, Context) -> Running + Send + Sync + 'static,
        Running: Future<Output = Result<Action, Failure>> + Send + 'static,
        Failure: Error + Send + Sync + 'static,
    {
        let queue = Arc::new(Queue::default());
        let subscribed = Arc::clone(&queue);
        let heard = Heard::default();
        primary.subscribe(move |change| {
            if heard.is_news(change) {
                subscribed.add(ObjectKey::of(&**change.object()));
            }
        });
        Self {
            kind,
            primary: primary.clone(),
            gates: primary.gates(),
            queue,
            reconcile: Arc::new(move |object, context| reconcile(object, context).map(|result| result.map_err(Cause::from)).boxed()),
            concurrency: NonZeroUsize::MIN.saturating_add(9),
            timeout: Duration::from_secs(90),
        }
    }

    /// Makes objects due when a related object changes or goes; `map` names them.
    #[must_use]
    pub fn watches<R: 'static>(mut self, related: &Watch<R>, map: impl Fn(&R) -> Vec<ObjectKey> + Send + Sync + 'static) -> Self {
        let queue = Arc::clone(&self.queue);
        related.subscribe(move |change: &Change<'_, R>| map(change.object()).into_iter().for_each(|key| queue.add(key)));
        self.gates.extend(related.gates());
        self
    }

    /// Makes objects due when the part of a related object that they depend on changes, or when it goes; `map` names them. For kinds that
    /// change often for reasons that concern nobody here.
    #[must_use]
    pub fn watches_part<R, Part>(
        mut self,
        related: &Watch<R>,
        part: impl Fn(&R) -> Part + Send + Sync + 'static,
        map: impl Fn(&R) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self
    where
        R: Resource + 'static,
        Part: PartialEq + Send + 'static,
    {
        let queue = Arc::clone(&self.queue);
        let known = Mutex::new(BTreeMap::new());
        related.subscribe(move |change: &Change<'_, R>| {
            let object = &**change.object();
            let news = {
                let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                match change {
                    Change::Applied(_) => {
                        let now = part(object);
                        let same = known.get(&ObjectKey::of(object)) == Some(&now);
                        known.insert(ObjectKey::of(object), now);
                        !same
                    }
                    Change::Removed(_) => {
                        known.remove(&ObjectKey::of(object));
                        true
                    }
                }
            };
            if news {
                for key in map(object) {
                    queue.add(key);
                }
            }
        });
        self.gates.extend(related.gates());
        self
    }

    /// At most so many reconciles at once (10 if not set).
    #[must_use]
    pub fn concurrency(mut self, concurrency: NonZeroUsize) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// The longest time of one reconcile (90 s if not set).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The way for events from outside the cluster to make objects due; what kube calls `reconcile_on`.
    pub fn pokes(&self) -> Pokes {
        Pokes { queue: Arc::clone(&self.queue) }
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// Works until `stop`, then lets the reconciles in flight end.
    pub(crate) async fn run(self, surroundings: Surroundings, stop: CancellationToken) {
        let synced = async {
            for gate in &self.gates {
                gate.opened().await;
            }
        };
        if stop.run_until_cancelled(synced).await.is_none() {
            return;
        }
        surroundings.metrics.shows_queue(self.kind, &self.queue);
        let failures = Failures::new(self.kind, surroundings.jitter);
        let mut started = 0;
        let mut running = FuturesUnordered::new();
        loop {
            tokio::select! {
                // In this order and not at random: the same run twice takes the same branches.
                biased;
                () = stop.cancelled() => break,
                Some(()) = running.next(), if !running.is_empty() => {}
                key = self.queue.next(), if running.len() < self.concurrency.get() => {
                    started += 1;
                    running.push(self.turn(key, started, &failures, &surroundings));
                }
            }
        }
        while running.next().await.is_some() {}
    }

    /// One turn of one object: reconcile it if it still exists, and queue it again.
    async fn turn(&self, key: ObjectKey, number: u64, failures: &Failures, surroundings: &Surroundings) {
        if let Some(object) = self.primary.cache().get(&key) {
            let id = surroundings.jitter.draw(self.kind, number);
            // Not `name`: in JSON that is the name of the span.
            let span = tracing::info_span!(
                "reconcile",
                kind = self.kind,
                namespace = key.namespace.as_deref(),
                object = key.name,
                uid = object.uid().as_deref(),
                reconcile_id = format!("{id:016x}"),
            );
            match self.attempt(object, &key, failures, surroundings).instrument(span).await {
                Next::Attempt(delay) => self.queue.hold(key.clone(), Instant::now() + delay),
                Next::Look(delay) => self.queue.add_at(key.clone(), Instant::now() + delay),
                Next::Never => {}
            }
        } else {
            failures.forget(&key);
        }
        self.queue.done(key);
    }

    /// Reconciles once and says when the object is due again; never by itself without a sync period.
    async fn attempt(&self, object: Arc<K>, key: &ObjectKey, failures: &Failures, surroundings: &Surroundings) -> Next {
        let Surroundings { client, clock, jitter, metrics, sync_period } = surroundings;
        let context = Context { client: client.clone(), clock: *clock, jitter: *jitter, failures: failures.of(key) };
        let began = Instant::now();
        metrics.reconcile_began(self.kind);
        // The call itself is inside, since a closure may panic before its future exists.
        let contained = AssertUnwindSafe(async { (self.reconcile)(object, context).await }).catch_unwind();
        let result = timeout(self.timeout, contained).await;
        // Somebody was faster: nothing is wrong, and nobody needs to read of it.
        let stale = matches!(&result, Ok(Ok(Err(cause))) if matches!(cause.downcast_ref(), Some(PassError::Stale)));
        let (outcome, cause) = match result {
            Ok(Ok(Ok(action))) => {
                metrics.reconcile_ended(self.kind, Outcome::Success, began.elapsed());
                failures.forget(key);
                tracing::debug!(?action, took = ?began.elapsed(), "reconciled");
                return match action {
                    Action::RequeueAfter(delay) => Next::Look(delay),
                    Action::AwaitChange if sync_period.is_zero() => Next::Never,
                    Action::AwaitChange => Next::Look(jitter.spread(*sync_period, 100, &format!("sync {} {key}", self.kind), 0)),
                };
            }
            Ok(Ok(Err(cause))) => (Outcome::Error, describe(cause.as_ref())),
            Ok(Err(payload)) => (Outcome::Panic, format!("the reconcile panicked: {}", panic_message(payload.as_ref()))),
            Err(_) => (Outcome::Timeout, format!("the reconcile did not end within {:?}", self.timeout)),
        };
        metrics.reconcile_ended(self.kind, outcome, began.elapsed());
        let delay = failures.failed(key);
        if stale {
            tracing::debug!(cause, retry_in = ?delay, "the reconcile is repeated");
        } else if failures.is_news(key, &cause) {
            tracing::warn!(error = cause, failures = failures.of(key), retry_in = ?delay, "reconcile failed");
        } else {
            // An outage is one line an object, not one an attempt.
            tracing::debug!(error = cause, failures = failures.of(key), retry_in = ?delay, "reconcile failed again");
        }
        if stale { Next::Look(delay) } else { Next::Attempt(delay) }
    }
}
