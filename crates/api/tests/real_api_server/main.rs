//! Our kinds and the admission policy on the real kube-apiserver; one lab serves all tests of this program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod all_fields;
mod applied;
mod columns;
mod contract;
mod explained;
mod offered;
mod other_writers;
mod planted;
mod rules;
mod rules_about_changes;
mod rules_of_clusters;
mod rules_of_machines;
mod rules_of_remediations;
mod schema;
mod server;
mod templates;
