//! The view of workload clusters: on simulated API servers under paused time, and once on a real one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod availability;
mod kubeconfigs;
mod left_nodes;
mod machines;
mod many;
mod naming;
mod nodes;
mod orphans;
mod real_api_server;
mod scene;
mod world;
