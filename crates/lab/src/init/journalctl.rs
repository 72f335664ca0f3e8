//! `journalctl`: prints the log of a unit, or the console when no unit is named.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;

use super::control::{self, Request, Verb};
use super::layout::Layout;
use super::unit::UnitName;

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Question {
    units: Vec<UnitName>,
    lines: Option<usize>,
    reverse: bool,
}

/// Runs it; the value is its exit status.
pub fn run(arguments: &[String], layout: &Layout, output: &mut dyn Write, errors: &mut dyn Write) -> u8 {
    let question = match read(arguments) {
        Ok(question) => question,
        Err(complaint) => {
            let _ = writeln!(errors, "journalctl: {complaint}");
            let verb = Verb::Say(format!("journalctl: {complaint}"));
            let _ = control::ask(layout, &Request { verb, units: Vec::new(), no_block: false });
            return 1;
        }
    };
    let logs: Vec<PathBuf> = if question.units.is_empty() {
        vec![layout.log_directory().join("init.log")]
    } else {
        question.units.iter().map(|unit| layout.unit_log(unit)).collect()
    };
    for log in logs {
        let Ok(file) = File::open(&log) else {
            let _ = writeln!(output, "-- No entries --");
            continue;
        };
        let mut lines: VecDeque<String> = VecDeque::new();
        for line in BufReader::new(file).lines().map_while(Result::ok) {
            lines.push_back(line);
            if question.lines.is_some_and(|most| lines.len() > most) {
                lines.pop_front();
            }
        }
        if question.reverse {
            lines = lines.into_iter().rev().collect();
        }
        for line in lines {
            if writeln!(output, "{line}").is_err() {
                return 0;
            }
        }
    }
    0
}

fn read(arguments: &[String]) -> Result<Question, String> {
    let mut question = Question::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let (option, mut value) = match argument.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option.to_owned(), Some(value.to_owned())),
            _ => (argument.clone(), None),
        };
        let flags: Vec<String> = match option.strip_prefix('-') {
            Some(letters) if !letters.starts_with('-') && !letters.is_empty() => split_letters(letters, &mut value),
            _ => vec![option],
        };
        for flag in flags {
            let mut wanted = || value.take().or_else(|| rest.next().cloned()).ok_or_else(|| format!("{flag} needs a value"));
            match flag.as_str() {
                "-u" | "--unit" => question.units.push(UnitName::from_argument(&wanted()?).map_err(|error| error.to_string())?),
                "-n" | "--lines" => {
                    let value = wanted()?;
                    question.lines = value.parse().ok();
                }
                "-r" | "--reverse" => question.reverse = true,
                "-e" | "--pager-end" => question.lines = question.lines.or(Some(1_000)),
                "-o" | "--output" | "-p" | "--priority" | "-S" | "--since" => {
                    let value = wanted()?;
                    if !["short", "cat", "short-iso", "short-precise"].contains(&value.as_str()) {
                        return Err(format!("{flag} {value} is not known here"));
                    }
                }
                "-x" | "--catalog" | "-b" | "--boot" | "-a" | "--all" | "-l" | "--full" | "-q" | "--quiet" | "--no-pager"
                | "--no-hostname" | "--system" | "--flush" | "--sync" => {}
                other => return Err(format!("option {other} is not known here")),
            }
        }
    }
    Ok(question)
}

/// `-xeu kubelet`, `-n20`: letters one by one; a letter with a value takes what is left.
fn split_letters(letters: &str, value: &mut Option<String>) -> Vec<String> {
    let mut flags = Vec::new();
    for (index, letter) in letters.char_indices() {
        flags.push(format!("-{letter}"));
        let left = &letters[index + 1..];
        if ['u', 'n', 'o', 'p', 'S'].contains(&letter) && !left.is_empty() {
            *value = Some(left.to_owned());
            break;
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Result<Question, String> {
        read(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_advice_of_kubeadm_works() {
        let question = asked("-xeu kubelet").unwrap();
        assert_eq!(question.units, [UnitName::parse("kubelet.service").unwrap()]);
        assert_eq!(asked("-u kubelet -n 20 --no-pager").unwrap().lines, Some(20));
        assert_eq!(asked("--unit=a -n5").unwrap().lines, Some(5));
    }

    #[test]
    fn options_without_effect_are_refused() {
        assert!(asked("--follow").is_err());
        assert!(asked("-u").is_err());
    }
}
