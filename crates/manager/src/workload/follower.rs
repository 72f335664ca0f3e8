//! Follows one workload cluster: connects, lists its nodes, watches them, and begins anew when that breaks. [`super::Workload::follow`]
//! runs one for each cluster, all in one task.
//!
//! Kube's own watcher resumes in silence: it does not tell when a broken watch is established again, and that is what is to be known here.

use std::{convert::Infallible, sync::Arc, time::Duration};

use decisions::node::Nodes;
use futures::{StreamExt, pin_mut};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, WatchEvent, WatchParams},
};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::{
    connect::ConnectWorkload,
    followed::Followed,
    kubeconfig::{self, Connection, NoConnection},
    label::Label,
    node::Node,
};
use crate::{describe::describe, jitter::Jitter};

/// A watch that broke may be established again for so long before anybody is told.
const GRACE: Duration = Duration::from_secs(5);
/// The shortest and the longest wait from one attempt to the next.
const ATTEMPTS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));
/// The same while there is no Secret.
const LOOKS_FOR_SECRET: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// However often somebody says that something changed.
const NO_SOONER: Duration = Duration::from_secs(1);
/// An API server that is well begins to answer within this time.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// A page of a list takes longer.
const PAGE_WITHIN: Duration = Duration::from_secs(10);
const PAGE: u32 = 250;
/// How long a watch is asked for; spread, so that many clusters do not renew theirs together.
const WATCH: Duration = Duration::from_secs(270);
/// API servers send a bookmark about every minute. When nothing comes, the other end may be gone without a word.
const HEARD_WITHIN: Duration = Duration::from_secs(90);
/// A watch that lasted less was no success.
const STEADY: Duration = Duration::from_secs(10);
/// While a connection fails, the Secret is compared this often; at once if the credentials are refused.
const SECRET_AGE: Duration = Duration::from_mins(2);
pub(super) struct Follower {
    kubernetes: Client,
    connect: ConnectWorkload,
    jitter: Jitter,
    cluster: Arc<Followed>,
    connection: Option<Connection>,
    /// When the Secret was last read.
    read: Option<Instant>,
    /// Where the watch goes on; the nodes are listed without it.
    version: Option<String>,
    /// Since when there is no watch.
    failing: Option<Instant>,
    /// Failures without a steady watch between them.
    failures: u32,
    /// Numbers the delays, for the jitter.
    drawn: u64,
    answered: bool,
    label: Label,
}

/// Why there is no watch.
enum Setback {
    NoSecret,
    Failed { words: String, credentials_refused: bool },
}

impl Setback {
    fn failed(words: impl Into<String>) -> Self {
        Self::Failed { words: words.into(), credentials_refused: false }
    }
}

impl Follower {
    pub fn new(kubernetes: Client, connect: ConnectWorkload, jitter: Jitter, cluster: Arc<Followed>) -> Self {
        Self {
            kubernetes,
            connect,
            jitter,
            cluster,
            connection: None,
            read: None,
            version: None,
            failing: None,
            failures: 0,
            drawn: 0,
            answered: false,
            label: Label::default(),
        }
    }

    /// Follows until the cluster is forgotten.
    pub async fn run(mut self) {
        let ended = self.cluster.ended.clone();
        ended.run_until_cancelled(self.follow()).await;
        self.cluster.connected(None);
    }

    async fn follow(&mut self) -> Infallible {
        loop {
            if let Err(setback) = self.attempt().await {
                self.failures = self.failures.saturating_add(1);
                self.failing.get_or_insert_with(Instant::now);
                self.endure(setback).await;
            }
        }
    }

    /// Connects, lists and watches; returns when the watch came to its regular end.
    async fn attempt(&mut self) -> Result<(), Setback> {
        let client = self.client().await?;
        let nodes: Api<Node> = Api::all(client.clone());
        let version = match self.version.clone() {
            Some(version) => version,
            None => self.list(&nodes).await?,
        };
        self.watch(&client, &nodes, version).await
    }

    async fn client(&mut self) -> Result<Client, Setback> {
        let outdated = self.failing.is_some() && self.read.is_none_or(|read| read.elapsed() >= SECRET_AGE);
        if let Some(connection) = self.connection.as_ref().filter(|_| !outdated) {
            return Ok(connection.client.clone());
        }
        self.read = Some(Instant::now());
        let connecting = kubeconfig::connect(&self.kubernetes, &self.connect, &self.cluster.key, self.connection.as_ref());
        let late = || NoConnection::Unreadable(format!("{} was not read in time", kubeconfig::place(&self.cluster.key)));
        match timeout(PAGE_WITHIN, connecting).await.unwrap_or_else(|_| Err(late())) {
            Ok(None) => {}
            Ok(Some(connection)) => {
                self.cluster.connected(Some(connection.client.clone()));
                self.connection = Some(connection);
            }
            Err(NoConnection::Missing) => {
                self.connection = None;
                return Err(Setback::NoSecret);
            }
            // What worked before may work again.
            Err(NoConnection::Unreadable(_)) if self.connection.is_some() => {}
            Err(NoConnection::Unreadable(words) | NoConnection::Unusable(words)) => return Err(Setback::failed(words)),
        }
        let connection = self.connection.as_ref().ok_or(Setback::NoSecret)?;
        Ok(connection.client.clone())
    }

    async fn list(&mut self, api: &Api<Node>) -> Result<String, Setback> {
        let mut nodes = Nodes::new();
        let mut page = ListParams::default().limit(PAGE);
        loop {
            let list = self.within(PAGE_WITHIN, api.list(&page)).await?;
            nodes.extend(list.items.into_iter().map(|node| (node.name_any(), node.seen)));
            page.continue_token = list.metadata.continue_.filter(|token| !token.is_empty());
            if page.continue_token.is_none() {
                let version = list.metadata.resource_version.unwrap_or_default();
                self.cluster.listed(nodes);
                self.version = Some(version.clone());
                return Ok(version);
            }
        }
    }

    async fn watch(&mut self, client: &Client, api: &Api<Node>, version: String) -> Result<(), Setback> {
        let draw = self.next_draw();
        let length = self.jitter.spread(WATCH, 70, &format!("watch of nodes of {}", self.cluster.key), draw);
        let parameters = WatchParams { timeout: u32::try_from(length.as_secs()).ok(), bookmarks: true, ..WatchParams::default() };
        let events = self.within(ANSWER_WITHIN, api.watch(&parameters, &version)).await?;
        pin_mut!(events);
        let began = Instant::now();
        self.failing = None;
        self.answered = true;
        self.cluster.answers();
        let mut heard_by = began + HEARD_WITHIN;
        loop {
            let label_due = self.label.due();
            let event = tokio::select! {
                biased;
                () = sleep_until(label_due.unwrap_or(began)), if label_due.is_some() => {
                    self.label.put(client, &self.cluster.key).await;
                    continue;
                }
                event = timeout_at(heard_by, events.next()) => event,
            };
            heard_by = Instant::now() + HEARD_WITHIN;
            let steady = began.elapsed() >= STEADY;
            if steady {
                self.failures = 0;
            }
            match event {
                Ok(Some(event)) => self.take(event)?,
                Ok(None) if !steady => return Err(Setback::failed("it ended the watch of its nodes at once")),
                // Whether that means anything, the next watch will show.
                Ok(None) | Err(_) => return Ok(()),
            }
        }
    }

    fn take(&mut self, event: Result<WatchEvent<Node>, kube::Error>) -> Result<(), Setback> {
        match event {
            Ok(WatchEvent::Added(node) | WatchEvent::Modified(node)) => {
                self.version.clone_from(&node.metadata.resource_version);
                self.cluster.changed(&node.name_any(), Some(node.seen));
            }
            Ok(WatchEvent::Deleted(node)) => {
                self.version.clone_from(&node.metadata.resource_version);
                self.cluster.changed(&node.name_any(), None);
            }
            Ok(WatchEvent::Bookmark(bookmark)) => self.version = Some(bookmark.metadata.resource_version),
            // Usually that the version is too old.
            Ok(WatchEvent::Error(status)) => {
                self.version = None;
                return Err(self.setback(&kube::Error::Api(status)));
            }
            Err(error) => {
                if matches!(error, kube::Error::SerdeError(_)) {
                    self.version = None;
                }
                return Err(self.setback(&error));
            }
        }
        Ok(())
    }

    /// A call to the cluster, with an end.
    async fn within<T>(&mut self, time: Duration, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Setback> {
        match timeout(time, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                if matches!(&error, kube::Error::Api(status) if status.code == 410) {
                    self.version = None;
                }
                Err(self.setback(&error))
            }
            Err(_) => Err(Setback::failed(format!("it did not answer within {time:?}"))),
        }
    }

    fn setback(&self, error: &kube::Error) -> Setback {
        let credentials_refused = matches!(error, kube::Error::Auth(_)) || matches!(error, kube::Error::Api(status) if status.code == 401);
        let mut words = words(error);
        if credentials_refused {
            words = format!("it does not accept the credentials in {}: {words}", kubeconfig::place(&self.cluster.key));
        }
        Setback::Failed { words, credentials_refused }
    }

    /// Waits until the next attempt is worth it, and tells when it has lasted too long.
    async fn endure(&mut self, setback: Setback) {
        let (words, (first, longest)) = match setback {
            Setback::NoSecret if !self.answered => {
                self.cluster.not_yet();
                (None, LOOKS_FOR_SECRET)
            }
            Setback::NoSecret => (Some(format!("{} is gone", kubeconfig::place(&self.cluster.key))), LOOKS_FOR_SECRET),
            Setback::Failed { words, credentials_refused } => {
                if credentials_refused {
                    self.connection = None;
                }
                (Some(words), ATTEMPTS)
            }
        };
        let now = Instant::now();
        let wait = first.saturating_mul(1 << self.failures.saturating_sub(1).min(10)).min(longest);
        let draw = self.next_draw();
        let mut until = now + self.jitter.spread(wait, 200, &format!("workload cluster {}", self.cluster.key), draw);
        tracing::debug!(cluster = %self.cluster.key, words, failures = self.failures, "no watch of the workload cluster's nodes");
        if let Some(words) = words {
            let too_long = self.failing.unwrap_or(now) + GRACE;
            if too_long <= now {
                self.cluster.silent(&words);
            } else {
                // Nobody is told without a last attempt.
                until = until.min(too_long);
            }
        }
        sleep_until(until.min(now + NO_SOONER)).await;
        tokio::select! {
            biased;
            () = self.cluster.hurry.notified() => {}
            () = sleep_until(until) => {}
        }
    }

    fn next_draw(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn
    }
}

/// The cause in words that stay the same while the cause does: they end in a condition.
pub(super) fn words(error: &kube::Error) -> String {
    let line = describe(error);
    let line = line.trim_start_matches("ServiceError: ");
    // An expired certificate is told with the age of its expiry.
    line.split(": verification time").next().unwrap_or_default().to_owned()
}
