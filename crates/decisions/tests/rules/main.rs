//! Every rule, as tables, and the rows of Cluster API's contract that rules alone can show.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod address;
mod cluster;
mod go_provider;
mod machine;
mod nodes;
mod reasons;
mod remediation;
mod rows;
