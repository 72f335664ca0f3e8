//! Installs what the tests need beside Rust: `packages` (Debian's, for level nodes and the tests themselves) or `programs` (Kubernetes; prints their paths).
//!
//! A program of its own, run by `cargo xtask test` and `cargo xtask bench`: it needs the crate `lab`, and the chores must work while
//! that one does not compile.

use std::io::{self, Write as _};

use lab::{
    packages,
    programs::{Program, Search, cache_directory, find_or_build},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("packages") => install_packages().await,
        Some("programs") => find_programs(),
        _ => anyhow::bail!("say what to prepare: packages or programs"),
    }
}

async fn install_packages() -> anyhow::Result<()> {
    let missing = packages::missing_for_tests();
    if missing.is_empty() {
        say("all Debian packages of level nodes and of the tests are installed");
    }
    Ok(packages::install(&missing, &mut |line| say(line), lab::interrupted()).await?)
}

fn find_programs() -> anyhow::Result<()> {
    let programs = find_or_build(&Search::from_environment(None), &Program::ALL, &mut |progress| {
        if progress.is_news() {
            say(&format!("{progress}; it is kept in {}", cache_directory().display()));
        }
    })?;
    for (program, found) in programs.iter() {
        writeln!(io::stdout(), "{}\t{}", program.name(), found.path.display())?;
    }
    Ok(())
}

fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
