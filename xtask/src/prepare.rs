//! Installs what the tests need beside Rust: Debian packages and the real programs of Kubernetes. Used by `test` and `bench`.

use lab::{
    packages,
    programs::{Program, Programs, Search, cache_directory, find_or_build},
};

use crate::output::say;

/// Installs the Debian packages of level nodes that are missing; needs root if any is.
pub fn packages() -> anyhow::Result<()> {
    let missing = packages::missing();
    if missing.is_empty() {
        say("every Debian package of level nodes is there");
    }
    Ok(packages::install(&missing, &mut |line| say(line))?)
}

/// Finds these programs, or builds them into the cache.
pub fn programs(wanted: &[Program]) -> anyhow::Result<Programs> {
    let search = Search::from_environment(None);
    let found = find_or_build(&search, wanted, &mut |progress| {
        if progress.is_news() {
            say(format!("{progress}; it goes to {}", cache_directory().display()));
        }
    })?;
    Ok(found)
}
