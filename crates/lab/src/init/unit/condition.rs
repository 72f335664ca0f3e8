//! `Condition…=` and `Assert…=`: tests a unit makes before it starts.

use std::fs;
use std::path::Path;

/// One test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// `PathExists`, `FileNotEmpty`, …
    pub test: String,
    /// `|`: enough that one of these holds.
    pub triggering: bool,
    /// `!`.
    pub negated: bool,
    /// What is tested.
    pub argument: String,
}

/// Facts of the machine that conditions ask for.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// Whether this instance boots for the first time.
    pub first_boot: bool,
}

/// Tests this machine can make.
pub const KNOWN: [&str; 13] = [
    "PathExists",
    "PathExistsGlob",
    "PathIsDirectory",
    "PathIsSymbolicLink",
    "PathIsMountPoint",
    "DirectoryNotEmpty",
    "FileNotEmpty",
    "FileIsExecutable",
    "FirstBoot",
    "Host",
    "User",
    "Virtualization",
    "Architecture",
];

impl Condition {
    /// Reads the value of a condition.
    pub fn parse(test: &str, value: &str) -> Self {
        let (triggering, rest) = value.strip_prefix('|').map_or((false, value), |rest| (true, rest.trim_start()));
        let (negated, rest) = rest.strip_prefix('!').map_or((false, rest), |rest| (true, rest.trim_start()));
        Self { test: test.to_owned(), triggering, negated, argument: rest.to_owned() }
    }

    fn holds(&self, facts: Facts) -> bool {
        let path = Path::new(&self.argument);
        let result = match self.test.as_str() {
            "PathExists" => path.exists(),
            "PathExistsGlob" => any_path_like(&self.argument),
            "PathIsDirectory" => path.is_dir(),
            "PathIsSymbolicLink" => path.is_symlink(),
            "PathIsMountPoint" => is_mount_point(path),
            "DirectoryNotEmpty" => fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()),
            "FileNotEmpty" => fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0),
            "FileIsExecutable" => is_executable(path),
            "FirstBoot" => truth(&self.argument) == Some(facts.first_boot),
            "Host" => fs::read_to_string("/proc/sys/kernel/hostname").is_ok_and(|name| glob(&self.argument, name.trim())),
            "User" => ["root", "0", "@system"].contains(&self.argument.as_str()),
            "Virtualization" => matches!(self.argument.as_str(), "yes" | "true" | "container" | "1"),
            "Architecture" => self.argument.replace('-', "_") == std::env::consts::ARCH,
            // Not in KNOWN: named when the unit was loaded, and then it must not keep the unit from starting.
            _ => return true,
        };
        result != self.negated
    }
}

/// The first condition that keeps a unit from starting.
pub fn unmet(conditions: &[Condition], facts: Facts) -> Option<&Condition> {
    let plain = conditions.iter().find(|condition| !condition.triggering && !condition.holds(facts));
    let triggers = || conditions.iter().filter(|condition| condition.triggering);
    let no_trigger = triggers().next().filter(|_| !triggers().any(|condition| condition.holds(facts)));
    plain.or(no_trigger)
}

/// The truth values of unit files.
pub fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "y" | "true" | "t" | "on" => Some(true),
        "0" | "no" | "n" | "false" | "f" | "off" => Some(false),
        _ => None,
    }
}

/// Shell patterns with `*` and `?`.
pub fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let mut row = vec![false; text.len() + 1];
    row[0] = true;
    for symbol in pattern {
        let mut next = vec![false; text.len() + 1];
        next[0] = row[0] && symbol == '*';
        for (index, character) in text.iter().enumerate() {
            next[index + 1] = match symbol {
                '*' => next[index] || row[index + 1],
                '?' => row[index],
                _ => row[index] && symbol == *character,
            };
        }
        row = next;
    }
    row[text.len()]
}

fn any_path_like(pattern: &str) -> bool {
    let path = Path::new(pattern);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else { return false };
    fs::read_dir(parent).is_ok_and(|entries| entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(|file| glob(name, file))))
}

fn is_mount_point(path: &Path) -> bool {
    let wanted = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(4).is_some_and(|point| Path::new(point) == wanted))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: Facts = Facts { first_boot: true };

    fn holds(test: &str, value: &str) -> bool {
        unmet(&[Condition::parse(test, value)], FACTS).is_none()
    }

    #[test]
    fn paths_are_tested_and_can_be_negated() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        assert!(holds("PathExists", path) && !holds("PathExists", &format!("!{path}")));
        assert!(!holds("FileNotEmpty", path) && holds("FileNotEmpty", &format!("!{path}")));
        assert!(holds("PathExistsGlob", &format!("{}*", &path[..path.len() - 2])));
        assert!(holds("FirstBoot", "yes") && !holds("FirstBoot", "no"));
    }

    #[test]
    fn of_triggering_conditions_one_is_enough() {
        let some = [Condition::parse("PathExists", "|/nowhere"), Condition::parse("PathExists", "|/")];
        assert_eq!(unmet(&some, FACTS), None);
        assert_eq!(unmet(&some[..1], FACTS), Some(&some[0]));
    }

    #[test]
    fn patterns_match_whole_texts() {
        assert!(glob("m*-?.lab", "machine-1.lab") && glob("*", "") && !glob("m?", "m") && !glob("a*b", "abc"));
    }
}
