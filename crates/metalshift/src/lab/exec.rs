//! `metalshift lab exec`.

use std::{ffi::OsString, os::unix::process::CommandExt as _, process::ExitCode};

use anyhow::Context as _;
use clap::Args;
use lab::Control;

use super::Which;
use crate::cli::block_on;

/// What to run where.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,
    /// The machine to run it on; left out, it runs beside the control plane
    #[arg(long, short)]
    machine: Option<String>,
    /// The command and its arguments, after `--`
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Becomes the command; returns only if that fails.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let control = Control::of(&arguments.which.directory());
    let mut command = block_on(async { Ok(control.enter(arguments.machine.as_deref()).await?) })?;
    let error = command.args(&arguments.command).exec();
    Err(error).with_context(|| format!("could not run {}", command.get_program().to_string_lossy()))
}
