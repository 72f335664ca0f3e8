//! Clusters for real: `clusterctl` makes them of our templates, the Cluster API managers and kubeadm are genuine, the machines boot. Only
//! MAAS is emulated. At the end of each test MAAS has everything back.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod another_key;
mod classes;
mod day_two;
mod endpoints;
#[path = "../management/mod.rs"]
mod management;
mod pod;
#[path = "../../../manager/tests/recorded_calls/mod.rs"]
mod recorded_calls;
mod remediation;
mod stage;
mod trouble;
mod variables;
#[path = "../../../lab/tests/waiting/mod.rs"]
mod waiting;
