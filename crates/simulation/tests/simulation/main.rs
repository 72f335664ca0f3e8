//! The in-process world, and the real manager in it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test ends where it fails")]

mod api_server;
mod bad_day;
mod determinism;
mod lease;
mod scenario;
