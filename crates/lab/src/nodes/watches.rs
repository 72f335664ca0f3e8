//! How many programs may watch files. Each kubelet, each containerd and most controllers do, and most hosts allow a user 128: two clusters
//! in labs are more than that, and what starts next ends with "too many open files".

use std::{fs, path::Path};

/// Enough for as many machines as a host has memory for.
const ENOUGH: u32 = 8192;
/// One bound for the whole host: no namespace has its own.
const BOUND: &str = "/proc/sys/fs/inotify/max_user_instances";

/// Raises the host's bound if it is low. It stays: it costs nothing by itself, and other labs may have come to need it.
pub(super) fn allow_enough(report: &(dyn Fn(&str) + Sync)) {
    raise(Path::new(BOUND), report);
}

/// A host that does not let us is no reason to give up: a few machines need less.
fn raise(bound: &Path, report: &(dyn Fn(&str) + Sync)) {
    let allowed = fs::read_to_string(bound).ok().and_then(|text| text.trim().parse::<u32>().ok());
    let Some(few) = allowed.filter(|allowed| *allowed < ENOUGH) else { return };
    if fs::write(bound, ENOUGH.to_string()).is_ok() {
        report(&format!("raised fs.inotify.max_user_instances of this host from {few} to {ENOUGH}: every machine needs several"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_low_bound_is_raised_and_that_is_said_and_a_high_one_stays() {
        let directory = tempfile::tempdir().unwrap();
        let bound = directory.path().join("max_user_instances");
        let said = Mutex::new(Vec::new());
        let report = |words: &str| said.lock().unwrap().push(words.to_owned());
        raise(&bound, &report);
        assert!(!bound.exists(), "nothing is made where there is no bound");
        for (before, after) in [("128\n", "8192"), ("8192\n", "8192\n"), ("100000\n", "100000\n")] {
            fs::write(&bound, before).unwrap();
            raise(&bound, &report);
            assert_eq!(fs::read_to_string(&bound).unwrap(), after);
        }
        assert!(matches!(&said.into_inner().unwrap()[..], [only] if only.contains("from 128 to 8192")));
    }
}
