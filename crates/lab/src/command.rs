//! Runs a short command of the operating system and turns its refusal into a sentence.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Write as _},
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use crate::{LabError, init::process::SEARCH_PATH};

/// Where commands are looked for: where the caller looks, and then in the places of Debian, of which a person who became root with
/// plain `su` misses some. Everything the lab starts gets it.
pub(crate) fn search_path() -> OsString {
    let own = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&own).filter(|place| !place.as_os_str().is_empty()).collect();
    for place in std::env::split_paths(SEARCH_PATH) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    // Only a colon cannot be part of a place, and these were separated by colons.
    std::env::join_paths(places).unwrap_or(own)
}

/// Fails if one of these commands is not there.
pub(crate) fn require(programs: &[&str]) -> Result<(), LabError> {
    let path = search_path();
    let is_there = |program: &&str| std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    match programs.iter().find(|program| !is_there(program)) {
        Some(missing) => Err(LabError::start(missing)(io::ErrorKind::NotFound.into())),
        None => Ok(()),
    }
}

/// Runs `program` to its end; what it printed on standard output.
pub(crate) fn run<A: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = A>) -> Result<String, LabError> {
    run_with_input(program, arguments, "")
}

/// The same, with a text on its standard input.
pub(crate) fn run_with_input<A: AsRef<OsStr>>(
    program: &str,
    arguments: impl IntoIterator<Item = A>,
    input: &str,
) -> Result<String, LabError> {
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", search_path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let line = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ");
    let fail = |words: String| LabError::Command { command: line.clone(), words };
    let mut child = command.spawn().map_err(LabError::start(program))?;
    if let Some(mut pipe) = child.stdin.take() {
        // A command that does not read its input says in its exit status what it thinks of it.
        let _ = pipe.write_all(input.as_bytes());
    }
    let Output { status, stdout, stderr } = child.wait_with_output().map_err(|error| fail(error.to_string()))?;
    if status.success() {
        Ok(String::from_utf8_lossy(&stdout).into_owned())
    } else {
        let words = String::from_utf8_lossy(&stderr).trim().to_owned();
        Err(fail(if words.is_empty() { status.to_string() } else { words }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_where_debian_has_them_and_missing_ones_are_named() {
        let path = search_path();
        let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
        assert!(["/usr/sbin", "/usr/bin", "/sbin", "/bin"].iter().all(|place| places.contains(&PathBuf::from(place))), "{places:?}");
        require(&["setpriv", "sh"]).unwrap();
        let said = require(&["sh", "no-such-command"]).expect_err("a missing command").to_string();
        assert!(said.starts_with("no-such-command is not installed"), "{said}");
    }
}
