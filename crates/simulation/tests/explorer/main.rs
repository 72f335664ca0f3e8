//! The crash explorer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod aimed;
mod clusters;
mod everything;
mod explore;
mod kinds;
mod pauses;
mod plain;
mod planted;

/// Thousands of runs make and drop small things all the time.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;
