//! The Debian packages that level *nodes* needs beside the built programs: what is missing, and its installation.
//! `lab up` calls it before it starts a lab of that level.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::process::{Command, Stdio};

/// A Debian package and what proves that it, or something that does the same, is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name in Debian.
    pub name: &'static str,
    /// What the lab uses of it.
    pub program: &'static str,
    /// Directories one of which holds `program`.
    directories: &'static [&'static str],
}

/// Where programs are; runc and ctr moved between them over the releases, and people install by hand into the first two.
const PROGRAM_DIRECTORIES: &[&str] = &["usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin"];

/// What goes into container images is taken from where Debian has it, with the libraries it was linked with there: a program that
/// somebody installed by hand does not stand in for it.
const COPIED_DIRECTORIES: &[&str] = &["usr/sbin"];

/// With this file systemd does not start cloud-init. Machines of the lab, which see the host's files, do not see it.
pub(crate) const CLOUD_INIT_OFF: &str = "etc/cloud/cloud-init.disabled";

/// Everything level *nodes* needs. `dig` is for people and tests: what a lab's machines are told about a name, and by whom.
pub const PACKAGES: [Package; 11] = [
    Package { name: "containerd", program: "containerd", directories: PROGRAM_DIRECTORIES },
    Package { name: "runc", program: "runc", directories: PROGRAM_DIRECTORIES },
    Package { name: "containernetworking-plugins", program: "bridge", directories: &["usr/lib/cni", "opt/cni/bin", "usr/libexec/cni"] },
    Package { name: "nftables", program: "nft", directories: COPIED_DIRECTORIES },
    Package { name: "iproute2", program: "ip", directories: PROGRAM_DIRECTORIES },
    Package { name: "iptables", program: "xtables-nft-multi", directories: COPIED_DIRECTORIES },
    Package { name: "busybox-static", program: "busybox", directories: &["bin"] },
    Package { name: "bind9-dnsutils", program: "dig", directories: PROGRAM_DIRECTORIES },
    Package { name: "cloud-init", program: "cloud-init", directories: PROGRAM_DIRECTORIES },
    Package { name: "ignition", program: "ignition", directories: &["usr/lib/dracut/modules.d/30ignition"] },
    Package { name: "util-linux", program: "unshare", directories: PROGRAM_DIRECTORIES },
];

/// What the tests of this workspace call beside that: the API of an emulated MAAS, the Makefile, signals.
const FOR_TESTS: [Package; 3] = [
    Package { name: "curl", program: "curl", directories: PROGRAM_DIRECTORIES },
    Package { name: "make", program: "make", directories: PROGRAM_DIRECTORIES },
    Package { name: "procps", program: "kill", directories: PROGRAM_DIRECTORIES },
];

/// Why packages could not be installed, each with what a person can do.
#[derive(Debug, thiserror::Error)]
pub enum PackagesError {
    /// Only root installs packages.
    #[error("programs are missing, and only root can install them: run `sudo {command}`")]
    NotRoot {
        /// What root would run.
        command: String,
    },
    /// Not a Debian.
    #[error("programs are missing ({programs}), and there is no apt-get: install them as this system does it")]
    NoApt {
        /// The programs.
        programs: String,
    },
    /// apt-get did not do it.
    #[error("apt-get could not install what is missing ({reason}): run `{command}` by hand")]
    Failed {
        /// What apt-get said last.
        reason: String,
        /// What to run.
        command: String,
    },
    /// A person changed their mind.
    #[error("interrupted while Debian packages were installed: apt-get was left to come to its end, and nothing else was done")]
    Interrupted,
}

impl Package {
    fn is_there(&self, root: &Path) -> bool {
        self.directories.iter().any(|directory| root.join(directory).join(self.program).exists())
    }
}

/// The Debian package that has a program the lab calls. Those that every Debian has are not among what is installed.
pub(crate) fn that_has(program: &str) -> &str {
    match program {
        "setsid" | "setpriv" | "unshare" | "nsenter" | "flock" => "util-linux",
        "sh" => "dash",
        "cp" | "env" => "coreutils",
        "find" => "findutils",
        "ldd" => "libc-bin",
        "ctr" => "containerd",
        other => PACKAGES.iter().find(|package| package.program == other).map_or(other, |package| package.name),
    }
}

/// Where a program of [`PACKAGES`] is on this machine.
pub(crate) fn path_of(program: &str) -> Option<PathBuf> {
    let package = PACKAGES.iter().find(|package| package.program == program)?;
    package.directories.iter().map(|directory| Path::new("/").join(directory).join(program)).find(|path| path.exists())
}

/// Where the network plugins of containers are.
pub fn network_plugins() -> PathBuf {
    let directories = PACKAGES.iter().find(|package| package.program == "bridge").map_or(&[][..], |package| package.directories);
    let mut found = directories.iter().map(|directory| Path::new("/").join(directory));
    found.find(|directory| directory.join("bridge").exists()).unwrap_or_else(|| "/usr/lib/cni".into())
}

/// The packages whose programs are not on this machine.
pub fn missing() -> Vec<Package> {
    missing_below(Path::new("/"), &PACKAGES)
}

/// The same for the tests: what they need of level *nodes* and beside it.
pub fn missing_for_tests() -> Vec<Package> {
    missing_below(Path::new("/"), &[&PACKAGES[..], &FOR_TESTS].concat())
}

fn missing_below(root: &Path, wanted: &[Package]) -> Vec<Package> {
    wanted.iter().copied().filter(|package| !package.is_there(root)).collect()
}

/// Installs packages with apt-get; `progress` gets a line before each thing that is done.
///
/// That it is `interrupted` is answered when apt-get has come to its end. This is to be waited for, too: who drops it leaves apt-get alone.
pub async fn install(
    packages: &[Package],
    progress: &mut dyn FnMut(&str),
    interrupted: impl Future<Output = ()>,
) -> Result<(), PackagesError> {
    System::this().install(packages, progress, interrupted).await
}

/// The machine, as far as an installation sees it.
struct System {
    /// Where files are; `/` outside of tests.
    root: PathBuf,
    is_root: bool,
}

impl System {
    fn this() -> Self {
        Self { root: PathBuf::from("/"), is_root: rustix::process::geteuid().is_root() }
    }

    async fn install(
        &self,
        packages: &[Package],
        progress: &mut dyn FnMut(&str),
        interrupted: impl Future<Output = ()>,
    ) -> Result<(), PackagesError> {
        if packages.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = packages.iter().map(|package| package.name).collect();
        let command = format!("apt-get install --no-install-recommends {}", names.join(" "));
        let apt_get = self.root.join("usr/bin/apt-get");
        if !apt_get.is_file() {
            let programs: Vec<_> = packages.iter().map(|package| package.program).collect();
            return Err(PackagesError::NoApt { programs: programs.join(", ") });
        }
        if !self.is_root {
            return Err(PackagesError::NotRoot { command });
        }
        let _quiet = self.keep_services_stopped();
        let installs = |name| packages.iter().any(|package| package.name == name);
        let switched_off = installs("cloud-init") && self.switch_cloud_init_off();
        progress("reading the package lists (apt-get update)");
        // Old lists may do, so a failure here shows only if the installation fails too.
        let mut interrupted = pin!(interrupted);
        let (updated, mut stop) = to_its_end(run(&apt_get, &["update"]), interrupted.as_mut(), progress).await;
        let mut installed = Ok(());
        if !stop {
            progress(&format!("installing the Debian packages {}", names.join(", ")));
            // Nothing a person installed, such as another containerd, is ever removed for this.
            let mut arguments = vec!["install", "--yes", "--no-remove", "--no-install-recommends", "--option=DPkg::Lock::Timeout=120"];
            arguments.extend(&names);
            (installed, stop) = to_its_end(run(&apt_get, &arguments), interrupted, progress).await;
        }
        let is_there = |name: &str| packages.iter().any(|package| package.name == name && package.is_there(&self.root));
        // An installation that failed may have installed some of them all the same.
        if is_there("containerd") {
            self.switch_containerd_off();
        }
        if switched_off && !is_there("cloud-init") {
            let _ = fs::remove_file(self.root.join(CLOUD_INIT_OFF));
        }
        if stop {
            return Err(PackagesError::Interrupted);
        }
        if let Err(reason) = installed {
            let reason = updated.err().map_or(reason.clone(), |update| format!("{update}; {reason}"));
            return Err(PackagesError::Failed { reason, command });
        }
        match packages.iter().find(|package| !package.is_there(&self.root)) {
            None => Ok(()),
            Some(package) => {
                Err(PackagesError::Failed { reason: format!("{} was installed without {}", package.name, package.program), command })
            }
        }
    }

    /// At its next boot the host would take itself for a new machine of some cloud. The lab calls cloud-init itself, on its machines only.
    /// Says whether this was done here.
    fn switch_cloud_init_off(&self) -> bool {
        let path = self.root.join(CLOUD_INIT_OFF);
        let write = |directory: &Path| {
            fs::create_dir_all(directory).and_then(|()| fs::write(&path, "Installed for labs of metalshift, not for this host.\n"))
        };
        // Without it cloud-init may run, which is untidy and no reason to stop.
        !path.exists() && path.parent().is_some_and(|directory| write(directory).is_ok())
    }

    /// The package wants it started at every boot; labs run their own. What needs this one, such as Docker, starts it.
    fn switch_containerd_off(&self) {
        let systemctl = self.root.join("usr/bin/systemctl");
        if systemctl.is_file() {
            // One that goes on starting is untidy and no reason to stop.
            let _ = Command::new(systemctl).args(["disable", "containerd.service"]).stdin(Stdio::null()).output();
        }
    }

    /// While this lives, installing a service does not start it: the lab runs its own containerd, and cloud-init is for its machines only.
    ///
    /// Debian asks `policy-rc.d` whether a service may start. One that somebody else put there is left alone.
    fn keep_services_stopped(&self) -> Option<Policy> {
        let path = self.root.join("usr/sbin/policy-rc.d");
        if !self.root.join("run/systemd/system").exists() || path.symlink_metadata().is_ok() {
            return None;
        }
        let name = fs::read_to_string("/proc/self/comm").unwrap_or_default();
        let script = policy(std::process::id(), name.trim());
        // Without it a service may start, which is untidy and no reason to stop.
        fs::write(&path, script).and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755))).ok()?;
        Some(Policy { path })
    }
}

/// The script holds only as long as this process lives: one that a kill left behind removes itself when it is asked next.
fn policy(process: u32, name: &str) -> String {
    format!("#!/bin/sh\n[ \"$(cat /proc/{process}/comm 2>/dev/null)\" = '{name}' ] && exit 101\nrm -f \"$0\"\nexit 0\n")
}

/// Our policy file, removed when the installation is over.
struct Policy {
    path: PathBuf,
}

impl Drop for Policy {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Waits for what must not be broken off; says also whether somebody wanted to stop meanwhile.
async fn to_its_end<T>(
    work: impl Future<Output = T>,
    interrupted: Pin<&mut impl Future<Output = ()>>,
    progress: &mut dyn FnMut(&str),
) -> (T, bool) {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        done = &mut work => (done, false),
        () = interrupted => {
            progress("interrupted: waits for apt-get to come to its end");
            (work.await, true)
        }
    }
}

/// Runs apt-get without questions; the error is its last word.
async fn run(apt_get: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut command = tokio::process::Command::new(apt_get);
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C").stdin(Stdio::null());
    // A Ctrl-C is told to all of our group, and apt-get would break off.
    let output = command.process_group(0).output().await.map_err(|error: io::Error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = words.lines().rev().map(str::trim).find(|line| !line.is_empty());
    Err(last.map_or_else(|| output.status.to_string(), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that looks like the root of a machine with this apt-get.
    fn machine(apt_get: Option<&str>) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        for directory in ["usr/bin", "usr/sbin", "run/systemd/system"] {
            fs::create_dir_all(root.path().join(directory)).expect("a directory");
        }
        if let Some(script) = apt_get {
            // Written by another process: a child that another test starts could inherit the open file, and it would be "busy".
            let write = r#"cd "$1" && printf '#!/bin/sh\ncd %s\n%s\n' "$1" "$2" > usr/bin/apt-get && chmod 755 usr/bin/apt-get"#;
            let status = Command::new("sh").args(["-c", write, "sh"]).arg(root.path()).arg(script).status().expect("sh");
            assert!(status.success(), "no apt-get");
        }
        root
    }

    /// Nobody interrupts it.
    async fn install_all(root: &Path, packages: &[Package]) -> Result<(), PackagesError> {
        System { root: root.to_owned(), is_root: true }.install(packages, &mut |_| {}, std::future::pending()).await
    }

    async fn install_on(root: &Path, is_root: bool) -> (Result<(), PackagesError>, Vec<String>) {
        let mut lines = Vec::new();
        let system = System { root: root.to_owned(), is_root };
        let result = system.install(&PACKAGES[..2], &mut |line| lines.push(line.to_owned()), std::future::pending()).await;
        (result, lines)
    }

    #[test]
    fn what_is_there_in_any_of_its_places_is_not_missing() {
        let root = machine(None);
        assert_eq!(missing_below(root.path(), &PACKAGES).len(), PACKAGES.len());
        for directory in ["usr/sbin", "opt/cni/bin"] {
            fs::create_dir_all(root.path().join(directory)).expect("a directory");
        }
        for program in ["usr/sbin/runc", "opt/cni/bin/bridge", "usr/bin/containerd"] {
            fs::write(root.path().join(program), "").expect("a program");
        }
        let mut expected = PACKAGES.to_vec();
        expected.retain(|package| !["containerd", "runc", "containernetworking-plugins"].contains(&package.name));
        assert_eq!(missing_below(root.path(), &PACKAGES), expected);
    }

    #[tokio::test]
    async fn what_the_tests_call_is_installed_by_the_name_of_its_package() {
        let root = machine(Some("echo \"$*\" >> calls; touch usr/bin/curl usr/bin/kill"));
        fs::write(root.path().join("usr/bin/make"), "").expect("a program");
        let missing = missing_below(root.path(), &FOR_TESTS);
        install_all(root.path(), &missing).await.expect("an installation");
        let calls = fs::read_to_string(root.path().join("calls")).expect("calls");
        assert!(calls.ends_with(" curl procps\n"), "{calls}");
    }

    #[tokio::test]
    async fn lists_are_read_then_packages_installed_without_questions_and_services_stay_stopped() {
        let root = machine(Some(
            "echo \"$DEBIAN_FRONTEND $*\" >> calls; sh usr/sbin/policy-rc.d >/dev/null; echo \"policy $?\" >> calls; touch usr/bin/containerd usr/sbin/runc",
        ));
        let (result, lines) = install_on(root.path(), true).await;
        result.expect("an installation");
        assert_eq!(lines[1], "installing the Debian packages containerd, runc");
        let calls = fs::read_to_string(root.path().join("calls")).expect("calls");
        let options = "install --yes --no-remove --no-install-recommends --option=DPkg::Lock::Timeout=120";
        assert_eq!(calls, format!("noninteractive update\npolicy 101\nnoninteractive {options} containerd runc\npolicy 101\n"));
        assert!(!root.path().join("usr/sbin/policy-rc.d").exists(), "the policy outlived the installation");
    }

    #[tokio::test]
    async fn what_was_installed_for_labs_does_nothing_at_the_next_boot_and_what_was_there_before_is_left_alone() {
        let install = r#"case "$*" in *install*) ls etc/cloud >> calls 2>/dev/null; touch usr/bin/containerd usr/bin/cloud-init ;; esac"#;
        let systemctl =
            r#"printf '#!/bin/sh\necho systemctl "$@" >> %s/calls\n' "$PWD" > usr/bin/systemctl; chmod 755 usr/bin/systemctl; "#;
        let root = machine(Some(&format!("{systemctl}{install}")));
        let install = async |packages: &[&str]| {
            let packages: Vec<Package> = PACKAGES.into_iter().filter(|package| packages.contains(&package.name)).collect();
            install_all(root.path(), &packages).await
        };
        let disabled = root.path().join(CLOUD_INIT_OFF);
        install(&["runc", "cloud-init"]).await.expect_err("there is no runc");
        fs::remove_file(&disabled).expect("cloud-init is there now, and off");
        fs::remove_file(root.path().join("calls")).expect("calls");
        install(&["containerd", "cloud-init"]).await.expect("an installation");
        assert!(disabled.is_file());
        let calls = fs::read_to_string(root.path().join("calls")).expect("calls");
        assert_eq!(calls, "cloud-init.disabled\nsystemctl disable containerd.service\n", "cloud-init must be off before it is there");
        fs::remove_file(&disabled).expect("a file");
        install(&["ignition"]).await.expect_err("there is no ignition");
        assert!(!disabled.exists(), "who has cloud-init may want it");
    }

    #[tokio::test]
    async fn cloud_init_that_could_not_be_installed_leaves_no_word_about_it() {
        let root = machine(Some("exit 100"));
        let packages: Vec<Package> = PACKAGES.into_iter().filter(|package| package.name == "cloud-init").collect();
        install_all(root.path(), &packages).await.expect_err("a failure");
        assert!(!root.path().join(CLOUD_INIT_OFF).exists());
    }

    #[tokio::test]
    async fn an_interrupt_while_the_lists_are_read_installs_nothing_and_leaves_no_word_about_cloud_init() {
        let root = machine(Some("echo \"$1\" >> calls"));
        let packages: Vec<Package> = PACKAGES.into_iter().filter(|package| package.name == "cloud-init").collect();
        let system = System { root: root.path().to_owned(), is_root: true };
        let stopped = system.install(&packages, &mut |_| {}, std::future::ready(())).await.expect_err("it was interrupted");
        assert!(matches!(stopped, PackagesError::Interrupted), "{stopped}");
        assert_eq!(fs::read_to_string(root.path().join("calls")).expect("calls"), "update\n");
        assert!(!root.path().join(CLOUD_INIT_OFF).exists());
        assert!(!root.path().join("usr/sbin/policy-rc.d").exists(), "the policy outlived the installation");
    }

    #[test]
    fn a_policy_that_a_killed_installation_left_allows_services_and_removes_itself() {
        let root = machine(None);
        let path = root.path().join("policy-rc.d");
        fs::write(&path, policy(u32::MAX, "metalshift")).expect("a policy");
        let status = Command::new("sh").arg(&path).status().expect("sh");
        assert!(status.success());
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn failures_say_what_to_run() {
        let root = machine(Some("echo 'E: Unable to locate package runc' >&2; exit 100"));
        let (result, _) = install_on(root.path(), true).await;
        let message = result.expect_err("a failure").to_string();
        assert!(
            message.contains("Unable to locate package runc")
                && message.contains("apt-get install --no-install-recommends containerd runc")
        );

        let (result, lines) = install_on(root.path(), false).await;
        let message = result.expect_err("a failure").to_string();
        assert!(message.contains("run `sudo apt-get install"), "{message}");
        assert!(lines.is_empty(), "nothing is done without the right to do it");

        let (result, _) = install_on(machine(None).path(), true).await;
        let message = result.expect_err("a failure").to_string();
        assert!(message.contains("(containerd, runc)"), "{message}");
    }

    #[tokio::test]
    async fn an_installation_that_brings_nothing_is_a_failure() {
        let root = machine(Some("exit 0"));
        let message = install_on(root.path(), true).await.0.expect_err("a failure").to_string();
        assert!(message.contains("containerd was installed without containerd"), "{message}");
    }
}
