//! Access to MAAS, on emulated MAASes and an in-process API server under paused time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod breaker;
mod catalogue;
mod credentials;
mod failures;
mod feed;
mod rotation;
mod scene;
mod secrecy;
mod world;
