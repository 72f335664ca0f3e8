//! The clusters that run on our machines: whether their API servers answer, and their nodes.
//!
//! Controllers ask [`Workload`]; all answers come from memory. Asking makes a Cluster followed: [`Workload::follow`] runs as a task of the
//! leader, connects with the kubeconfig that Cluster API keeps in a Secret, and holds one watch of nodes per Cluster. That watch is at once
//! the view of the nodes and the sign of life of the API server, so nothing is polled.
//!
//! ```text
//! Secret <cluster>-kubeconfig ─► connect ─► follower: list, watch ─► followed: state, nodes ─► pokes
//!                                                                     └► answers to controllers
//! ```

mod clusters;
mod connect;
mod followed;
mod follower;
mod kubeconfig;
mod label;
mod naming;
mod node;
mod removal;
mod watchers;

pub use clusters::{Host, Workload};
pub use connect::{ConnectWorkload, UnusableKubeconfig, over_the_network};
pub use followed::ApiServerState;
