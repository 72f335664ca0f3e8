//! `cargo xtask`: chores of the repository, one file a command.

mod arrows;
mod bench;
mod build;
mod command;
mod cores;
mod fuzz;
mod generate;
mod image;
mod lanes;
mod leftovers;
mod nobody;
mod output;
mod release;
mod replay;
mod rows;
mod steps;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chores of the repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check and test everything; installs what it needs and says what it installs
    Test(test::Arguments),
    /// Write the files that are generated from the code
    Generate,
    /// Measure
    #[command(subcommand)]
    Bench(bench::Command),
    /// Run the provider's tests on other releases of Cluster API
    Cores(cores::Arguments),
    /// Throw nonsense at the emulated MAAS until it panics, or does not
    Fuzz(fuzz::Arguments),
    /// Hold the emulated MAAS to recordings of a real one
    Replay(replay::Arguments),
    /// Build the program as an OCI image archive, without a daemon
    Image(image::Arguments),
    /// Write a repository on disk that clusterctl installs the provider from
    Release(release::Arguments),
    /// Say which test shows which row of Cluster API's contract and which scenario
    Rows,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Test(arguments) => test::run(&arguments),
        Command::Generate => generate::run(),
        Command::Bench(command) => bench::run(&command),
        Command::Cores(arguments) => cores::run(&arguments),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Image(arguments) => image::run(&arguments),
        Command::Release(arguments) => release::run(&arguments),
        Command::Rows => rows::run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::say(format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
