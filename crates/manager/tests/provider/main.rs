//! The provider on the real API server and the real Cluster API core, with an emulated MAAS. Tests are named after the scenario (`s…`)
//! and the rows of the contract (`row_…`) they show.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]
#![allow(clippy::disallowed_methods, reason = "real time and a provider in the background, as in production")]

mod account;
mod addresses;
mod audit;
mod bad_input;
mod belonging;
mod clusters;
mod create;
mod delete;
mod endpoints;
mod keep;
#[path = "../listening/mod.rs"]
mod listening;
mod log;
mod metrics;
mod rack;
#[path = "../recorded_calls/mod.rs"]
mod recorded_calls;
mod remediation;
mod rest;
mod sockets;
mod take_over;
mod wishes;
