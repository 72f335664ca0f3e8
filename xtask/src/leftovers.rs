//! Tests leave nothing behind: looks for what labs are made of before and after a run. Used by `test`.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use anyhow::bail;

/// The variable that every process of a lab carries; its value is the lab's directory.
const MARK: &[u8] = b"METALSHIFT_LAB=";
/// What Kubernetes and containerd make on the host unless a lab tells them another place; making images is in no other check.
const USUAL_PLACES: [&str; 2] = ["/usr/libexec/kubernetes", "/opt/containerd"];
/// A lab whose owner ended without a word is cleaned up in the background, in less than this.
const GONE_WITHIN: Duration = Duration::from_secs(30);

/// Runs tests that keep their labs below `labs`, and fails if anything of a lab is there afterwards that was not there before.
pub fn none_after(labs: &Path, tests: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let before = look(labs);
    tests()?;
    wait_for_none(labs, &before, GONE_WITHIN)
}

fn wait_for_none(labs: &Path, before: &BTreeSet<String>, within: Duration) -> anyhow::Result<()> {
    let deadline = Instant::now() + within;
    loop {
        let left: Vec<String> = look(labs).difference(before).cloned().collect();
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("the tests left something behind:\n  {}", left.join("\n  "));
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Everything of labs that can be seen from here, without the labs that people have up.
fn look(labs: &Path) -> BTreeSet<String> {
    let mut seen: BTreeSet<String> = entries(labs).into_iter().map(|path| format!("files {}", path.display())).collect();
    let marked: Vec<(PathBuf, PathBuf)> = entries(Path::new("/proc"))
        .into_iter()
        .filter_map(|process| Some((mark(&fs::read(process.join("environ")).ok()?)?, process)))
        .collect();
    // Tests keep their labs where temporary files are; people do not.
    for (lab, process) in marked.iter().filter(|(lab, _)| lab.starts_with(std::env::temp_dir())) {
        let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
        seen.insert(format!("process {} ({}) of {}", process.display(), name.trim(), lab.display()));
    }
    let hierarchies = entries(Path::new("/sys/fs/cgroup"));
    let groups = hierarchies.iter().cloned().chain(hierarchies.iter().flat_map(|hierarchy| entries(hierarchy)));
    for group in groups {
        let name = group.file_name().and_then(|name| name.to_str()?.strip_prefix("metalshift-"));
        // The group of a lab that lives says no more than its processes do.
        let lives = |name: &str| marked.iter().any(|(lab, _)| is_of(name, lab));
        if name.is_some_and(|name| !lives(name)) {
            seen.insert(format!("control group {}", group.display()));
        }
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mounts = mounts.lines().filter_map(|line| line.split(' ').nth(1)).filter(|path| path.contains("metalshift"));
    seen.extend(mounts.map(|path| format!("mount {path}")));
    let links = entries(Path::new("/sys/class/net")).into_iter().map(|link| link.display().to_string());
    seen.extend(links.filter(|link| link.ends_with("/lab0") || link.contains("/machine")).map(|link| format!("network link {link}")));
    seen.extend(USUAL_PLACES.iter().filter(|place| Path::new(place).exists()).map(|place| format!("files {place}")));
    seen
}

/// Whether a control group, without the prefix of all labs, is the one of the lab in this directory: its name is the lab's, a dash and six
/// digits that tell labs of one name apart.
fn is_of(group: &str, lab: &Path) -> bool {
    let plain = group.rsplit_once('-').filter(|(_, digits)| digits.len() == 6 && digits.chars().all(|digit| digit.is_ascii_hexdigit()));
    plain.is_some_and(|(name, _)| lab.file_name().is_some_and(|lab| lab == name))
}

fn mark(environment: &[u8]) -> Option<PathBuf> {
    let value = environment.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(MARK))?;
    Some(PathBuf::from(String::from_utf8_lossy(value).into_owned()))
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn files_and_processes_of_a_lab_are_seen() {
        let labs = tempfile::tempdir().unwrap();
        let directory = labs.path().join("left");
        fs::create_dir(&directory).unwrap();
        let mut process = Command::new("sleep").arg("60").env("METALSHIFT_LAB", &directory).spawn().unwrap();
        // The new process gets its environment a moment after it begins.
        let deadline = Instant::now() + Duration::from_secs(10);
        let process_line = format!("process /proc/{} (sleep) of {}", process.id(), directory.display());
        while !look(labs.path()).contains(&process_line) {
            assert!(Instant::now() < deadline, "{process_line} is not in {:?}", look(labs.path()));
        }
        assert!(look(labs.path()).contains(&format!("files {}", directory.display())));
        process.kill().unwrap();
        process.wait().unwrap();
        assert!(!look(labs.path()).contains(&process_line));
    }

    #[test]
    fn the_group_of_a_lab_is_known_by_its_name() {
        assert!(is_of("rack-7-0a1b2c", Path::new("/labs/rack-7")));
        for other in ["rack-7", "rack-70a1b2c", "rack-0a1b2c", "rack-7-0a1b2"] {
            assert!(!is_of(other, Path::new("/labs/rack-7")), "{other}");
        }
    }

    #[test]
    fn what_was_there_before_is_not_blamed_on_the_tests() {
        let labs = tempfile::tempdir().unwrap();
        fs::create_dir(labs.path().join("old")).unwrap();
        none_after(labs.path(), || Ok(())).unwrap();
    }

    #[test]
    fn what_stays_is_named() {
        let labs = tempfile::tempdir().unwrap();
        let before = look(labs.path());
        fs::create_dir(labs.path().join("new")).unwrap();
        let error = wait_for_none(labs.path(), &before, Duration::ZERO).unwrap_err().to_string();
        assert!(error.contains(&format!("files {}/new", labs.path().display())), "{error}");
    }
}
