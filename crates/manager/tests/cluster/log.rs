//! What this program says in its log, apart for every test: under paused time all of a test is in one thread.

use std::cell::RefCell;

use serde_json::Value;
use tracing_subscriber::filter::LevelFilter;

use crate::listening;

thread_local! {
    static HEARD: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
}

/// Listens to the log from here on.
pub fn listen() {
    listening::listen(LevelFilter::INFO, |line| HEARD.with_borrow_mut(|heard| heard.push(serde_json::from_slice(line).unwrap())));
    drop(lines());
}

/// What this test logged since it last asked, as a verbosity without a wish has it.
pub fn lines() -> Vec<Value> {
    HEARD.take()
}
