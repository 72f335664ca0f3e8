//! The crash explorer: the real controllers on an in-process API server and an emulated MAAS, under paused time. Every call of theirs
//! passes a [`Wire`] that can kill the process before or after it, lose its answer, fail it, or carry it out late; a witness looks at
//! every call that changes something in MAAS and at what is left in the end.
//!
//! The invariants: at most one server an object and one object a server; nothing foreign touched; nothing asked for twice while the first
//! may still be carried out; everything returned.

#![allow(
    clippy::print_stderr,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "test code that tells what it does: a world that cannot be made ends the test"
)]

mod cluster_scenario;
mod dns_witness;
mod scenario;
mod trouble;
mod wire;
mod witness;
mod world;

pub use cluster_scenario::{ClusterScenario, ClusterStory, run_cluster};
pub use scenario::{Outcome, Scenario, Story, run};
pub use trouble::{CallKind, Fate, Matrix, Trouble, Troubles};
pub use witness::Violation;
pub use world::World;
