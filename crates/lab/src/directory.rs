//! Where a lab keeps its files, and the lock that tells whether it lives.

use std::{
    env, fmt, fs,
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    path::{Path, PathBuf},
    str::FromStr,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{LabError, lock::LockFile, place, private};

/// The file that says that a directory is a lab's: the first that is made in it and the last that goes.
pub(crate) const MARKER: &str = ".metalshift-lab";
/// What the names of its locks end with. Others have locks too, and most of them are empty.
const LOCK: &str = ".metalshift-lock";
const STARTING: &str = ".metalshift-starting";
const MARKER_TEXT: &str = "This directory belongs to a lab of metalshift; `metalshift lab down` removes it with everything in it.\n";

/// The kernel takes no longer path for a socket.
const LONGEST_SOCKET: usize = 107;

/// How long a lab that was killed may take until nothing holds its lock.
const ENDS_WITHIN: Duration = Duration::from_secs(30);
/// How long it gets to end by itself: whoever started it is gone, and it may be busy or stopped and hear nothing of that.
const ENDS_ITSELF_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a janitor may take for its look at a lab: a few programs of its shell, on a computer that has much else to do.
const JANITOR_LOOKS_WITHIN: Duration = Duration::from_secs(10);

/// A lab's name: part of paths, cgroups and host names, so it is short and plain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LabName(String);

impl FromStr for LabName {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let plain = text.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-');
        let begins_well = text.starts_with(|letter: char| letter.is_ascii_lowercase());
        if plain && begins_well && text.len() <= 20 && !text.ends_with('-') {
            Ok(Self(text.to_owned()))
        } else {
            Err(LabError::BadName { given: text.to_owned() })
        }
    }
}

impl TryFrom<String> for LabName {
    type Error = LabError;

    fn try_from(text: String) -> Result<Self, LabError> {
        text.parse()
    }
}

impl From<LabName> for String {
    fn from(name: LabName) -> Self {
        name.0
    }
}

impl fmt::Display for LabName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Default for LabName {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

/// The files of one lab.
#[derive(Clone, Debug)]
pub struct LabDirectory {
    labs: PathBuf,
    name: LabName,
}

impl LabDirectory {
    /// The directory of the lab with this name; it need not exist.
    pub fn of(name: &LabName) -> Self {
        Self { labs: labs_directory(), name: name.clone() }
    }

    #[cfg(test)]
    pub(crate) fn in_labs(labs: &Path, name: LabName) -> Self {
        Self { labs: labs.to_owned(), name }
    }

    /// Every lab that has files here, alive or left behind.
    pub fn all() -> Vec<Self> {
        Self::all_in(&labs_directory())
    }

    /// Only what labs make is taken for a lab: directories with their marker, and empty locks.
    fn all_in(labs: &Path) -> Vec<Self> {
        let entries = fs::read_dir(labs).into_iter().flatten().flatten();
        let mut names: Vec<LabName> = entries
            .filter_map(|entry| {
                let file = entry.file_name().into_string().ok()?;
                let metadata = entry.metadata().ok()?;
                let of_lock = file.strip_suffix(LOCK).or_else(|| file.strip_suffix(STARTING));
                let name = match of_lock {
                    Some(name) if metadata.is_file() && metadata.len() == 0 => name,
                    None if entry.path().join(MARKER).is_file() => &file,
                    _ => return None,
                };
                name.parse().ok()
            })
            .collect();
        names.sort();
        names.dedup();
        names.into_iter().map(|name| Self { labs: labs.to_owned(), name }).collect()
    }

    /// The lab's name.
    pub fn name(&self) -> &LabName {
        &self.name
    }

    /// The directory of all labs.
    pub(crate) fn labs(&self) -> &Path {
        &self.labs
    }

    /// The directory itself.
    pub fn path(&self) -> PathBuf {
        self.labs.join(self.name.to_string())
    }

    /// The kubeconfig for programs on this machine.
    pub fn kubeconfig(&self) -> PathBuf {
        self.path().join("kubeconfig")
    }

    /// Where the components' output goes, a file each.
    pub fn logs(&self) -> PathBuf {
        self.path().join("logs")
    }

    /// Links to programs people call: kubectl and, where the lab has it, clusterctl.
    pub(crate) fn programs(&self) -> PathBuf {
        self.path().join("bin")
    }

    /// The API server's record of every call, a line of JSON each, if the lab was asked to keep one.
    pub fn audit_log(&self) -> PathBuf {
        self.logs().join("audit.jsonl")
    }

    /// The supervisor's own log.
    pub fn supervisor_log(&self) -> PathBuf {
        self.logs().join("supervisor.log")
    }

    /// The same for programs inside the lab's namespaces.
    pub(crate) fn inside_kubeconfig(&self) -> PathBuf {
        self.certificates().join("administrator.kubeconfig")
    }

    pub(crate) fn control_socket(&self) -> PathBuf {
        self.path().join("control")
    }

    pub(crate) fn certificates(&self) -> PathBuf {
        self.path().join("certificates")
    }

    pub(crate) fn machines(&self) -> PathBuf {
        self.path().join("machines")
    }

    /// What its control groups are called. Labs of one name in different places are different labs.
    pub(crate) fn control_group(&self) -> String {
        let digest = Sha256::digest(self.path().as_os_str().as_encoded_bytes());
        format!("metalshift-{}-{:02x}{:02x}{:02x}", self.name, digest[0], digest[1], digest[2])
    }

    pub(crate) fn create(&self) -> Result<(), LabError> {
        fs::create_dir_all(self.path()).map_err(LabError::io("create", self.path()))?;
        let marker = self.path().join(MARKER);
        fs::write(&marker, MARKER_TEXT).map_err(LabError::io("write", &marker))?;
        for directory in [self.logs(), self.certificates()] {
            fs::create_dir_all(&directory).map_err(LabError::io("create", &directory))?;
        }
        // What a machine prints may be as secret as its user-data, and nobody else writes here, whatever the person's umask is.
        for (path, mode) in [(self.path(), 0o755), (self.certificates(), 0o755), (self.logs(), 0o700)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(LabError::io("protect", &path))?;
        }
        Ok(())
    }

    /// Fails where the directory of this lab is somebody else's: it has content and no marker. An empty one was being made or removed.
    pub(crate) fn check_marker(&self) -> Result<(), LabError> {
        let path = self.path();
        let is_ours = match fs::read_dir(&path) {
            Ok(mut entries) => path.join(MARKER).is_file() || entries.next().is_none(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        if is_ours { Ok(()) } else { Err(LabError::NotOurs { path }) }
    }

    /// Takes the lock that says "this lab lives here, in this process". Nothing when another process holds it.
    pub(crate) fn try_lock(&self) -> Result<Option<LockFile>, LabError> {
        self.try_take(&self.lock_path())
    }

    fn try_take(&self, lock: &Path) -> Result<Option<LockFile>, LabError> {
        loop {
            self.prepare_place()?;
            match LockFile::try_take(lock) {
                // Who let go of the last lock has removed the place in between.
                Err(LabError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
                taken => return taken,
            }
        }
    }

    /// Only one process at a time begins with a lab of this name: between looking for leftovers of the last one and the lock of the new
    /// one nobody else may take ours for leftovers. Held until the lab is up or has failed. A janitor that looks whether there is something to
    /// remove holds it too, and is waited for: the kernel names no holder then, since the `flock` of its shell has ended.
    pub(crate) fn begin(&self) -> Result<LockFile, LabError> {
        self.prepare_place()?;
        self.check_marker()?;
        let asked = Instant::now();
        loop {
            if let Some(lock) = self.try_take(&self.starting_path())? {
                return Ok(lock);
            }
            if LockFile::holder(&self.starting_path()).is_some() || asked.elapsed() > JANITOR_LOOKS_WITHIN {
                return Err(LabError::Starting { name: self.name.to_string() });
            }
        }
    }

    /// Fails if the lab lives already.
    pub(crate) fn take(&self) -> Result<LockFile, LabError> {
        self.try_lock()?.ok_or_else(|| self.is_taken())
    }

    /// The same for who has begun with it: a lab of this name that is dying, or is being removed, is waited for.
    pub(crate) async fn take_after_the_last(&self) -> Result<LockFile, LabError> {
        let begun = Instant::now();
        let mut is_killed = false;
        loop {
            match self.take() {
                Err(LabError::AlreadyUp { .. } | LabError::Starting { .. }) if !self.answers() && begun.elapsed() < ENDS_WITHIN => {
                    if !is_killed && begun.elapsed() > ENDS_ITSELF_WITHIN {
                        is_killed = true;
                        let path = self.path();
                        crate::lab::blocking(move || crate::leftovers::end_processes(&path)).await;
                    }
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                taken => return taken,
            }
        }
    }

    /// Fails if the lab lives and is not just dying.
    pub(crate) fn check_not_up(&self) -> Result<(), LabError> {
        match self.take() {
            Err(LabError::AlreadyUp { .. } | LabError::Starting { .. }) if !self.answers() => Ok(()),
            taken => taken.map(drop),
        }
    }

    /// Whether somebody listens for requests; the socket of a dead lab is there too.
    fn answers(&self) -> bool {
        use std::io::ErrorKind::{ConnectionRefused, NotFound};
        UnixStream::connect(self.control_socket()).map_or_else(|error| !matches!(error.kind(), ConnectionRefused | NotFound), |_| true)
    }

    /// Takes the lock in order to remove what is left. Nothing when somebody owns the lab, or begins with it and removes that itself.
    pub(crate) fn take_to_clean(&self) -> Result<Option<LockFile>, LabError> {
        match self.begin() {
            Ok(_beginning) => self.try_lock(),
            Err(LabError::Starting { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What to tell a person who wants to start a lab that has an owner.
    fn is_taken(&self) -> LabError {
        let name = self.name.to_string();
        if self.control_socket().exists() { LabError::AlreadyUp { name } } else { LabError::Starting { name } }
    }

    fn prepare_place(&self) -> Result<(), LabError> {
        let socket = self.control_socket();
        if socket.as_os_str().len() > LONGEST_SOCKET {
            let below = socket.as_os_str().len() - self.labs.as_os_str().len();
            return Err(LabError::PathTooLong { path: socket, most: LONGEST_SOCKET - below });
        }
        // Files on the way there, links to nowhere included.
        let obstacle = self.labs.ancestors().find(|path| path.is_symlink() || path.exists()).filter(|path| !path.is_dir());
        if let Some(obstacle) = obstacle {
            return Err(LabError::NoDirectory { path: self.labs.clone(), obstacle: obstacle.to_owned() });
        }
        place::make(&self.labs)
    }

    /// Fails where somebody else could have made the files of this lab.
    pub(crate) fn check_place(&self) -> Result<(), LabError> {
        place::check(&self.labs)
    }

    pub(crate) fn lock_path(&self) -> PathBuf {
        self.labs.join(format!("{}{LOCK}", self.name))
    }

    pub(crate) fn starting_path(&self) -> PathBuf {
        self.labs.join(format!("{}{STARTING}", self.name))
    }

    /// Whether a process owns this lab now.
    pub fn is_owned(&self) -> bool {
        LockFile::is_held(&self.lock_path())
    }

    /// The process that is about to own it, if it is another one than this.
    pub(crate) fn beginner(&self) -> Option<u32> {
        LockFile::holder(&self.starting_path()).filter(|process| *process != std::process::id())
    }

    /// Whether there is anything of a lab of this name, alive or left behind.
    pub(crate) fn has_traces(&self) -> bool {
        [self.path(), self.lock_path(), self.starting_path()].iter().any(|path| path.exists())
            || !crate::control_groups::of_lab(&self.control_group()).is_empty()
            || !crate::leftovers::marked_processes(&self.path()).is_empty()
    }

    /// What to tell a person who wants something of a lab that does not answer.
    pub fn not_up(&self) -> LabError {
        let name = self.name.to_string();
        if self.is_owned() || self.is_beginning() { LabError::Starting { name } } else { LabError::NotUp { name } }
    }

    /// Whether a process is about to own it.
    pub fn is_beginning(&self) -> bool {
        LockFile::is_held(&self.starting_path())
    }
}

/// `METALSHIFT_LABS`, or the state directory of root, of the person, or of a person without a home.
fn labs_directory() -> PathBuf {
    if let Some(directory) = env::var_os("METALSHIFT_LABS").filter(|value| !value.is_empty()) {
        // The supervisor works elsewhere and must mean the same place.
        return real(&std::path::absolute(&directory).unwrap_or_else(|_| directory.into()));
    }
    if rustix::process::geteuid().is_root() {
        return "/var/lib/metalshift/labs".into();
    }
    let home = env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_dir());
    labs_of_a_person(env::var_os("XDG_STATE_HOME").map(PathBuf::from), home)
}

fn labs_of_a_person(state: Option<PathBuf>, home: Option<PathBuf>) -> PathBuf {
    // The specification of these directories: "All paths set in these environment variables must be absolute", others are ignored.
    let state = state.filter(|state| state.is_absolute());
    state
        .or_else(|| home.map(|home| home.join(".local/state")))
        .map_or_else(private::directory, |state| state.join("metalshift"))
        .join("labs")
}

/// The same place without links on the way, as far as it exists: processes and control groups of a lab are known by its path, so there
/// must be one.
fn real(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|place| Some((place.canonicalize().ok()?, path.strip_prefix(place).ok()?)));
    there.map_or_else(|| path.to_owned(), |(place, rest)| if rest.as_os_str().is_empty() { place } else { place.join(rest) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_for_labs_has_one_path_whatever_links_lead_there() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir(root.join("disk")).unwrap();
        std::os::unix::fs::symlink("disk", root.join("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("broken")).unwrap();
        for (given, expected) in [("link", "disk"), ("link/deeper/labs", "disk/deeper/labs"), ("disk", "disk"), ("broken", "broken")] {
            assert_eq!(real(&root.join(given)).as_os_str(), root.join(expected).as_os_str());
        }
    }

    #[test]
    fn a_state_directory_counts_only_with_its_whole_path() {
        let place = |state: &str, home: Option<&str>| labs_of_a_person(Some(state.into()), home.map(Into::into));
        assert_eq!(place("/state", Some("/home/me")), Path::new("/state/metalshift/labs"));
        for relative in ["", "state", "./state"] {
            assert_eq!(place(relative, Some("/home/me")), Path::new("/home/me/.local/state/metalshift/labs"));
            assert_eq!(place(relative, None), private::directory().join("labs"));
        }
    }

    #[test]
    fn names_that_would_break_paths_or_host_names_are_refused() {
        for bad in ["", "A", "1st", "has space", "a/b", "..", "ends-", "x2345678901234567890y"] {
            assert!(bad.parse::<LabName>().is_err(), "{bad:?} was taken");
        }
        assert_eq!("rack-7".parse::<LabName>().unwrap().to_string(), "rack-7");
    }

    #[test]
    fn only_what_labs_made_is_taken_for_a_lab() {
        let labs = tempfile::tempdir().unwrap();
        let of = |name: &str| LabDirectory { labs: labs.path().to_owned(), name: name.parse().unwrap() };
        fs::create_dir(labs.path().join("mine")).unwrap();
        fs::write(labs.path().join("mine/thesis"), "precious").unwrap();
        fs::write(labs.path().join("yarn.lock"), "# yarn").unwrap();
        fs::write(labs.path().join("notes"), "").unwrap();
        of("lab").create().unwrap();
        fs::write(labs.path().join("killed.metalshift-lock"), "").unwrap();
        fs::write(labs.path().join("backup.lock"), "").unwrap();
        let names: Vec<String> = LabDirectory::all_in(labs.path()).iter().map(|lab| lab.name().to_string()).collect();
        assert_eq!(names, ["killed", "lab"]);
        assert!(matches!(of("mine").begin(), Err(LabError::NotOurs { .. })));
        assert!(matches!(of("notes").begin(), Err(LabError::NotOurs { .. })));
        assert!(crate::leftovers::remove(&of("mine")).is_err());
        assert_eq!(fs::read_to_string(labs.path().join("mine/thesis")).unwrap(), "precious");
        crate::leftovers::remove(&of("lab")).unwrap();
        assert!(!labs.path().join("lab").exists());
    }

    #[test]
    fn a_lab_is_begun_by_one_process_and_owned_by_one() {
        let labs = tempfile::tempdir().unwrap();
        let directory = LabDirectory { labs: labs.path().to_owned(), name: LabName::default() };
        let beginning = directory.begin().unwrap();
        assert!(directory.is_beginning() && !directory.is_owned());
        assert!(matches!(directory.begin(), Err(LabError::Starting { .. })));
        let owner = directory.take().unwrap();
        drop(beginning);
        assert!(directory.is_owned() && !directory.is_beginning());
        assert!(matches!(directory.take(), Err(LabError::Starting { .. })), "it does not answer yet");
        directory.create().unwrap();
        fs::write(directory.control_socket(), "").unwrap();
        assert!(matches!(directory.take(), Err(LabError::AlreadyUp { .. })));
        drop(owner);
        assert!(!directory.is_owned());
    }

    #[test]
    fn a_janitor_that_looks_slowly_is_waited_for() {
        let labs = tempfile::tempdir().unwrap();
        let directory = LabDirectory::in_labs(labs.path(), LabName::default());
        // As the janitor takes it, and for longer than a lock is looked at before it counts as held.
        let mut janitor = std::process::Command::new("sh")
            .args(["-c", r#"exec 8>>"$1"; flock -n 8 && echo held; sleep 0.5; rm -f -- "$1""#, "sh"])
            .arg(directory.starting_path())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut word = [0; 4];
        std::io::Read::read_exact(janitor.stdout.as_mut().unwrap(), &mut word).unwrap();
        assert_eq!((&word, directory.is_beginning()), (b"held", true));
        let beginning = directory.begin();
        janitor.wait().unwrap();
        assert!(beginning.is_ok(), "{beginning:?}");
    }

    #[tokio::test]
    async fn a_lab_that_is_dying_is_waited_for_and_one_that_lives_is_not() {
        let labs = tempfile::tempdir().unwrap();
        let directory = LabDirectory::in_labs(labs.path(), LabName::default());
        directory.create().unwrap();
        let listener = std::os::unix::net::UnixListener::bind(directory.control_socket()).unwrap();
        let owner = directory.take().unwrap();
        assert!(matches!(directory.take_after_the_last().await, Err(LabError::AlreadyUp { .. })));
        assert!(matches!(directory.check_not_up(), Err(LabError::AlreadyUp { .. })));
        drop(listener);
        assert!(directory.check_not_up().is_ok());
        let _beginning = directory.begin().unwrap();
        let (taken, ()) = tokio::join!(directory.take_after_the_last(), async {
            tokio::time::sleep(LOOK_EVERY).await;
            drop(owner);
        });
        assert!(taken.is_ok(), "{taken:?}");
        assert!(directory.take_to_clean().unwrap().is_none(), "who begins cleans up itself");
    }
}
