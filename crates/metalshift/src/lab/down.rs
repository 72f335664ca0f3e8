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
    for directory in &labs {
        let ended = background::down(directory).await?;
        output::note(if ended { format!("lab {} is gone", directory.name()) } else { format!("there is no lab {}", directory.name()) });
    }
    if labs.is_empty() {
        output::note("there are no labs");
    }
    Ok(())
}
