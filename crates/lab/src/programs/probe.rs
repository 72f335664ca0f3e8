//! Asks a program that somebody else put there what it is, before it is trusted with a cluster. `find_or_build` calls it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Program;
use super::recipe;

/// A question and what stands before the version in its answer.
struct Question {
    arguments: &'static [&'static str],
    before_version: &'static str,
    pinned: &'static str,
}

/// What a program is asked; the Cluster API managers and pause cannot tell their version.
fn question(program: Program) -> Option<Question> {
    let (arguments, before_version, pinned): (&[&str], _, _) = match program {
        Program::Etcd => (&["--version"], "etcd Version: ", recipe::etcd_version()),
        Program::KubeApiserver | Program::KubeControllerManager | Program::KubeScheduler | Program::Kubelet | Program::KubeProxy => {
            (&["--version"], "Kubernetes v", recipe::kubernetes_version())
        }
        Program::Kubeadm => (&["version", "--output=short"], "v", recipe::kubernetes_version()),
        Program::Kubectl => (&["version", "--client"], "Client Version: v", recipe::kubernetes_version()),
        Program::Clusterctl => (&["version", "--output=short"], "v", recipe::cluster_api_version()),
        Program::CoreDns => (&["-version"], "CoreDNS-", recipe::coredns_version()),
        Program::ClusterApi | Program::KubeadmBootstrap | Program::KubeadmControlPlane | Program::Pause => return None,
    };
    Some(Question { arguments, before_version, pinned: pinned.trim_start_matches('v') })
}

/// Whether a program says it has the pinned version; one that cannot say so does not count.
pub(super) fn is_pinned_version(program: Program, path: &Path) -> bool {
    question(program).is_some_and(|question| usable(program, path).is_ok_and(|version| version.as_deref() == Some(question.pinned)))
}

/// The version a program answers (none if it is of a kind that cannot), or what is wrong with it.
pub(super) fn usable(program: Program, path: &Path) -> Result<Option<String>, String> {
    looks_like_a_program(path)?;
    let Some(question) = question(program) else { return Ok(None) };
    let command = format!("`{} {}`", program.name(), question.arguments.join(" "));
    let answer = ask(path, question.arguments).map_err(|error| format!("{command} failed: {error}"))?;
    let version = answer.lines().find_map(|line| line.trim().strip_prefix(question.before_version));
    match version.and_then(|version| version.split_whitespace().next()) {
        Some(version) => Ok(Some(version.to_owned())),
        None => Err(format!("{command} does not answer a version")),
    }
}

fn looks_like_a_program(path: &Path) -> Result<(), String> {
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err("it is not executable".to_owned());
    }
    // An empty or foreign file would be taken for a shell script by the system's own search.
    let mut start = Vec::new();
    File::open(path).and_then(|file| file.take(4).read_to_end(&mut start)).map_err(|error| error.to_string())?;
    if start.starts_with(b"\x7fELF") || start.starts_with(b"#!") { Ok(()) } else { Err("it is not a Linux program".to_owned()) }
}

/// Runs a program that should answer at once and end.
fn ask(path: &Path, arguments: &[&str]) -> io::Result<String> {
    const PATIENCE: Duration = Duration::from_secs(20);
    let mut command = Command::new(path);
    // clusterctl would ask the world for a newer release and remember the answer in the person's configuration.
    command.args(arguments).env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
            None => {
                child.kill()?;
                child.wait()?;
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not end"));
            }
        }
    };
    if !status.success() {
        return Err(io::Error::other(status.to_string()));
    }
    let mut answer = String::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_string(&mut answer)?;
    }
    Ok(answer)
}
