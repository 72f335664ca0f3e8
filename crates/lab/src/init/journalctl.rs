//! `journalctl`: prints the log of a unit, or the console when no unit is named.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::control::{self, Request, Verb};
use super::layout::Layout;
use super::unit::UnitName;

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Question {
    units: Vec<UnitName>,
    lines: Option<usize>,
    reverse: bool,
    follow: bool,
}

/// How often a followed log is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What is shown of a log that is followed, unless a number of lines is asked for.
const LINES_BEFORE: usize = 10;

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
    match print(&question, &logs, output) {
        Ok(followed) if question.follow => follow(followed, output),
        // A reader that has seen enough (`| head`) is no error.
        Ok(_) | Err(_) => 0,
    }
}

/// Prints what is there; the logs with the place up to which they were read.
fn print(question: &Question, logs: &[PathBuf], output: &mut dyn Write) -> io::Result<Vec<Followed>> {
    let most = question.lines.or(question.follow.then_some(LINES_BEFORE));
    let mut read = Vec::new();
    for log in logs {
        let mut followed = Followed { path: log.clone(), file: None, line: String::new() };
        let mut lines: VecDeque<String> = VecDeque::new();
        followed.new_lines(|line| {
            lines.push_back(line.to_owned());
            if most.is_some_and(|most| lines.len() > most) {
                lines.pop_front();
            }
            Ok(())
        })?;
        if followed.file.is_none() && !question.follow {
            writeln!(output, "-- No entries --")?;
        }
        if question.reverse {
            lines = lines.into_iter().rev().collect();
        }
        for line in lines {
            writeln!(output, "{line}")?;
        }
        read.push(followed);
    }
    output.flush()?;
    Ok(read)
}

/// Prints what is added until nobody reads any more.
fn follow(mut logs: Vec<Followed>, output: &mut dyn Write) -> u8 {
    loop {
        for log in &mut logs {
            if log.new_lines(|line| writeln!(output, "{line}")).and_then(|()| output.flush()).is_err() {
                return 0;
            }
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// A log that grows, begins anew when it has become too long, and may not be there yet.
struct Followed {
    path: PathBuf,
    file: Option<BufReader<File>>,
    /// The beginning of a line that is not whole yet.
    line: String,
}

impl Followed {
    fn new_lines(&mut self, mut each: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
        loop {
            if self.file.is_none() {
                self.file = File::open(&self.path).ok().map(BufReader::new);
            }
            let Some(file) = &mut self.file else { return Ok(()) };
            while file.read_line(&mut self.line)? > 0 {
                if self.line.ends_with('\n') {
                    each(self.line.trim_end())?;
                    self.line.clear();
                }
            }
            let inode = |metadata: fs::Metadata| metadata.ino();
            let replaced =
                fs::metadata(&self.path).map(inode).is_ok_and(|now| file.get_ref().metadata().map(inode).is_ok_and(|read| read != now));
            if !replaced {
                return Ok(());
            }
            self.file = None;
        }
    }
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
                "-f" | "--follow" => question.follow = true,
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
    use std::sync::mpsc;

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
        assert!(asked("--vacuum-size=1G").is_err());
        assert!(asked("-u").is_err());
    }

    /// Wants three lines and no more, and tells of each.
    struct Reader {
        text: String,
        tell: mpsc::Sender<()>,
    }

    impl Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.text.lines().count() == 3 && self.text.ends_with('\n') {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.text.push_str(str::from_utf8(bytes).unwrap());
            if bytes.ends_with(b"\n") {
                self.tell.send(()).unwrap();
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_followed_log_goes_on_where_it_grows_and_where_it_begins_anew() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::at(directory.path());
        fs::create_dir_all(layout.log_directory()).unwrap();
        let log = layout.unit_log(&UnitName::parse("kubelet.service").unwrap());
        let append = |text: &str| File::options().append(true).create(true).open(&log).unwrap().write_all(text.as_bytes()).unwrap();
        append("one\n");
        let (tell, told) = mpsc::channel();
        let text = thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut reader = Reader { text: String::new(), tell };
                assert_eq!(run(&["-fu", "kubelet"].map(str::to_owned), &layout, &mut reader, &mut Vec::new()), 0);
                reader.text
            });
            told.recv().unwrap();
            append("two\n");
            told.recv().unwrap();
            fs::rename(&log, log.with_extension("log.1")).unwrap();
            append("three\n");
            told.recv().unwrap();
            append("four\n");
            reader.join().unwrap()
        });
        assert_eq!(text, "one\ntwo\nthree\n");
    }
}
