//! Runs a short command of the operating system and turns its refusal into a sentence.

use std::{
    ffi::OsStr,
    io::Write as _,
    process::{Command, Output, Stdio},
};

use crate::LabError;

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
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let line = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ");
    let fail = |words: String| LabError::Command { command: line.clone(), words };
    let mut child = command.spawn().map_err(|error| fail(error.to_string()))?;
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
