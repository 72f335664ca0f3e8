//! Access to MAAS: whose key counts for an object, one client and one event feed per MAAS and user, and what protects a MAAS that is down.
//!
//! Controllers ask [`MaasAccounts::of`] at the beginning of every reconcile and use the [`Account`] they get until its end: so a rotated
//! key is picked up, and a MAAS that does not answer is a value and no surprise. [`MaasAccounts::follow`] runs as a task of the leader; it
//! turns events of machines into pokes of the objects that watch them.
//!
//! ```text
//! Secret, environment ─► credentials ─► connection ─► account ─► catalogue, recent failures
//!                                        │ guard: breaker, metrics   └► feed ─► pokes
//!                                        └► transport
//! ```

mod account;
mod account_error;
mod accounts;
mod breaker;
mod catalogue;
mod certificate;
mod connect;
mod connection;
mod credentials;
mod environment;
mod failed_deployments;
mod feed;
mod fresh;
mod guard;
mod metrics;
mod operation;
mod secrets;
mod subnets;
mod watched;

pub use account::Account;
pub use account_error::{AccountError, CredentialsPlace};
pub use accounts::MaasAccounts;
pub use connect::{Connect, over_the_network};
pub use credentials::{Credentials, DEFAULT_SECRET};
pub use environment::{MaasAccess, MaasAccessError};
pub use failed_deployments::FailedDeployment;
pub use metrics::MaasMetrics;
pub use subnets::subnet_called;
