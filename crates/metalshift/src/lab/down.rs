//! `metalshift lab down`.

use clap::Args;
use lab::{LabDirectory, background};

use super::Which;
use crate::output;

/// Which labs to end.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,
    /// End every lab, and remove what killed ones left
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

/// Ends them.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let labs = if arguments.all { LabDirectory::all() } else { vec![arguments.which.directory()] };
    let mut failures = Vec::new();
    for directory in &labs {
        match background::down(directory).await {
            Ok(true) => output::note(format!("lab {} is gone", directory.name())),
            Ok(false) => output::note(format!("there is no lab {}", directory.name())),
            Err(failure) => failures.push(failure.to_string()),
        }
    }
    if labs.is_empty() {
        output::note("there are no labs");
    }
    anyhow::ensure!(failures.is_empty(), failures.join("\nerror: "));
    Ok(())
}
