//! The words of the command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{demo, emulator, lab, manage};

/// Kubernetes on the metal of a MAAS.
#[derive(Debug, Parser)]
#[command(name = "metalshift", version, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// See it work on this machine: a MAAS, a real cluster, a bad server, a killed provider, and nothing left at the end
    Demo(demo::Arguments),
    /// A data centre on this machine: real Kubernetes, Cluster API and machines
    Lab(lab::Arguments),
    /// A MAAS in one process: machines, names and addresses that exist only here
    Emulator(emulator::Arguments),
    /// Run the controllers
    #[command(alias = "manager", args_override_self = true)]
    Manage(Box<manage::ManageArgs>),
}

impl Cli {
    /// Does what was asked for.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Demo(arguments) => block_on(demo::run(arguments)),
            Command::Lab(arguments) => lab::run(arguments),
            Command::Emulator(arguments) => block_on(emulator::run(arguments)).map(|()| ExitCode::SUCCESS),
            Command::Manage(arguments) => block_on(manage::run(*arguments)).map(|()| ExitCode::SUCCESS),
        }
    }
}

/// Runs a command that talks to others on a runtime of its own.
pub fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(work);
    // Who was interrupted does not wait for what runs in the background, such as a build.
    runtime.shutdown_background();
    outcome
}
