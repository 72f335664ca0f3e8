//! The manager on the real kube-apiserver; one lab serves all tests of this program.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where it fails")]

mod cluster;
mod controllers;
mod leadership;
