//! `metalshift lab`: brings a data centre up on this machine, shows it, and takes it down.

mod down;
mod exec;
mod kubeconfig;
mod logs;
mod maas;
mod status;
mod up;

pub use up::{prepare, start};

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};
use lab::{LabDirectory, LabName};

use crate::cli::block_on;

/// Arguments of `metalshift lab`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a lab and leave it running
    Up(up::Arguments),
    /// End a lab and remove everything of it
    Down(down::Arguments),
    /// Show what runs
    Status(status::Arguments),
    /// Print the administrator's kubeconfig
    Kubeconfig(kubeconfig::Arguments),
    /// Print what a component or a machine has printed
    Logs(logs::Arguments),
    /// Run a command inside the lab or on one of its machines
    Exec(exec::Arguments),
    /// The process behind `lab up`
    #[command(hide = true)]
    Supervise,
    /// First step of a machine's start
    #[command(hide = true)]
    MachineStart { file: PathBuf },
    /// Second step of a machine's start
    #[command(hide = true)]
    MachineSettle { file: PathBuf },
    /// Third step of a machine's start
    #[command(hide = true)]
    MachineEnter { file: PathBuf },
    /// The first process of a machine
    #[command(hide = true)]
    MachineInit,
}

/// Which lab is meant.
#[derive(Debug, Args)]
pub struct Which {
    /// Name of the lab; labs of different names run side by side
    #[arg(long, default_value_t, value_name = "NAME")]
    pub name: LabName,
}

impl Which {
    fn directory(&self) -> LabDirectory {
        LabDirectory::of(&self.name)
    }
}

/// Runs a lab command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Command::Up(arguments) => block_on(up::run(arguments)).map(|()| ExitCode::SUCCESS),
        Command::Down(arguments) => block_on(down::run(arguments)).map(|()| ExitCode::SUCCESS),
        Command::Status(arguments) => block_on(status::run(arguments)).map(|()| ExitCode::SUCCESS),
        Command::Kubeconfig(arguments) => kubeconfig::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Logs(arguments) => logs::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Exec(arguments) => exec::run(&arguments),
        Command::Supervise => {
            // Probes of components that are still starting fail by the dozen; what matters of them is in the lab's own words.
            tracing_subscriber::fmt().with_env_filter("info,kube_client=off").with_writer(std::io::stderr).with_ansi(false).init();
            lab::supervise().map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
        Command::MachineStart { file } => Err(lab::machine_start(&file).into()),
        Command::MachineSettle { file } => Err(lab::machine_settle(&file).into()),
        Command::MachineEnter { file } => Err(lab::machine_enter(&file).into()),
        Command::MachineInit => {
            // Anywhere else it would start the services of whoever typed this.
            anyhow::ensure!(std::process::id() == 1, "`lab machine-init` is the first process of a lab's machine and nothing else");
            Ok(ExitCode::from(lab::init::run(&lab::init::InitOptions::default())))
        }
    }
}

/// Runs the program as the tool of a machine it was called by, if it was.
pub fn as_part_of_a_machine() -> Option<ExitCode> {
    let mut arguments = std::env::args();
    let called = PathBuf::from(arguments.next()?);
    let name = called.file_name()?.to_str().filter(|name| lab::init::COMMANDS.contains(name))?;
    let arguments: Vec<String> = arguments.collect();
    let layout = lab::init::layout::Layout::default();
    Some(lab::init::command(name, &arguments, &layout, &mut std::io::stdout(), &mut std::io::stderr()).into())
}
