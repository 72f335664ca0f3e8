//! Whether the manager has seen the world yet: one gate per watch, opened when its first list is in the cache.
//!
//! The health server asks for all gates, a controller waits for those of its own watches.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::Notify;

/// All gates of one manager.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    gates: Arc<Mutex<Vec<Gate>>>,
}

impl Readiness {
    /// A new closed gate; `name` is what a person reads while it stays closed.
    pub fn gate(&self, name: impl Into<String>) -> Gate {
        let gate = Gate { name: name.into(), state: Arc::default() };
        self.gates.lock().unwrap_or_else(PoisonError::into_inner).push(gate.clone());
        gate
    }

    /// Names of the gates that are still closed, in the order of their making.
    pub fn closed(&self) -> Vec<String> {
        let gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        gates.iter().filter(|gate| !gate.is_open()).map(|gate| gate.name.clone()).collect()
    }
}

/// One condition of readiness. It opens once and stays open: a watch that broke later still has a cache to work from.
#[derive(Debug, Clone)]
pub struct Gate {
    name: String,
    state: Arc<GateState>,
}

/// A flag and who waits for it. Not tokio's watch channel: that wakes its receivers in random order.
#[derive(Debug, Default)]
struct GateState {
    open: AtomicBool,
    opened: Notify,
}

impl Gate {
    /// Opens it.
    pub fn open(&self) {
        self.state.open.store(true, Ordering::Release);
        self.state.opened.notify_waiters();
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.state.open.load(Ordering::Acquire)
    }

    /// Waits until it is open.
    pub async fn opened(&self) {
        // Made before the look, so that an opening after the look wakes it.
        let opened = self.state.opened.notified();
        if !self.is_open() {
            opened.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn closed_gates_are_named_until_they_open() {
        let readiness = Readiness::default();
        let (machines, clusters) = (readiness.gate("machines"), readiness.gate("clusters"));
        assert_eq!(readiness.closed(), ["machines", "clusters"]);
        machines.open();
        machines.opened().await;
        assert_eq!(readiness.closed(), ["clusters"]);
        clusters.open();
        assert!(readiness.closed().is_empty());
    }
}
