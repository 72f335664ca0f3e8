//! The crash explorer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod clusters;
mod plain;
mod planted;
mod seeded;
mod single;
