//! Every rule, as tables, and the rows of Cluster API's contract that rules alone can show.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod address;
mod cluster;
mod machine;
mod remediation;
mod rows;
