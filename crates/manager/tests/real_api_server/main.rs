//! The manager on the real kube-apiserver; one lab serves all tests of this program.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where it fails")]
#![allow(clippy::disallowed_methods, reason = "tests run managers in the background in real time")]

mod cluster;
mod controllers;
mod leadership;
mod leftover_webhooks;
#[path = "../listening/mod.rs"]
mod listening;
mod log;
