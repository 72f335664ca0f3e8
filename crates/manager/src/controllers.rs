//! A running manager: the watches, the lease, and the controllers, from start to graceful stop.
//!
//! Watches begin at once, so that a process that waits for the lease already has its caches; controllers begin when the lease is held.
//! Asked to stop, it lets reconciles in flight end, then releases the lease, then ends the watches. Losing the lease, or the end of any
//! task that should go on, ends the run with an error: the process is started afresh instead of limping.

use crate::{
    clock::Clock,
    controller::{Controller, Surroundings},
    jitter::Jitter,
    lease::{LeaderLease, LeaseLost},
    maas::MaasMetrics,
    metrics::Metrics,
    readiness::Readiness,
    serve::{Listeners, serve},
    settings::{Settings, WATCH_FILTER_LABEL},
    supervisor::{Ended, Supervisor},
    watches::{Stream, Watch},
};
use futures::future::BoxFuture;
use kube::{Api, Client, Resource, api::ListParams, core::NamespaceScope, runtime::watcher};
use serde::de::DeserializeOwned;
use std::{fmt, pin::pin};
use tokio_util::sync::CancellationToken;

/// Why a manager ended without being asked to.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Another process acts now, or may begin to.
    #[error(transparent)]
    LeaseLost(#[from] LeaseLost),
    /// Something that should have gone on did not.
    #[error("{name} ended by itself{}", panic.as_deref().map(|words| format!(": it panicked: {words}")).unwrap_or_default())]
    TaskEnded {
        /// The task.
        name: String,
        /// What it said when it panicked, if it did.
        panic: Option<String>,
    },
}

impl From<Ended> for RunError {
    fn from(Ended { name, panic }: Ended) -> Self {
        Self::TaskEnded { name, panic }
    }
}

type Task = Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send>;
type Start = Box<dyn FnOnce(Surroundings, CancellationToken) -> BoxFuture<'static, ()> + Send>;

/// Where all objects of a kind are found that controllers of this process are for.
pub(crate) struct Listing<K> {
    pub places: Vec<Api<K>>,
    pub filter: ListParams,
}

/// The controllers of one process with all they share.
pub struct Controllers {
    client: Client,
    settings: Settings,
    readiness: Readiness,
    metrics: Metrics,
    watches: Vec<(String, BoxFuture<'static, ()>)>,
    kinds: Vec<(&'static str, Start)>,
    tasks: Vec<(String, Task)>,
}

impl fmt::Debug for Controllers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.kinds.iter().map(|(kind, _)| kind).collect();
        formatter.debug_struct("Controllers").field("kinds", &kinds).finish_non_exhaustive()
    }
}

impl Controllers {
    /// No controllers yet.
    pub fn new(client: Client, settings: Settings) -> Self {
        let (readiness, metrics) = (Readiness::default(), Metrics::default());
        Self { client, settings, readiness, metrics, watches: Vec::new(), kinds: Vec::new(), tasks: Vec::new() }
    }

    /// What controllers work with.
    pub fn surroundings(&self) -> (Client, Clock, Jitter) {
        (self.client.clone(), self.settings.clock, self.settings.jitter)
    }

    /// Watches the kind a controller is for: in the namespaces of the settings, and only what the watch filter lets through.
    pub fn watch_primary<K>(&mut self) -> Watch<K>
    where
        K: Resource<DynamicType = (), Scope: NamespaceScope> + Clone + DeserializeOwned + fmt::Debug + Send + Sync + 'static,
    {
        let config = watcher::Config { label_selector: self.watch_filter(), ..watcher::Config::default() };
        self.watch_namespaces(&config)
    }

    /// Where a look at the kind a controller is for finds what [`Self::watch_primary`] watches, but as it is now.
    pub(crate) fn listing_of_primary<K>(&self) -> Listing<K>
    where
        K: Resource<DynamicType = (), Scope: NamespaceScope> + Clone,
    {
        let places = self.places().into_iter().map(|(_, api)| api).collect();
        Listing { places, filter: ListParams { label_selector: self.watch_filter(), ..ListParams::default() } }
    }

    fn watch_filter(&self) -> Option<String> {
        self.settings.watch_filter.as_ref().map(|value| format!("{WATCH_FILTER_LABEL}={value}"))
    }

    /// Watches a kind that controllers refer to, in the namespaces of the settings.
    pub fn watch_related<K>(&mut self) -> Watch<K>
    where
        K: Resource<DynamicType = (), Scope: NamespaceScope> + Clone + DeserializeOwned + fmt::Debug + Send + Sync + 'static,
    {
        self.watch_namespaces(&watcher::Config::default())
    }

    /// Watches a kind wherever its objects are; for kinds that have no namespace.
    pub fn watch_everywhere<K>(&mut self) -> Watch<K>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug + Send + Sync + 'static,
    {
        let api = Api::all(self.client.clone());
        self.watch_streams(vec![(None, api)], &watcher::Config::default())
    }

    fn watch_namespaces<K>(&mut self, config: &watcher::Config) -> Watch<K>
    where
        K: Resource<DynamicType = (), Scope: NamespaceScope> + Clone + DeserializeOwned + fmt::Debug + Send + Sync + 'static,
    {
        let streams = self.places();
        self.watch_streams(streams, config)
    }

    /// The namespaces of the settings.
    fn places<K>(&self) -> Vec<(Option<String>, Api<K>)>
    where
        K: Resource<DynamicType = (), Scope: NamespaceScope> + Clone,
    {
        let everywhere = Api::<K>::all(self.client.clone());
        let within = |namespace: Option<String>| match namespace {
            Some(name) => (Some(name.clone()), everywhere.clone().constrain(&name)),
            None => (None, everywhere.clone()),
        };
        self.settings.namespaces.each().into_iter().map(within).collect()
    }

    fn watch_streams<K>(&mut self, apis: Vec<(Option<String>, Api<K>)>, config: &watcher::Config) -> Watch<K>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug + Send + Sync + 'static,
    {
        let kind = format!("{}.{}", K::plural(&()), K::group(&()));
        let kind = kind.trim_end_matches('.');
        let streams: Vec<_> = apis
            .into_iter()
            .map(|(namespace, api)| {
                let name = namespace.as_ref().map_or_else(|| kind.to_owned(), |namespace| format!("{kind} in namespace {namespace}"));
                let gate = self.readiness.gate(&name);
                Stream { name, namespace, api, config: config.clone(), gate }
            })
            .collect();
        let watch = Watch::new(streams.iter().map(|stream| stream.gate.clone()).collect());
        for stream in streams {
            let name = format!("the watch of {}", stream.name);
            self.watches.push((name, Box::pin(watch.clone().follow(stream, self.settings.jitter, self.metrics.clone()))));
        }
        watch
    }

    /// Adds a controller, to be run.
    pub fn add<K: Resource + Send + Sync + 'static>(&mut self, controller: Controller<K>) {
        self.kinds.push((controller.kind(), Box::new(move |surroundings, stop| Box::pin(controller.run(surroundings, stop)))));
    }

    /// Adds something that runs beside the controllers while this process may act. It ends when its token is cancelled and not before:
    /// an earlier end is taken for a failure of the process.
    pub fn add_task<Running>(&mut self, name: impl Into<String>, task: impl FnOnce(CancellationToken) -> Running + Send + 'static)
    where
        Running: Future<Output = ()> + Send + 'static,
    {
        self.tasks.push((name.into(), Box::new(move |stop| Box::pin(task(stop)))));
    }

    /// What is counted about MAAS, on the page of these controllers.
    pub fn maas_metrics(&self) -> MaasMetrics {
        self.metrics.maas().clone()
    }

    /// Runs everything until `stop` resolves. Dropping the run ends everything at once, without releasing the lease.
    pub async fn run(self, listeners: Listeners, stop: impl Future<Output = ()>) -> Result<(), RunError> {
        let mut stop = pin!(stop);
        let Self { client, settings, readiness, metrics, watches, kinds, tasks } = self;
        let mut background = Supervisor::default();
        serve(&mut background, listeners, &readiness, &metrics);
        for (name, watch) in watches {
            background.start(name, watch);
        }
        let mut lease = settings.lease.map(|lease| LeaderLease::new(client.clone(), lease, settings.clock, settings.jitter));
        if let Some(lease) = &mut lease {
            tokio::select! {
                biased;
                () = &mut stop => return Ok(()),
                ended = background.ended() => return Err(ended.into()),
                () = lease.acquire() => {}
            }
        }
        metrics.leads(true);
        let drain = CancellationToken::new();
        let mut acting = Supervisor::default();
        let Settings { clock, jitter, sync_period, .. } = settings;
        for (kind, start) in kinds {
            let surroundings = Surroundings { client: client.clone(), clock, jitter, metrics: metrics.clone(), sync_period };
            acting.start(format!("the controller of {kind}"), start(surroundings, drain.clone()));
        }
        for (name, task) in tasks {
            acting.start(name, task(drain.clone()));
        }
        tokio::select! {
            biased;
            () = &mut stop => {}
            lost = hold(lease.as_mut()) => return Err(lost.into()),
            ended = acting.ended() => return Err(ended.into()),
            ended = background.ended() => return Err(ended.into()),
        }
        tracing::info!(grace_period = ?settings.grace_period, "stops: waits for reconciles in flight");
        drain.cancel();
        tokio::select! {
            biased;
            unfinished = acting.finish(settings.grace_period) => {
                for name in unfinished {
                    tracing::warn!(task = name, "was ended before its reconciles were done");
                }
            }
            lost = hold(lease.as_mut()) => return Err(lost.into()),
        }
        metrics.leads(false);
        if let Some(lease) = lease {
            lease.release().await;
        }
        tracing::info!("stopped");
        Ok(())
    }
}

async fn hold(lease: Option<&mut LeaderLease>) -> LeaseLost {
    match lease {
        Some(lease) => lease.hold().await,
        None => std::future::pending().await,
    }
}
