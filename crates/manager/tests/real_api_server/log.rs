//! The log of this test program: that of all its tests together.

use std::sync::Mutex;

use serde_json::Value;
use tracing_subscriber::filter::LevelFilter;

use crate::listening;

static HEARD: Mutex<Vec<Value>> = Mutex::new(Vec::new());

/// Every test begins with it, so that nothing is said before somebody listens.
pub fn listen() {
    listening::listen(LevelFilter::INFO, |line| HEARD.lock().unwrap().push(serde_json::from_slice(line).unwrap()));
}

/// The lines of all tests so far.
pub fn lines() -> Vec<Value> {
    HEARD.lock().unwrap().clone()
}
