//! The controller of `MaasRemediation`s beside that of MaasMachines, on an emulated MAAS and an in-process API server, under paused time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod deaths;
mod life;
mod world;
