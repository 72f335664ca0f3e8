//! What containerd makes of the images, kept in the cache: importing takes seconds and a quarter of a gigabyte of writing, a copy
//! of the result almost nothing.

use std::{
    fs::{self, File},
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
    programs::{Program, Programs, cache_directory},
};

const ANSWERS_WITHIN: Duration = Duration::from_mins(1);

/// The directory of a containerd that has all images; nobody removes it while this value lives.
pub(crate) struct Store {
    pub path: PathBuf,
    _lock: KeptLock,
}

/// Finds the store for these programs or makes it. Two labs that want it at once wait for each other.
pub(crate) fn ensure(programs: &Programs) -> Result<Store, LabError> {
    let programs = &programs.with_kubernetes_in_one().ok_or(LabError::SeparatePrograms)?;
    let kept = Kept::new(cache_directory().join("images"), key(programs)?);
    let finished = kept.path();
    let lock = kept.lock(&mut |holder| tracing::info!(holder, "waiting for the images")).map_err(LabError::io("lock", &finished))?;
    if !finished.exists() {
        let partial = kept.partial().map_err(LabError::io("make a place beside", &finished))?;
        import(programs, &partial)?;
        fs::rename(partial.join("containerd"), &finished).map_err(LabError::io("keep", &finished))?;
        let _ = fs::remove_dir_all(&partial);
        kept.remove_unused();
    }
    kept.note_use();
    Ok(Store { path: finished, _lock: lock })
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
            .arg(directory.join("containerd"))
            .arg("--state")
            .arg(directory.join("state"))
            .arg("--address")
            .arg(&socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(LabError::start("setpriv"))?;
        let started = Self { process, socket };
        let deadline = Instant::now() + ANSWERS_WITHIN;
        let address = started.socket.display().to_string();
        while let Err(error) = run("ctr", ["--address", &address, "version"]) {
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
