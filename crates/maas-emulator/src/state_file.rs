//! A world that survives its process: JSON in a file, replaced as a whole, so that a crash leaves the old one or the new one.

use std::fs;
use std::io::{self, Write as _};
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
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
    file.write_all(&text).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// What has changed so far: equal numbers mean nothing is left to save.
pub fn changes(emulator: &Emulator) -> (u64, u32) {
    emulator.world(|world| (world.commits, world.events.next_id()))
}
