//! The hands of the program: what every controller needs and none should write again.
//!
//! [`Controllers`] runs a set of [`Controller`]s in one process: watches into caches, queues, reconciles with timeout, backoff and
//! contained panics, the leader lease, health, readiness and metrics. The program's command `manage` fills [`Settings`] and calls it;
//! the simulation runs the same code on an in-process API server under paused time, so all waiting is tokio's, all timestamps come
//! from [`Clock`], all randomness from [`Jitter`], and nothing iterates in hash order (docs/decisions/0001-determinism.md).

mod address;
mod backoff;
mod cache;
mod clock;
pub mod cluster;
mod connection;
mod controller;
mod controllers;
mod describe;
mod events;
mod failure;
mod first_seen;
mod go_duration;
mod guarded;
mod jitter;
mod lease;
pub mod leftover_webhooks;
mod logs;
pub mod maas;
pub mod machine;
mod metrics;
mod object_key;
mod provider;
mod queue;
mod readiness;
pub mod remediation;
mod serve;
mod settings;
mod shown;
mod supervisor;
mod template;
mod watches;
pub mod workload;
mod written;

/// Who writes to the API server on our behalf: the owner of the fields that are ours.
pub const FIELD_MANAGER: &str = "metalshift";

pub use cache::Cache;
pub use clock::Clock;
pub use connection::{ConnectError, connect};
pub use controller::{Action, Context, Controller, Pokes};
pub use controllers::{Controllers, RunError};
pub use describe::describe;
pub use go_duration::{InvalidDuration, parse_go_duration};
pub use jitter::Jitter;
pub use lease::{LeaderLease, LeaseLost, LeaseSettings};
pub use logs::{LogFormat, log_lines, start_logs};
pub use maas::{MaasAccess, MaasAccessError};
pub use object_key::ObjectKey;
pub use provider::Provider;
pub use serve::{InvalidAddress, ListenError, ListenOn, Listeners};
pub use settings::{InvalidNamespace, Namespaces, Settings, WATCH_FILTER_LABEL};
pub use watches::{Change, Watch};
