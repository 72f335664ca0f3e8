//! `metalshift`: the controllers, the command line and the lab in one program.

mod cli;
mod demo;
mod emulator;
mod fleet_file;
mod lab;
mod maas_key;
mod manage;
mod output;
mod rack;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    // Inside a machine of the lab the program stands in for parts of systemd under their names.
    if let Some(status) = lab::as_part_of_a_machine() {
        return status;
    }
    match cli::Cli::parse().run() {
        Ok(status) => status,
        Err(error) => output::failure(&error),
    }
}
