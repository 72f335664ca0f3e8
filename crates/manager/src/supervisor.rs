//! The only place where tasks are started. A task has a name, its panic is a value, and dropping the supervisor ends all of them.

use futures::FutureExt;
use std::{any::Any, panic::AssertUnwindSafe, time::Duration};
use tokio::{task::JoinSet, time::timeout};

/// A group of tasks that live and end together.
#[derive(Debug, Default)]
pub struct Supervisor {
    tasks: JoinSet<Ended>,
    names: Vec<String>,
}

/// A task that is over.
#[derive(Debug)]
pub struct Ended {
    /// Its name.
    pub name: String,
    /// What it said when it panicked, if it did.
    pub panic: Option<String>,
}

impl Supervisor {
    /// Starts a task.
    #[expect(clippy::disallowed_methods, reason = "the one place that may start tasks")]
    pub fn start(&mut self, name: impl Into<String>, task: impl Future<Output = ()> + Send + 'static) {
        let name = name.into();
        self.names.push(name.clone());
        self.tasks.spawn(
            AssertUnwindSafe(task)
                .catch_unwind()
                .map(move |result| Ended { name, panic: result.err().map(|payload| panic_message(payload.as_ref())) }),
        );
    }

    /// Waits for the next task to end; for ever if there is none.
    pub async fn ended(&mut self) -> Ended {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(ended)) => {
                    self.names.retain(|name| *name != ended.name);
                    return ended;
                }
                // Nothing cancels a task of the set and its panics are caught within.
                Some(Err(_)) => {}
                None => return std::future::pending().await,
            }
        }
    }

    /// Waits until all tasks have ended, at most this long, and ends the rest. Returns the names of those.
    pub async fn finish(mut self, within: Duration) -> Vec<String> {
        let all = async {
            while !self.tasks.is_empty() {
                drop(self.ended().await);
            }
        };
        if timeout(within, all).await.is_ok() {
            return Vec::new();
        }
        self.tasks.shutdown().await;
        self.names
    }
}

/// The words of a panic.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string).or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a value that is not text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panicking_task_ends_with_its_name_and_words() {
        let mut supervisor = Supervisor::default();
        supervisor.start("fragile", async { panic!("broken on purpose") });
        let ended = supervisor.ended().await;
        assert_eq!((ended.name.as_str(), ended.panic.as_deref()), ("fragile", Some("broken on purpose")));
    }

    #[tokio::test(start_paused = true)]
    async fn finishing_names_what_did_not_end_in_time() {
        let mut supervisor = Supervisor::default();
        supervisor.start("quick", async {});
        supervisor.start("stuck", std::future::pending());
        assert_eq!(supervisor.finish(Duration::from_secs(5)).await, ["stuck"]);
    }
}
