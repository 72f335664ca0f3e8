//! The controller of MaasClusters on an emulated MAAS and an in-process API server, under paused time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod attempts;
mod end;
mod endpoint;
mod foreign_names;
#[path = "../listening/mod.rs"]
mod listening;
mod log;
mod members;
mod networks;
mod outage;
mod troubles;
mod vips_of_two;
mod with_machines;
mod world;
mod zones;
