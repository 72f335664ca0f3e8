//! What systemd's own small programs read early in a boot: the machine's name, kernel parameters, modules, temporary files, mounts. A
//! machine's init applies what a machine can have of its own and names the rest on the console. Only files of the machine count: its
//! image hides those of the host.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use super::{Boot, unread};
use crate::init::{layout::Layout, unit::condition::glob};

/// What systemd's own programs apply: the directory of the settings, and the program with its arguments. Users come first, because the
/// files may be theirs.
const APPLIED_BY_SYSTEMD: [(&str, &str, &[&str]); 2] =
    [("sysusers.d", "/usr/bin/systemd-sysusers", &[]), ("tmpfiles.d", "/usr/bin/systemd-tmpfiles", &["--create", "--remove", "--boot"])];

/// Applies everything; what has no effect is on the console. Called again after an agent wrote files, it applies what is new.
pub fn apply(boot: &Boot<'_>) {
    let (layout, console) = (&boot.supervisor.layout, &boot.supervisor.console);
    let mut lines = kernel_parameters(layout);
    if let Err(error) = set_name(layout) {
        lines.push(format!("/etc/hostname has no effect: {error}"));
    }
    for line in &lines {
        console.say_once(line);
    }
    name_vain(boot);
    for (directory, program, options) in APPLIED_BY_SYSTEMD {
        let new: Vec<String> = {
            let mut applied = boot.applied.lock().unwrap_or_else(PoisonError::into_inner);
            let new = files(layout, OF_THE_MACHINE, directory).into_iter().filter(|path| applied.insert(path.clone()));
            new.map(|path| path.display().to_string()).collect()
        };
        if new.is_empty() {
            continue;
        }
        let arguments: Vec<&str> = options.iter().copied().chain(new.iter().map(String::as_str)).collect();
        let tag = directory.trim_end_matches(".d");
        match boot.run(tag, program, &arguments, &[]) {
            Ok(exit) if exit.success() => {}
            Ok(exit) => console.say(&format!("systemd-{tag} ended with {exit}: some of {} has no effect", new.join(", "))),
            Err(error) => console.say(&format!("{} has no effect: cannot run {program}: {error}", new.join(", "))),
        }
    }
}

/// Names what has no effect in a machine of the lab; once each, however often it is asked to.
pub fn name_vain(boot: &Boot<'_>) {
    let layout = &boot.supervisor.layout;
    for line in [modules(layout), mounts(layout), unread::vain(layout)].concat() {
        boot.supervisor.console.say_once(&line);
    }
}

/// The name of the machine is what its disk says. A machine in a directory has none of its own.
fn set_name(layout: &Layout) -> io::Result<()> {
    let name = fs::read_to_string(layout.path("/etc/hostname")).unwrap_or_default();
    let name = name.trim();
    let current = rustix::system::uname();
    if layout.root() != Path::new("/") || name.is_empty() || current.nodename().to_bytes() == name.as_bytes() {
        return Ok(());
    }
    rustix::system::sethostname(name.as_bytes()).map_err(Into::into)
}

/// Where a machine has files of settings. One in the first hides its namesakes in the others.
const OF_THE_MACHINE: &[&str] = &["/etc", "/run"];
/// The same for settings of which nothing of the host is there either: its image hides those that came with Debian's packages.
const ALSO_OF_PACKAGES: &[&str] = &["/etc", "/run", "/usr/local/lib", "/usr/lib"];

/// The files of this name in these directories in the order of their names.
fn files(layout: &Layout, directories: &[&str], name: &str) -> Vec<PathBuf> {
    let mut files = std::collections::BTreeMap::new();
    for directory in directories {
        let entries = fs::read_dir(layout.path(directory).join(name)).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "conf")) {
            files.entry(entry.file_name()).or_insert_with(|| entry.path());
        }
    }
    files.into_values().collect()
}

/// A line of sysctl.d.
#[derive(Debug, PartialEq, Eq)]
struct Parameter {
    /// Below /proc/sys; parts may be patterns.
    path: String,
    value: String,
    /// Nobody minds if it cannot be set.
    optional: bool,
}

fn parameters(text: &str) -> Vec<Parameter> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    lines
        .filter_map(|line| {
            let (key, value) = line.split_once('=')?;
            let (key, optional) = key.trim().strip_prefix('-').map_or((key.trim(), false), |key| (key.trim(), true));
            // A name with dots may have slashes inside of its parts, and the other way round.
            let dotted = key.find(['.', '/']).is_some_and(|first| key.as_bytes()[first] == b'.');
            let swap = |letter| match letter {
                '.' => '/',
                '/' => '.',
                other => other,
            };
            let path = if dotted { key.chars().map(swap).collect() } else { key.to_owned() };
            Some(Parameter { path, value: value.trim().to_owned(), optional })
        })
        .collect()
}

/// Sets the parameters of the machine's network; a sentence for each other one that differs from what is wanted.
fn kernel_parameters(layout: &Layout) -> Vec<String> {
    let root = layout.path("/proc/sys");
    let mut said = Vec::new();
    for file in files(layout, ALSO_OF_PACKAGES, "sysctl.d").into_iter().chain([layout.path("/etc/sysctl.conf")]) {
        for Parameter { path, value, optional } in parameters(&fs::read_to_string(&file).unwrap_or_default()) {
            let found = matching(&root, &path);
            let refused = found.iter().any(|found| {
                let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
                fs::write(found, &value).is_err() && fs::read_to_string(found).map_or(true, |now| words(&now) != words(&value))
            });
            let why = match (found.is_empty(), path.starts_with("net/")) {
                (true, _) => "this kernel has no such parameter in a machine",
                (false, true) => "the kernel refused this value",
                (false, false) => "parameters outside the network are the host's",
            };
            if !optional && (refused || found.is_empty()) {
                let file = Path::new("/").join(file.strip_prefix(layout.root()).unwrap_or(&file));
                said.push(format!("{} = {value} in {} has no effect: {why}", path.replace('/', "."), file.display()));
            }
        }
    }
    said
}

fn matching(directory: &Path, path: &str) -> Vec<PathBuf> {
    let (first, rest) = path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let here: Vec<PathBuf> = if first.contains(['*', '?', '[']) {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| glob(first, name))).map(|entry| entry.path()).collect()
    } else {
        [directory.join(first)].into_iter().filter(|path| path.exists()).collect()
    };
    match rest {
        Some(rest) => here.iter().flat_map(|directory| matching(directory, rest)).collect(),
        None => here,
    }
}

/// Modules the kernel does not have: the kernel is the host's, and so are its modules.
fn modules(layout: &Layout) -> Vec<String> {
    let release = rustix::system::uname();
    let built_in = format!("/lib/modules/{}/modules.builtin", release.release().to_string_lossy());
    let built_in = fs::read_to_string(layout.path(&built_in)).unwrap_or_default().replace('-', "_");
    let is_there = |module: &str| {
        let module = module.replace('-', "_");
        layout.path("/sys/module").join(&module).exists() || built_in.lines().any(|line| line.ends_with(&format!("/{module}.ko")))
    };
    files(layout, ALSO_OF_PACKAGES, "modules-load.d")
        .iter()
        .chain([&layout.path("/etc/modules")])
        .flat_map(|file| lines_of(file))
        .filter(|module| !is_there(module))
        .map(|module| {
            format!("module {module} of modules-load.d is not loaded: the kernel is the host's, so run `modprobe {module}` there")
        })
        .collect()
}

/// What /etc/fstab wants mounted.
fn mounts(layout: &Layout) -> Vec<String> {
    let lines = lines_of(&layout.path("/etc/fstab"));
    let targets = lines.iter().filter_map(|line| line.split_whitespace().nth(1).map(|target| (line, target)));
    targets
        .map(|(line, target)| {
            let device = line.split_whitespace().next().unwrap_or_default();
            format!("{device} of /etc/fstab is not mounted at {target}: this machine has no disks but its own")
        })
        .collect()
}

fn lines_of(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine_with(files: &[(&str, &str)]) -> (tempfile::TempDir, Layout) {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::at(directory.path());
        for (path, text) in files {
            let path = layout.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        (directory, layout)
    }

    #[test]
    fn names_of_parameters_are_written_in_two_ways() {
        let read = parameters("# x\nnet.ipv4.conf.eth0/1.rp_filter = 2\n-net/ipv4/conf/eth0.1/x=3\nnonsense\n");
        let parameter = |path: &str, value: &str, optional| Parameter { path: path.to_owned(), value: value.to_owned(), optional };
        assert_eq!(read, [parameter("net/ipv4/conf/eth0.1/rp_filter", "2", false), parameter("net/ipv4/conf/eth0.1/x", "3", true)]);
    }

    #[test]
    fn parameters_are_set_where_they_can_be_and_named_where_not() {
        let (_directory, layout) = machine_with(&[
            ("/proc/sys/net/ipv4/conf/a/rp_filter", "0"),
            ("/proc/sys/net/ipv4/conf/b/rp_filter", "0"),
            ("/etc/sysctl.d/10-a.conf", "net.ipv4.conf.*.rp_filter = 2\nkernel.nothing = 1\n-kernel.optional = 1\n"),
        ]);
        let said = kernel_parameters(&layout);
        for link in ["a", "b"] {
            assert_eq!(fs::read_to_string(layout.path(&format!("/proc/sys/net/ipv4/conf/{link}/rp_filter"))).unwrap(), "2");
        }
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("kernel.nothing = 1 in /etc/sysctl.d/10-a.conf has no effect"), "{said:?}");
    }

    #[test]
    fn a_file_of_parameters_hides_its_namesakes_and_the_last_name_has_the_last_word() {
        let (_directory, layout) = machine_with(&[
            ("/proc/sys/net/a", "0"),
            ("/proc/sys/net/b", "0"),
            ("/usr/lib/sysctl.d/10-hidden.conf", "kernel.of_usr = 1\n"),
            ("/usr/local/lib/sysctl.d/10-hidden.conf", "kernel.of_local = 1\n"),
            ("/run/sysctl.d/10-hidden.conf", "kernel.of_run = 1\n"),
            ("/etc/sysctl.d/10-hidden.conf", "kernel.of_etc = 1\n"),
            ("/usr/lib/sysctl.d/20-local.conf", "kernel.of_usr = 2\n"),
            ("/usr/local/lib/sysctl.d/20-local.conf", "kernel.of_local = 2\n"),
            ("/run/sysctl.d/30-a.conf", "net.a = 3\n"),
            ("/usr/lib/sysctl.d/40-a.conf", "net.a = 4\n"),
            ("/etc/sysctl.d/40-b.conf", "net.b = 4\n"),
            ("/usr/lib/sysctl.d/30-b.conf", "net.b = 3\n"),
        ]);
        let said = kernel_parameters(&layout);
        let named: Vec<&str> = said.iter().filter_map(|line| line.split(" has no effect").next()).collect();
        assert_eq!(
            named,
            ["kernel.of_etc = 1 in /etc/sysctl.d/10-hidden.conf", "kernel.of_local = 2 in /usr/local/lib/sysctl.d/20-local.conf"]
        );
        for name in ["a", "b"] {
            assert_eq!(fs::read_to_string(layout.path(&format!("/proc/sys/net/{name}"))).unwrap(), "4");
        }
    }

    #[test]
    fn modules_that_are_not_there_and_mounts_are_named() {
        let (_directory, layout) = machine_with(&[
            ("/sys/module/br_netfilter/refcnt", "0"),
            ("/etc/modules-load.d/k8s.conf", "br-netfilter\n# no\nflux_capacitor\n"),
            ("/etc/fstab", "# nothing\n/dev/sdb1 /data ext4 defaults 0 2\n"),
        ]);
        let said = modules(&layout);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("flux_capacitor"), "{said:?}");
        assert_eq!(mounts(&layout), ["/dev/sdb1 of /etc/fstab is not mounted at /data: this machine has no disks but its own"]);
    }
}
