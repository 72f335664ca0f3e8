//! Waits of the tests: on conditions, with deadlines. The tests of `metalshift` use this file too.
#![allow(dead_code, reason = "every test uses some of it")]

use std::time::{Duration, Instant};

/// Looks until the condition holds; fails with its name when it does not in time.
pub async fn until(what: &str, within: Duration, mut condition: impl AsyncFnMut() -> bool) {
    until_some(what, within, async || condition().await.then_some(())).await;
}

/// Looks until there is something, and takes it.
pub async fn until_some<Found>(what: &str, within: Duration, mut look: impl AsyncFnMut() -> Option<Found>) -> Found {
    let deadline = Instant::now() + within;
    loop {
        let began = Instant::now();
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "after {} s still not true: {what}", within.as_secs());
        // A look may start whole programs: who waits must not keep those busy that are waited for.
        tokio::time::sleep((began.elapsed() * 4).clamp(Duration::from_millis(100), Duration::from_secs(3))).await;
    }
}

/// Whether this is root; says why the test is left out if not.
pub fn is_root(reason: &str) -> bool {
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !root {
        left_out(reason);
    }
    root
}

/// Says why a test is left out; continuous integration leaves nothing out. `cargo xtask test` reads `CI` in the same way.
pub fn left_out(reason: &str) {
    let continuous_integration = std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()));
    assert!(!continuous_integration, "continuous integration leaves nothing out: {reason}");
    eprintln!("left out: {reason}");
}
