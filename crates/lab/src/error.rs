//! What can go wrong with a lab, in words that say what to do next.

use std::{io, path::PathBuf};

use crate::{packages, programs::ProgramsError};

/// A failure of a lab; every message is one sentence with the fix where a person can act.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The level's name is not one of ours.
    #[error("unknown level {given:?}: choose api, capi or nodes")]
    UnknownLevel {
        /// What was asked for.
        given: String,
    },
    /// Level nodes was asked for without the rights it needs.
    #[error("level nodes needs root for its namespaces and machines: run it with sudo, or choose --level capi")]
    NeedsRoot,
    /// Root of a container that was not given the rights of root.
    #[error(
        "level nodes needs CAP_SYS_ADMIN for its namespaces and machines, which this root does not have: run the container with \
         --privileged, or choose --level capi"
    )]
    NeedsRights,
    /// The lab's name would not survive as a directory, a cgroup and a host name.
    #[error("{given:?} is no name for a lab: use 1 to 20 lower-case letters, digits and dashes, beginning with a letter")]
    BadName {
        /// What was asked for.
        given: String,
    },
    /// A lab of this name runs already.
    #[error("lab {name} is already up: see `metalshift lab status --name {name}`, or end it with `metalshift lab down --name {name}`")]
    AlreadyUp {
        /// The lab.
        name: String,
    },
    /// A socket in the lab's directory could not be reached.
    #[error("{path} is too long for a socket: set METALSHIFT_LABS to a directory whose path is at most {most} bytes long")]
    PathTooLong {
        /// The socket.
        path: PathBuf,
        /// How long the directory's path may be.
        most: usize,
    },
    /// An overlay could not be told where the files of a machine are.
    #[error(
        "{path} has a comma, a colon or a backslash in it, which mounts of level nodes cannot take: set METALSHIFT_LABS to another directory"
    )]
    NotMountable {
        /// The lab's directory.
        path: PathBuf,
    },
    /// The files of the host are in more than one file system.
    #[error(
        "machines of level nodes see only the root file system, and this host has {path} on {place}, a file system of its own: choose --level capi, or run the lab in a virtual machine or container that has it all on its root"
    )]
    MountedElsewhere {
        /// What machines need.
        path: PathBuf,
        /// Where that file system is mounted.
        place: PathBuf,
    },
    /// The lab is not there yet.
    #[error(
        "lab {name} is being started by another process: wait until its `metalshift lab up` returns, or end it with `metalshift lab down --name {name}`"
    )]
    Starting {
        /// The lab.
        name: String,
    },
    /// A program that is not ours begins with the lab.
    #[error("lab {name} is being started by process {process}, a program that holds it for itself: interrupt that program")]
    StartingElsewhere {
        /// The lab.
        name: String,
        /// The program.
        process: u32,
    },
    /// The directory labs are kept in without a home may be in somebody else's hands.
    #[error("{path} belongs to somebody else, or others can write it: remove it, or set METALSHIFT_LABS to a directory of your own")]
    ForeignDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// What is in the way was not made by a lab.
    #[error("{path} was not made by a lab and stays as it is: choose another --name, or set METALSHIFT_LABS to a directory of its own")]
    NotOurs {
        /// The file or directory.
        path: PathBuf,
    },
    /// The supervisor is there and says nothing.
    #[error("the supervisor of lab {name} does not answer: end it with `metalshift lab down --name {name}`")]
    Silent {
        /// The lab.
        name: String,
    },
    /// Somebody ended the lab while it was starting.
    #[error(
        "lab {name} was killed while it was starting, by `lab down` or for want of memory: start it again with `metalshift lab up --name {name}`"
    )]
    Killed {
        /// The lab.
        name: String,
    },
    /// A person changed their mind.
    #[error("lab {name} was not started: it was interrupted, and nothing of it is left")]
    Interrupted {
        /// The lab.
        name: String,
    },
    /// Labs cannot be kept where they are to be.
    #[error("labs cannot be kept in {path}, because {obstacle} is no directory: set METALSHIFT_LABS to a directory")]
    NoDirectory {
        /// Where they are to be kept.
        path: PathBuf,
        /// What is in the way.
        obstacle: PathBuf,
    },
    /// No lab of this name runs.
    #[error("lab {name} is not up: start it with `metalshift lab up --name {name}`")]
    NotUp {
        /// The lab.
        name: String,
    },
    /// The port asked for belongs to somebody else.
    #[error("port {port} on 127.0.0.1 is taken: choose another with --port, or leave it out to get a free one")]
    PortTaken {
        /// The port.
        port: u16,
    },
    /// The port asked for is root's.
    #[error("port {port} on 127.0.0.1 is only for root: choose one from 1024 on with --port, or leave it out to get a free one")]
    PortNotPermitted {
        /// The port.
        port: u16,
    },
    /// No block of ports is free.
    #[error(
        "no {count} neighbouring ports are free on loopback between 10240 and 32000: end some labs (`metalshift lab status --all` lists them)"
    )]
    NoPorts {
        /// How many are needed side by side.
        count: u16,
    },
    /// The real programs are neither here nor could they be built.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// Container images cannot be made of what a person gave.
    #[error(
        "level nodes makes container images of one program that is all of Kubernetes, and the directory of --programs has each on its own: take kube-scheduler and kube-proxy out of it"
    )]
    SeparatePrograms,
    /// A command of the operating system that the lab needs is not there.
    #[error("{program} is not installed: install Debian's package {package}")]
    MissingProgram {
        /// The command.
        program: String,
        /// The package that has it.
        package: String,
    },
    /// The disk is full.
    #[error("no space left for {path}: free some (a lab needs about 2 GB) or set METALSHIFT_LABS to a directory with room")]
    DiskFull {
        /// What could not be written.
        path: PathBuf,
    },
    /// The disk of the cache is full.
    #[error(
        "no space left for container images in {path}: free some (they need about 1 GB) or set METALSHIFT_CACHE to a directory with room"
    )]
    CacheFull {
        /// Where the cache is.
        path: PathBuf,
    },
    /// The disks of machines, which are in memory, are full.
    #[error("no space left for the disk of a machine: disks are in memory, so end other labs, have fewer machines, or add memory")]
    MemoryFull,
    /// A component ended or never answered while the lab was starting.
    #[error("{component} did not start: {reason}{}", last_words(.reason, .log_tail))]
    ComponentFailed {
        /// The component's name in `lab status`.
        component: String,
        /// What was seen of it.
        reason: String,
        /// The end of its log.
        log_tail: String,
    },
    /// The Kubernetes API refused something the lab needs.
    #[error("could not {what}: {source}")]
    Kubernetes {
        /// The intent.
        what: String,
        /// The API's own words.
        source: Box<kube::Error>,
    },
    /// Certificates could not be made.
    #[error("could not make the certificate of {subject}: {source}")]
    Certificate {
        /// Whose certificate.
        subject: String,
        /// The library's own words.
        source: rcgen::Error,
    },
    /// A file of the Cluster API release does not look as it should.
    #[error("cannot read {path}: {reason}")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A command the lab ran said no.
    #[error("`{command}` failed: {words}")]
    Command {
        /// The command line.
        command: String,
        /// What it printed, or its exit status.
        words: String,
    },
    /// There is no such machine.
    #[error("lab {lab} has no machine {machine}: it has {known}")]
    UnknownMachine {
        /// The lab.
        lab: String,
        /// The name asked for.
        machine: String,
        /// The names there are.
        known: String,
    },
    /// The machine is in no state for that.
    #[error("machine {machine} {reason}")]
    MachineState {
        /// The machine.
        machine: String,
        /// Why not.
        reason: String,
    },
    /// The supervisor answered with an error.
    #[error("{0}")]
    Supervisor(String),
    /// The lab ended while somebody waited for it.
    #[error("lab {name} ended while {what}; its last words are in {log}")]
    Ended {
        /// The lab.
        name: String,
        /// What was waited for.
        what: String,
        /// Where to read on.
        log: PathBuf,
    },
    /// The files are another user's.
    #[error("could not {what} {path}: permission denied; {}", permission_hint())]
    NotPermitted {
        /// The intent, as a verb.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
    },
    /// The file system takes no changes.
    #[error("could not {what} {path}: its file system is read-only; set METALSHIFT_LABS to a directory that can be written")]
    ReadOnly {
        /// The intent, as a verb.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
    },
    /// The operating system refused something.
    #[error("could not {what} {path}: {source}")]
    Io {
        /// The intent, as a verb.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Its own words.
        source: io::Error,
    },
}

impl LabError {
    /// For `map_err` on file operations: names the intent and the file, and gives a full disk and a missing right their own sentences.
    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull => Self::DiskFull { path },
            io::ErrorKind::PermissionDenied => Self::NotPermitted { what, path },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { what, path },
            _ => Self::Io { what, path, source },
        }
    }

    /// Whether it is about a full disk, whoever noticed it and in whatever words.
    pub(crate) fn is_about_space(&self) -> bool {
        let words = self.to_string().to_lowercase();
        ["no space left", "quota exceeded"].iter().any(|full| words.contains(full))
    }

    /// For `map_err` on starts of commands of the operating system: one that is not there is named with its package.
    pub(crate) fn start(program: &str) -> impl FnOnce(io::Error) -> Self {
        let program = program.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::NotFound => Self::MissingProgram { package: packages::that_has(&program).to_owned(), program },
            _ => Self::Io { what: "start", path: program.into(), source },
        }
    }

    /// For `map_err` on calls of the Kubernetes API.
    pub(crate) fn kubernetes(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Kubernetes { what, source: Box::new(source) }
    }
}

/// Root is refused where it is not the host's root, or by file systems of others.
fn permission_hint() -> &'static str {
    if rustix::process::geteuid().is_root() {
        "a container needs more rights for it (--privileged), or METALSHIFT_LABS must name another directory"
    } else {
        "run it as the user whose lab it is or with sudo, or set METALSHIFT_LABS to a directory of your own"
    }
}

fn last_words(reason: &str, log_tail: &str) -> String {
    // What the kernel says when too many programs watch files, which has nothing to do with files that are open.
    let watches = if log_tail.contains("too many open files") {
        "\nthis host lets too few programs watch files: run `sysctl fs.inotify.max_user_instances=8192` as root"
    } else {
        ""
    };
    let words = if log_tail.is_empty() { String::new() } else { format!("; its last words:\n{log_tail}") };
    // A lab that did not start has no logs to look at any more.
    let next = if !watches.is_empty() {
        watches
    } else if !log_tail.is_empty() && has_ended_itself(reason) {
        "\nthese words should say why: mend it, then start it again"
    } else {
        "\ntoo little memory or disk are the usual causes: see `free -h` and `df -h`, then start it again"
    };
    format!("{words}{next}")
}

/// Whether it gave up: what was killed or took too long can say nothing about the reason. An exit status is worded by us or by the standard
/// library.
fn has_ended_itself(reason: &str) -> bool {
    ["it ended with exit code", "it ended with exit status"].iter().any(|words| reason.starts_with(words))
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::ExitStatusExt as _, process::ExitStatus};

    use super::*;

    #[test]
    fn a_component_that_did_not_start_is_shown_with_what_to_do() {
        let failed = |reason: &str, tail: &str| {
            let (component, reason) = ("cluster-api".to_owned(), reason.to_owned());
            LabError::ComponentFailed { component, reason, log_tail: tail.to_owned() }.to_string()
        };
        let exit = format!("it ended with {}", crate::process::describe_exit(ExitStatus::from_raw(1 << 8)));
        assert!(failed(&exit, "err=\"too many open files\"").ends_with("run `sysctl fs.inotify.max_user_instances=8192` as root"));
        let causes = "too little memory or disk are the usual causes: see `free -h` and `df -h`, then start it again";
        let mend = "these words should say why: mend it, then start it again";
        assert_eq!(failed(&exit, "no"), format!("cluster-api did not start: it ended with exit code 1; its last words:\nno\n{mend}"));
        assert_eq!(failed(&exit, ""), format!("cluster-api did not start: it ended with exit code 1\n{causes}"));
        assert!(failed(&format!("it ended with {}", ExitStatus::from_raw(1 << 8)), "no").ends_with(mend), "in the words of the library");
        for reason in
            [format!("it ended with {}", crate::process::describe_exit(ExitStatus::from_raw(9))), "no answer within 180 s".to_owned()]
        {
            assert!(failed(&reason, "no").ends_with(causes), "{reason}");
        }
    }

    #[test]
    fn what_the_operating_system_refuses_is_said_with_what_to_do_where_something_can_be_done() {
        let said = |kind: io::ErrorKind| LabError::io("create", "/place")(kind.into()).to_string();
        for kind in [io::ErrorKind::ReadOnlyFilesystem, io::ErrorKind::PermissionDenied, io::ErrorKind::StorageFull] {
            assert!(said(kind).contains("/place") && said(kind).contains("METALSHIFT_LABS"), "{}", said(kind));
        }
        assert!(said(io::ErrorKind::ReadOnlyFilesystem).starts_with("could not create /place: its file system is read-only; set"));
    }

    #[test]
    fn a_command_that_is_not_there_is_named_with_its_package() {
        for (program, package) in [("setsid", "util-linux"), ("setpriv", "util-linux"), ("ip", "iproute2"), ("ctr", "containerd")] {
            let said = LabError::start(program)(io::ErrorKind::NotFound.into()).to_string();
            assert_eq!(said, format!("{program} is not installed: install Debian's package {package}"));
        }
        let said = LabError::start("ip")(io::ErrorKind::OutOfMemory.into()).to_string();
        assert!(said.starts_with("could not start ip: "), "{said}");
    }
}
