//! A world that survives its process: JSON in a file, replaced as a whole, so that a process killed at any moment leaves the old one or
//! the new one.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::emulator::Emulator;
use crate::world::World;

/// Why a saved world could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file could not be read.
    #[error("the state in {} could not be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not a saved world.
    #[error("{} is not a state this emulator wrote: {source}; move it away to begin anew", path.display())]
    Understand {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// The file could not be written.
    #[error("the state could not be written to {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The saved world; none when there is no file.
pub fn load(path: &Path) -> Result<Option<World>, StateError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(StateError::Read { path: path.to_owned(), source }),
    };
    serde_json::from_slice(&text).map(Some).map_err(|source| StateError::Understand { path: path.to_owned(), source })
}

/// Saves the world. The file holds API keys, so only its owner may read it.
pub fn save(path: &Path, emulator: &Emulator) -> Result<(), StateError> {
    let failed = |source: io::Error| StateError::Write { path: path.to_owned(), source };
    let text = emulator.world(|world| serde_json::to_vec(world)).map_err(|error| failed(error.into()))?;
    // Always of this name, so that a process killed here leaves one at most, which the next one writes over.
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).map_err(failed)?;
    file.write_all(&text).map_err(failed)?;
    fs::rename(&new, path).map_err(failed)
}

/// Keeps a file in step with an emulator. Whoever waits for the file while it is written finds its own change in the next one, so many
/// calls at once cost few writes.
pub struct Saver {
    path: PathBuf,
    emulator: Emulator,
    saved: tokio::sync::Mutex<Option<(u64, u32)>>,
}

impl Saver {
    /// A file for an emulator, written once to see that it can be.
    pub fn new(path: PathBuf, emulator: Emulator) -> Result<Self, StateError> {
        save(&path, &emulator)?;
        Ok(Saver { path, emulator, saved: tokio::sync::Mutex::new(None) })
    }

    /// Returns when everything that has happened so far is in the file.
    pub async fn save(&self) -> Result<(), StateError> {
        let mut saved = self.saved.lock().await;
        let changes = self.emulator.world(|world| (world.commits, world.events.next_id()));
        if *saved != Some(changes) {
            save(&self.path, &self.emulator)?;
            *saved = Some(changes);
        }
        Ok(())
    }
}
