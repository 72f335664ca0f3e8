//! `cargo xtask generate`: writes the files that come from the code. `test` checks that nobody has to.

mod manifests;
mod provider;
mod reference;
mod rights;
mod templates;
mod troubleshooting;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};

pub use self::provider::COMPONENTS;
use crate::{
    command::{cargo, read, repository, run as run_command},
    output::say,
};

const COMMAND_LINE: &str = "docs/reference/command-line.md";

/// A path in the repository and what belongs there.
type Page = (String, String);

/// Writes what the kinds say of themselves, then builds the program and writes what it says of itself.
pub fn run() -> anyhow::Result<()> {
    kinds()?.into_iter().try_for_each(write)?;
    run_command(&mut cargo(&["build", "--package", "metalshift"]))?;
    write(command_line(&target_directory()?.join("debug/metalshift"))?)
}

fn write((path, content): Page) -> anyhow::Result<()> {
    let file = repository().join(&path);
    if fs::read_to_string(&file).is_ok_and(|old| old == content) {
        say(format!("{path} is up to date"));
        return Ok(());
    }
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory).with_context(|| format!("could not create {}", directory.display()))?;
    }
    fs::write(&file, content).with_context(|| format!("could not write {}", file.display()))?;
    say(format!("wrote {path}"));
    Ok(())
}

/// Fails if a generated file is not what this program would write.
pub fn check(program: &Path) -> anyhow::Result<()> {
    let mut pages = kinds()?;
    pages.push(command_line(program)?);
    for (path, content) in &pages {
        if fs::read_to_string(repository().join(path)).unwrap_or_default() != *content {
            bail!("{path} is out of date: run `cargo xtask generate`");
        }
    }
    for file in files_in(&[manifests::KINDS, manifests::ADMISSION])? {
        if !pages.iter().any(|(path, _)| *path == file) {
            bail!("{file} comes from nothing: remove it");
        }
    }
    Ok(())
}

/// Where cargo puts what it builds.
pub fn target_directory() -> anyhow::Result<PathBuf> {
    let text = read(&mut cargo(&["metadata", "--no-deps", "--format-version=1"]))?;
    let workspace: serde_json::Value = serde_json::from_str(&text).context("could not read what cargo says of the workspace")?;
    workspace["target_directory"].as_str().map(PathBuf::from).context("cargo does not say where it builds")
}

/// Every file in directories of the repository that hold nothing but generated ones.
fn files_in(directories: &[&str]) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    for directory in directories {
        let entries = fs::read_dir(repository().join(directory)).with_context(|| format!("could not read {directory}"))?;
        for entry in entries {
            files.push(format!("{directory}/{}", entry?.file_name().display()));
        }
    }
    Ok(files)
}

/// Manifests and pages of the kinds and their rules.
fn kinds() -> anyhow::Result<Vec<Page>> {
    let definitions = api::definitions();
    let kinds = manifests::kinds(&definitions)?;
    let admission = manifests::admission()?;
    let mut pages = provider::files(env!("CARGO_PKG_VERSION"), &kinds, &admission)?;
    pages.extend(kinds.into_iter().chain(admission));
    pages.extend(definitions.iter().filter_map(reference::page));
    pages.push(troubleshooting::page());
    pages.push(templates::ephemeral()?);
    Ok(pages)
}

/// The page of the command line.
fn command_line(program: &Path) -> anyhow::Result<Page> {
    let mut page = "<!-- Written by `cargo xtask generate` from the program's own help; changes made here are lost. -->\n\n\
                    # Command line\n\nData goes to standard output, progress to standard error. \
                    Exit code 1 means that it failed, 2 that it was called wrongly.\n"
        .to_owned();
    describe(program, &[], &mut page)?;
    Ok((COMMAND_LINE.to_owned(), page))
}

/// A section for a command and, after it, for each of its commands.
fn describe(program: &Path, words: &[&str], page: &mut String) -> anyhow::Result<()> {
    // Help shows the values of variables and follows the width of the terminal: neither belongs in a file.
    let help = read(Command::new(program).args(words).arg("--help").env_clear().stdin(std::process::Stdio::null()))?;
    let title = ["metalshift"].iter().chain(words).copied().collect::<Vec<_>>().join(" ");
    page.extend(["\n## ", &title, "\n\n```text\n", help.trim_end(), "\n```\n"]);
    commands(&help).into_iter().try_for_each(|command| describe(program, &[words, &[command]].concat(), page))
}

/// The names in the part "Commands:" of a help text; lines that go on from the line before are indented further.
fn commands(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_from_help_and_nothing_else_is() {
        let help = "About it\n\nUsage: x <COMMAND>\n\nCommands:\n  up      Start\n          and go on\n  status  Show\n  help    Print this\n\n\
                    Options:\n  -h, --help  Print help\n";
        assert_eq!(commands(help), ["up", "status"]);
        assert!(commands("Usage: x\n\nOptions:\n  -h, --help  Print help\n").is_empty());
    }
}
