//! The leader lease: of all processes with the same lease only its holder acts.
//!
//! A `coordination.k8s.io/v1` Lease written by create and replace, so that the server's resource versions decide every race. When a
//! lease of somebody else expires is counted from the moment *this* process saw it change last, never from the time written in it:
//! clocks of machines differ, and an early takeover would let two processes allocate machines. The holder counts from the moment it
//! began its last successful renewal and gives up well before anybody else may take over.

use crate::{clock::Clock, describe::describe, jitter::Jitter};
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{Api, Client, api::PostParams};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

/// How a process takes part in the election.
#[derive(Debug, Clone)]
pub struct LeaseSettings {
    /// The namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who we are; unique to this process.
    pub identity: String,
    /// How long others wait after the last change they saw before they take over.
    pub duration: Duration,
    /// How long we go on after our last successful renewal; shorter than `duration`.
    pub renew_deadline: Duration,
    /// The time between attempts.
    pub retry_period: Duration,
}

impl LeaseSettings {
    /// The name the Go provider uses, so that it and this program never lead at once.
    pub const DEFAULT_NAME: &'static str = "controller-leader-election-capmaas";

    /// The usual times of Kubernetes components: 15 s, 10 s and 2 s.
    pub fn new(namespace: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: Self::DEFAULT_NAME.to_owned(),
            identity: identity.into(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// Why this process no longer leads.
#[derive(Debug, thiserror::Error)]
pub enum LeaseLost {
    /// Somebody else holds it.
    #[error("the leader lease was taken by {holder}")]
    Taken {
        /// Who.
        holder: String,
    },
    /// It could not be renewed in time.
    #[error("the leader lease could not be renewed for {deadline:?}; last cause: {cause}")]
    NotRenewed {
        /// The time allowed.
        deadline: Duration,
        /// The last thing that went wrong.
        cause: String,
    },
}

/// The outcome of one attempt to get or renew the lease.
enum Attempt {
    Held,
    HeldBy(String),
}

/// Our part in the election.
#[derive(Debug)]
pub struct LeaderLease {
    api: Api<Lease>,
    settings: LeaseSettings,
    clock: Clock,
    jitter: Jitter,
    attempts: u64,
    /// When we began the last attempt that made or kept the lease ours.
    renewed: Instant,
    /// The lease as we wrote it last; while it is current a renewal is a single call.
    ours: Option<Lease>,
    /// What we saw of the lease last, and when it became so.
    seen: Option<(LeaseSpec, Instant)>,
}

impl LeaderLease {
    /// Takes no part yet.
    pub fn new(client: Client, settings: LeaseSettings, clock: Clock, jitter: Jitter) -> Self {
        let api = Api::namespaced(client, &settings.namespace);
        Self { api, settings, clock, jitter, attempts: 0, renewed: Instant::now(), ours: None, seen: None }
    }

    /// Returns when the lease is ours.
    pub async fn acquire(&mut self) {
        let mut told = None;
        loop {
            let began = Instant::now();
            match timeout(self.settings.renew_deadline, self.attempt()).await {
                Ok(Ok(Attempt::Held)) => {
                    self.renewed = began;
                    tracing::info!(lease = self.settings.name, identity = self.settings.identity, "holds the leader lease");
                    return;
                }
                Ok(Ok(Attempt::HeldBy(holder))) if told.as_ref() == Some(&holder) => {}
                Ok(Ok(Attempt::HeldBy(holder))) => {
                    tracing::info!(lease = self.settings.name, holder, "waits for the leader lease");
                    told = Some(holder);
                }
                Ok(Err(error)) => tracing::warn!(lease = self.settings.name, error = describe(&error), "could not take the leader lease"),
                Err(_) => tracing::warn!(lease = self.settings.name, "no answer about the leader lease"),
            }
            sleep(self.pause()).await;
        }
    }

    /// Renews the lease; returns only when it is lost. May be dropped and called again.
    pub async fn hold(&mut self) -> LeaseLost {
        let mut cause = "no answer".to_owned();
        loop {
            let deadline = self.renewed + self.settings.renew_deadline;
            sleep_until((Instant::now() + self.pause()).min(deadline)).await;
            let began = Instant::now();
            if began >= deadline {
                return LeaseLost::NotRenewed { deadline: self.settings.renew_deadline, cause };
            }
            match timeout_at(deadline, self.attempt()).await {
                Ok(Ok(Attempt::Held)) => self.renewed = began,
                Ok(Ok(Attempt::HeldBy(holder))) => return LeaseLost::Taken { holder },
                Ok(Err(error)) => {
                    cause = describe(&error);
                    tracing::warn!(lease = self.settings.name, error = cause, "could not renew the leader lease");
                }
                Err(_) => "no answer".clone_into(&mut cause),
            }
        }
    }

    /// Gives the lease back, so that the next process need not wait. Only after everything that acts has ended.
    pub async fn release(mut self) {
        let within = self.settings.retry_period;
        let until_given_back = async {
            // A renewal that was under way when we stopped may still arrive and be a conflict: try again.
            while let Err(error) = self.give_back().await {
                tracing::warn!(lease = self.settings.name, error = describe(&error), "could not release the leader lease");
                sleep(within / 10).await;
            }
        };
        match timeout(within, until_given_back).await {
            Ok(()) => tracing::info!(lease = self.settings.name, "released the leader lease"),
            Err(_) => {
                tracing::warn!(lease = self.settings.name, "gave up releasing the leader lease: the next leader waits until it expires");
            }
        }
    }

    async fn give_back(&mut self) -> Result<(), kube::Error> {
        let lease = match self.ours.take() {
            Some(lease) => Some(lease),
            None => self.api.get_opt(&self.settings.name).await?,
        };
        let Some(Lease { metadata, spec: Some(spec) }) = lease else { return Ok(()) };
        if spec.holder_identity.as_deref() != Some(&self.settings.identity) {
            return Ok(());
        }
        let now = MicroTime(self.clock.now());
        let free = LeaseSpec { holder_identity: Some(String::new()), lease_duration_seconds: Some(1), renew_time: Some(now), ..spec };
        self.api.replace(&self.settings.name, &PostParams::default(), &Lease { metadata, spec: Some(free) }).await.map(drop)
    }

    /// The pause before the next attempt, up to a fifth longer or shorter so that candidates do not march in step.
    fn pause(&mut self) -> Duration {
        self.attempts += 1;
        let purpose = format!("lease {}", self.settings.identity);
        self.jitter.spread(self.settings.retry_period, 200, &purpose, self.attempts)
    }

    async fn attempt(&mut self) -> Result<Attempt, kube::Error> {
        // Taken out: after any failure the next attempt reads first, because the write may have happened all the same.
        let current = match self.ours.take() {
            Some(lease) => lease,
            None => match self.api.get_opt(&self.settings.name).await? {
                Some(lease) => lease,
                None => return self.create().await,
            },
        };
        let spec = current.spec.clone().unwrap_or_default();
        self.observe(&spec);
        let holder = spec.holder_identity.clone().unwrap_or_default();
        if holder != self.settings.identity && !holder.is_empty() && !self.expired() {
            return Ok(Attempt::HeldBy(holder));
        }
        let renewed = Lease { metadata: current.metadata, spec: Some(self.our_spec(&spec)) };
        let written = self.api.replace(&self.settings.name, &PostParams::default(), &renewed).await?;
        Ok(self.held(written))
    }

    async fn create(&mut self) -> Result<Attempt, kube::Error> {
        let metadata = ObjectMeta { name: Some(self.settings.name.clone()), ..ObjectMeta::default() };
        let lease = Lease { metadata, spec: Some(self.our_spec(&LeaseSpec::default())) };
        let written = self.api.create(&PostParams::default(), &lease).await?;
        Ok(self.held(written))
    }

    fn held(&mut self, written: Lease) -> Attempt {
        self.observe(&written.spec.clone().unwrap_or_default());
        self.ours = Some(written);
        Attempt::Held
    }

    fn observe(&mut self, spec: &LeaseSpec) {
        if self.seen.as_ref().is_none_or(|(seen, _)| seen != spec) {
            self.seen = Some((spec.clone(), Instant::now()));
        }
    }

    fn expired(&self) -> bool {
        let Some((spec, since)) = &self.seen else { return false };
        let duration = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
        since.elapsed() >= duration.unwrap_or(self.settings.duration)
    }

    fn our_spec(&self, before: &LeaseSpec) -> LeaseSpec {
        let now = MicroTime(self.clock.now());
        let stays = before.holder_identity.as_deref() == Some(&self.settings.identity);
        let transitions = before.lease_transitions.unwrap_or_default();
        LeaseSpec {
            holder_identity: Some(self.settings.identity.clone()),
            lease_duration_seconds: Some(i32::try_from(self.settings.duration.as_secs()).unwrap_or(i32::MAX).max(1)),
            acquire_time: if stays { before.acquire_time.clone() } else { Some(now.clone()) },
            renew_time: Some(now),
            lease_transitions: Some(if stays || before.holder_identity.is_none() { transitions } else { transitions.saturating_add(1) }),
            ..before.clone()
        }
    }
}
