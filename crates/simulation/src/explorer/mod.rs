//! The crash explorer: the real controllers on an in-process API server and an emulated MAAS, under paused time. Every call of theirs
//! passes a wire that can kill the process before or after it, lose its answer, fail it, delay it, or carry it out late; a witness looks at
//! every call that changes something in MAAS and at what is left in the end.
//!
//! The invariants: at most one server an object and one object a server; nothing foreign touched; nothing asked for twice while the first
//! may still be carried out; no claim overwritten; no other server for an object that was handed over; no server given back twice; nothing
//! shown as provisioned and then not; nothing done for an object that is paused; no address of a pool used without its claim or after it; no
//! node removed of a machine that was handed over; no storm of calls; everything returned.

#![allow(
    clippy::print_stderr,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "test code that tells what it does: a world that cannot be made ends the test"
)]

mod address_witness;
mod call_kind;
mod claim_witness;
mod cluster_scenario;
mod dns_witness;
mod matrix;
mod node_witness;
mod people;
mod pool;
mod scenario;
mod tenure;
mod trouble;
mod wire;
mod witness;
mod world;

pub use cluster_scenario::{ClusterScenario, ClusterStory, run_cluster};
pub use matrix::Matrix;
pub use scenario::{Scenario, Story, run};
pub use trouble::{Aim, CallKind, Fate, Passing, Trouble, Troubles};
pub use witness::Violation;
pub use world::{Outcome, World};
