//! `metalshift lab logs`.

use std::{
    fs::{self, File},
    io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _},
    path::Path,
    thread,
    time::Duration,
};

use anyhow::{Context as _, bail};
use clap::Args;
use lab::LabError;

use super::Which;
use crate::output;

/// Whose log.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,
    /// A component or a machine, as `lab status` names it; left out, the names are listed
    component: Option<String>,
    /// Go on as it grows
    #[arg(long, short)]
    follow: bool,
    /// Only the last lines
    #[arg(long, value_name = "LINES")]
    tail: Option<usize>,
}

/// Prints it.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match print(arguments) {
        // Whoever reads has seen enough.
        Err(error) if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) => Ok(()),
        printed => printed,
    }
}

fn print(arguments: &Arguments) -> anyhow::Result<()> {
    let directory = arguments.which.directory();
    let names = names(&directory.logs())?;
    if !directory.is_owned() {
        let not_up = LabError::NotUp { name: directory.name().to_string() };
        if names.is_empty() {
            return Err(not_up.into());
        }
        output::note(format!("{not_up}; this is what a killed run has left"));
    }
    let Some(component) = &arguments.component else {
        for name in names {
            output::data(name);
        }
        return Ok(());
    };
    if !names.contains(component) {
        let known = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        bail!("lab {} has no log of {component}: it has {known}", directory.name());
    }
    let path = directory.logs().join(format!("{component}.log"));
    let mut file = File::open(&path).with_context(|| format!("could not open {}", path.display()))?;
    if let Some(lines) = arguments.tail {
        skip_to_last(&mut file, lines)?;
    }
    io::copy(&mut file, &mut io::stdout())?;
    while arguments.follow && path.exists() {
        thread::sleep(Duration::from_millis(200));
        io::copy(&mut file, &mut io::stdout())?;
        io::stdout().flush()?;
    }
    Ok(())
}

fn names(logs: &Path) -> anyhow::Result<Vec<String>> {
    let entries = match fs::read_dir(logs) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(LabError::NotPermitted { what: "read", path: logs.to_owned() }.into());
        }
        entries => entries.into_iter().flatten().flatten(),
    };
    let mut names: Vec<String> = entries.filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".log")?.to_owned())).collect();
    names.sort();
    Ok(names)
}

fn skip_to_last(file: &mut File, lines: usize) -> io::Result<()> {
    let ends: Vec<u64> = {
        let mut reader = BufReader::new(&*file);
        let (mut ends, mut position, mut line) = (vec![0], 0, Vec::new());
        while reader.read_until(b'\n', &mut line)? > 0 {
            position += line.len() as u64;
            ends.push(position);
            line.clear();
        }
        ends
    };
    let start = ends[ends.len().saturating_sub(lines.saturating_add(1))];
    file.seek(SeekFrom::Start(start)).map(drop)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn the_last_lines_are_printed_however_many_are_asked_for() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"one\ntwo\nthree\n").unwrap();
        for (lines, expected) in [(0, ""), (2, "two\nthree\n"), (9, "one\ntwo\nthree\n"), (usize::MAX, "one\ntwo\nthree\n")] {
            file.rewind().unwrap();
            skip_to_last(&mut file, lines).unwrap();
            let mut rest = String::new();
            file.read_to_string(&mut rest).unwrap();
            assert_eq!(rest, expected, "{lines}");
        }
    }
}
