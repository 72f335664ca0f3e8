//! The provider as people install it: its image, its components for `clusterctl` and its chart, with the genuine `clusterctl` and `helm`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod chart;
mod makefile;
#[path = "../management/mod.rs"]
mod management;
mod migration;
mod namespaces;
mod pages;
mod pod;
mod reboot;
#[path = "../../../manager/tests/recorded_calls/mod.rs"]
mod recorded_calls;
mod repository;
mod rights;
mod site;
#[path = "../../../lab/tests/waiting/mod.rs"]
mod waiting;
