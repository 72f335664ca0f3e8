//! `cargo xtask bench`: figures, not tests. A run fails where there is a target and it is missed.

mod emulator;
mod lab;

use clap::Subcommand;

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// How long a lab takes from no process until it is of use
    Lab(lab::Arguments),
    /// How fast the emulated MAAS answers with ten thousand machines in it
    Emulator(emulator::Arguments),
}

/// Measures.
pub fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Lab(arguments) => lab::run(arguments),
        Command::Emulator(arguments) => emulator::run(arguments),
    }
}
