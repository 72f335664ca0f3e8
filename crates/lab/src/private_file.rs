//! Files with keys, tokens and certificates: whoever else has an account on this computer cannot read them.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use crate::LabError;

/// Writes a file for its owner alone, also if it was there before with other rights.
pub fn write_private(path: &Path, content: impl AsRef<[u8]>) -> Result<(), LabError> {
    let write = || {
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        file.write_all(content.as_ref())
    };
    write().map_err(LabError::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_its_owners_alone_whatever_it_was_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        fs::write(&path, "something long and old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write_private(&path, "secret").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"secret");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
