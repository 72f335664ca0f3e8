//! `metalshift lab kubeconfig`.

use std::{fs, io::ErrorKind};

use clap::Args;
use lab::LabError;

use super::Which;
use crate::output;

/// Whose kubeconfig.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,
    /// Print the file's path instead of its content
    #[arg(long)]
    path: bool,
}

/// Prints it.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let directory = arguments.which.directory();
    let file = directory.kubeconfig();
    if !directory.is_owned() || !file.exists() {
        return Err(directory.not_up().into());
    }
    if arguments.path {
        output::data(file.display().to_string());
    } else {
        let content = fs::read_to_string(&file).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => anyhow::Error::from(LabError::NotPermitted { what: "read", path: file.clone() }),
            _ => anyhow::Error::from(error).context(format!("could not read {}", file.display())),
        })?;
        output::data(content.trim_end());
    }
    Ok(())
}
