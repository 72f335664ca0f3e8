//! The rules about machines, as tables.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod facts;
mod life;
mod ownership;
mod table;
