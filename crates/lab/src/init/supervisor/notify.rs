//! Messages of services of type notify: `READY=1`, `STATUS=…`, `MAINPID=…`. Each such unit has a socket of its own, so the sender is known.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::Supervisor;
use super::state::Unit;

static NUMBER: AtomicU64 = AtomicU64::new(0);

impl Supervisor {
    /// Opens the socket of a unit's next run and listens to it until [`close`].
    pub(super) fn listen(self: &Arc<Self>, unit: &Arc<Unit>) -> io::Result<PathBuf> {
        let directory = self.layout.runtime_directory().join("notify");
        fs::create_dir_all(&directory)?;
        let path = directory.join(NUMBER.fetch_add(1, Ordering::Relaxed).to_string());
        let socket = UnixDatagram::bind(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o777))?;
        let (supervisor, unit) = (Arc::clone(self), Arc::clone(unit));
        thread::Builder::new().name("notify".to_owned()).spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(length @ 1..) = socket.recv(&mut buffer) {
                supervisor.heed(&unit, &String::from_utf8_lossy(&buffer[..length]));
            }
        })?;
        Ok(path)
    }

    fn heed(self: &Arc<Self>, unit: &Arc<Unit>, message: &str) {
        for line in message.lines() {
            match line.split_once('=') {
                Some(("READY", "1")) => unit.lock().ready = true,
                Some(("STATUS", text)) => text.clone_into(&mut unit.lock().status.text),
                Some(("MAINPID", pid)) => self.take_main(unit, pid.trim()),
                _ => {}
            }
        }
        unit.poke();
    }

    fn take_main(self: &Arc<Self>, unit: &Arc<Unit>, pid: &str) {
        let Some(pid) = pid.parse().ok().and_then(rustix::process::Pid::from_raw) else { return };
        if unit.lock().main.as_ref().is_none_or(|main| main.pid != pid) {
            self.adopt_main(unit, pid);
        }
    }
}

/// Ends the listening: an empty message is the end.
pub(super) fn close(path: &Path) {
    if let Ok(socket) = UnixDatagram::unbound() {
        let _ = socket.send_to(&[], path);
    }
    let _ = fs::remove_file(path);
}
