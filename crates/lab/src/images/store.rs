//! What containerd makes of the images, kept in the cache: importing takes seconds and a quarter of a gigabyte of writing, a copy
//! of the result almost nothing.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use sha2::{Digest as _, Sha256};

use super::{Image, archive, images, layer};
use crate::{
    LabError,
    command::{run, search_path},
    kept::{Kept, KeptLock},
    packages,
    process::tail,
    programs::{Program, Programs, cache_directory},
    sealed::{Sealed, write_whole},
};

const ANSWERS_WITHIN: Duration = Duration::from_mins(1);
/// How much is shown of the log of a containerd that did not start.
const LAST_WORDS: usize = 3;

/// In the place of a store: the root directory of containerd, and the record of what is in it.
const CONTAINERD: &str = "containerd";
const RECORD: &str = "record.json";

/// The directory of a containerd that has all images; nobody removes it while this value lives.
pub(crate) struct Store {
    pub path: PathBuf,
    _lock: KeptLock,
}

/// Finds the store for these programs or makes it. Two labs that want it at once wait for each other; `waiting` hears for whom.
pub(crate) fn ensure(programs: &Programs, waiting: &mut dyn FnMut(String)) -> Result<Store, LabError> {
    ensure_in(&cache_directory(), programs, waiting)
}

fn ensure_in(cache: &Path, programs: &Programs, waiting: &mut dyn FnMut(String)) -> Result<Store, LabError> {
    let programs = &programs.with_kubernetes_in_one().ok_or(LabError::SeparatePrograms)?;
    let kept = Kept::new(cache.join("images"), key(programs)?);
    let finished = kept.path();
    let mut made = || {
        let lock = kept.lock(waiting).map_err(LabError::io("lock", &finished))?;
        if !is_whole(&finished) {
            make(programs, &kept)?;
            kept.remove_unused();
        }
        Ok(lock)
    };
    let full = |error: LabError| if error.is_about_space() { LabError::CacheFull { path: cache.to_owned() } } else { error };
    let lock = made().map_err(full)?;
    kept.note_use();
    Ok(Store { path: finished.join(CONTAINERD), _lock: lock })
}

/// Whether what lies there was finished, and nobody has changed it since.
fn is_whole(finished: &Path) -> bool {
    let record = fs::read(finished.join(RECORD)).unwrap_or_default();
    serde_json::from_slice(&record).is_ok_and(|sealed: Sealed| sealed.is_intact(finished))
}

/// Makes the store beside its place and puts it there when it is whole.
fn make(programs: &Programs, kept: &Kept) -> Result<(), LabError> {
    let finished = kept.path();
    let partial = kept.partial().map_err(LabError::io("make a place beside", &finished))?;
    import(programs, &partial)?;
    let publish = || {
        let store = partial.join("store");
        fs::create_dir(&store)?;
        fs::rename(partial.join(CONTAINERD), store.join(CONTAINERD))?;
        let mut files = Vec::new();
        list(&store, Path::new(CONTAINERD), &mut files)?;
        // The record must not be on the disk before what it tells of; single files would be hundreds of waits.
        rustix::fs::syncfs(File::open(&store)?)?;
        write_whole(&store.join(RECORD), &Sealed::of(&store, files)?)?;
        if finished.exists() {
            fs::remove_dir_all(&finished)?;
        }
        fs::rename(&store, &finished)
    };
    publish().map_err(LabError::io("keep", &finished))
}

/// The plain files below a directory. Links in images lead to places in images, which are not here.
fn list(root: &Path, directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(directory))? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, directory.join(entry.file_name()));
        if kind.is_dir() {
            list(root, &path, files)?;
        } else if kind.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

fn import(programs: &Programs, directory: &Path) -> Result<(), LabError> {
    let (layer_file, archive_file) = (directory.join("layer.tar"), directory.join("images.tar"));
    let file = File::create(&layer_file).map_err(LabError::io("create", &layer_file))?;
    layer::write(programs, std::io::BufWriter::new(file))?;
    let layer = archive::Layer { file: &layer_file, tar: &layer_file };
    let images: Vec<archive::Image> = images(programs).iter().map(Image::described).collect();
    archive::write(&images, layer, archive::architecture(), &archive_file).map_err(LabError::io("write", &archive_file))?;
    let containerd = Containerd::start(directory)?;
    let socket = containerd.socket.display().to_string();
    let archive = archive_file.display().to_string();
    run("ctr", ["--address", &socket, "--namespace", "k8s.io", "images", "import", &archive]).map(drop)
}

/// A containerd that lives for one import.
struct Containerd {
    process: Child,
    socket: PathBuf,
}

impl Containerd {
    fn start(directory: &Path) -> Result<Self, LabError> {
        let socket = directory.join("containerd.sock");
        let configuration = directory.join("containerd.toml");
        // Of the plugins only content, snapshots and images are needed; the one for pods would want a network, and `opt` makes
        // /opt/containerd on the host.
        fs::write(&configuration, "version = 2\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\", \"io.containerd.internal.v1.opt\"]\n")
            .map_err(LabError::io("write", &configuration))?;
        let log_path = directory.join("containerd.log");
        let log = File::create(&log_path).map_err(LabError::io("create", &log_path))?;
        let process = Command::new("setpriv")
            .env("PATH", search_path())
            .args(["--pdeathsig", "KILL", "containerd", "--config"])
            .arg(&configuration)
            .arg("--root")
            .arg(directory.join(CONTAINERD))
            .arg("--state")
            .arg(directory.join("state"))
            .arg("--address")
            .arg(&socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(LabError::start("setpriv"))?;
        let mut started = Self { process, socket };
        let deadline = Instant::now() + ANSWERS_WITHIN;
        let address = started.socket.display().to_string();
        while let Err(error) = run("ctr", ["--address", &address, "version"]) {
            if let Ok(Some(exit)) = started.process.try_wait() {
                let (component, reason) = ("containerd".to_owned(), format!("it ended with {exit}"));
                return Err(LabError::ComponentFailed { component, reason, log_tail: tail(&log_path, LAST_WORDS) });
            }
            if Instant::now() > deadline {
                return Err(error);
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(started)
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        if let Some(process) = i32::try_from(self.process.id()).ok().and_then(rustix::process::Pid::from_raw) {
            // An orderly end, so that its databases are whole.
            let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        }
        let _ = self.process.wait();
    }
}

/// Changes whenever a file of the layer or containerd itself does.
fn key(programs: &Programs) -> Result<String, LabError> {
    let mut hash = Sha256::new();
    let ours = [Program::Kubelet, Program::CoreDns, Program::Pause].map(|program| programs.path(program));
    let containerd = packages::path_of("containerd").unwrap_or_else(|| "/usr/bin/containerd".into());
    let debian = ["/usr/sbin/nft", "/usr/sbin/xtables-nft-multi", "/bin/busybox"].map(Path::new);
    for path in ours.into_iter().chain(debian).chain([containerd.as_path()]) {
        let found = path.canonicalize().and_then(|path| path.metadata()).map_err(LabError::io("find", path))?;
        hash.update(format!("{} {} {}\n", path.display(), found.len(), found.mtime()));
    }
    hash.update(format!("{:?}", images(programs)));
    hash.update(include_str!("layer.rs"));
    Ok(archive::hexadecimal(&hash.finalize()[..8]))
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::symlink, sync::mpsc};

    use super::*;
    use crate::{
        programs::{Search, find_or_build},
        waiting::is_root,
    };

    /// Programs that say they are Kubernetes and are small.
    fn programs(directory: &Path) -> Programs {
        let script = r#"printf '#!/bin/sh\necho Kubernetes v1.35.8\necho CoreDNS-1.12.0\n' > "$1" && chmod 755 "$1""#;
        for name in ["kubernetes", "coredns", "pause"] {
            run("sh", ["-c", script, "sh", directory.join(name).to_str().unwrap()]).unwrap();
        }
        for name in ["kubelet", "kube-scheduler", "kube-proxy"] {
            symlink("kubernetes", directory.join(name)).unwrap();
        }
        let search = Search { explicit: Some(directory.to_owned()), kubebuilder_assets: None, caches: Vec::new(), go: Vec::new() };
        let wanted = [Program::Kubelet, Program::KubeScheduler, Program::KubeProxy, Program::CoreDns, Program::Pause];
        find_or_build(&search, &wanted, &mut |_| {}).unwrap()
    }

    fn unfinished(cache: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(cache.join("images")).into_iter().flatten().flatten().map(|entry| entry.path());
        entries.filter(|path| path.to_string_lossy().contains(".partial-")).collect()
    }

    #[test]
    fn images_are_made_once_believed_while_they_are_whole_and_made_again_when_they_are_not() {
        if !is_root("containerd mounts what it unpacks") {
            return;
        }
        let (cache, given) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let programs = programs(given.path());
        let had_opt = Path::new("/opt/containerd").exists();
        let another = Kept::new(cache.path().join("images"), key(&programs.with_kubernetes_in_one().unwrap()).unwrap());
        let held = another.lock(&mut |_| {}).unwrap();
        let (waits, waiting) = mpsc::channel();
        let store = thread::scope(|scope| {
            let store = scope.spawn(|| ensure_in(cache.path(), &programs, &mut |holder| waits.send(holder).unwrap()).unwrap().path);
            let holder = waiting.recv_timeout(ANSWERS_WITHIN);
            drop(held);
            assert_eq!(holder.unwrap(), format!("process {}", std::process::id()), "who waits says for whom");
            store.join().unwrap()
        });
        let ensured = || ensure_in(cache.path(), &programs, &mut |_| panic!("nobody else makes them")).unwrap().path;
        let database = store.join("io.containerd.metadata.v1.bolt/meta.db");
        let made = fs::metadata(&database).unwrap().ino();
        assert_eq!(fs::metadata(ensured().join("io.containerd.metadata.v1.bolt/meta.db")).unwrap().ino(), made, "they were made twice");
        assert!(unfinished(cache.path()).is_empty());
        assert_eq!(Path::new("/opt/containerd").exists(), had_opt, "containerd keeps something on the host");
        let damaged = vec![0; usize::try_from(fs::metadata(&database).unwrap().len()).unwrap()];
        fs::write(&database, damaged).unwrap();
        ensured();
        assert_ne!(fs::metadata(&database).unwrap().ino(), made, "a damaged store was believed");
        assert!(is_whole(store.parent().unwrap()));
    }

    #[test]
    fn a_cache_that_is_full_is_one_sentence_and_nothing_unfinished_stays_there() {
        if !is_root("only root can make a disk that is full") {
            return;
        }
        let given = tempfile::tempdir().unwrap();
        let programs = programs(given.path());
        let layer = {
            let file = tempfile::NamedTempFile::new().unwrap();
            layer::write(&programs, file.as_file()).unwrap();
            file.as_file().metadata().unwrap().len()
        };
        // Too small for the layer, for its archive, and for what containerd makes of them.
        for size in [layer / 2, layer * 3 / 2, layer * 5 / 2] {
            let cache = tempfile::tempdir().unwrap();
            let place = cache.path().to_str().unwrap();
            run("mount", ["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", place]).unwrap();
            let refused = ensure_in(cache.path(), &programs, &mut |_| {}).map(|store| store.path);
            let left = unfinished(cache.path());
            run("umount", [place]).unwrap();
            let words = refused.expect_err("a full disk").to_string();
            assert!(words.starts_with(&format!("no space left for container images in {place}: ")), "{size}: {words}");
            assert!(words.contains("METALSHIFT_CACHE") && words.lines().count() == 1, "{size}: {words}");
            assert!(left.is_empty(), "{size}: {left:?}");
        }
    }
}
