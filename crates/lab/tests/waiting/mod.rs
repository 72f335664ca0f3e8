//! Waits of the tests: on conditions, with deadlines.

use std::time::{Duration, Instant};

/// Looks until the condition holds; fails with its name when it does not in time.
pub async fn until(what: &str, within: Duration, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + within;
    while !condition().await {
        assert!(Instant::now() < deadline, "after {} s still not true: {what}", within.as_secs());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
