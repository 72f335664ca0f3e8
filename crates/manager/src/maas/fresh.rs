//! A value that is read again when it is too old, by one reader at a time: whoever comes meanwhile waits for that reading and shares it.
//! Secrets, identities and catalogues are kept in these.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::{sync::Mutex, time::Instant};

/// One value with its age.
#[derive(Debug)]
pub(super) struct Fresh<T, E> {
    kept: Mutex<Option<Kept<T, E>>>,
    /// Counts up whenever what is kept must not be used any more.
    epoch: AtomicU64,
}

#[derive(Debug)]
struct Kept<T, E> {
    at: Instant,
    epoch: u64,
    outcome: Result<T, E>,
}

impl<T, E> Default for Fresh<T, E> {
    fn default() -> Self {
        Self { kept: Mutex::default(), epoch: AtomicU64::new(0) }
    }
}

impl<T: Clone, E: Clone> Fresh<T, E> {
    /// The value if it is younger than `longest`, else what `read` brings. An error is shared with those who waited for it and then
    /// forgotten. `read` is polled only if it is needed.
    pub async fn get(&self, longest: Duration, read: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let asked = Instant::now();
        let mut kept = self.kept.lock().await;
        let epoch = self.epoch.load(Ordering::Acquire);
        if let Some(Kept { at, epoch: of, outcome }) = &*kept
            && *of == epoch
        {
            match outcome {
                Ok(value) if at.elapsed() < longest => return Ok(value.clone()),
                Err(error) if *at > asked => return Err(error.clone()),
                _ => {}
            }
        }
        let outcome = read.await;
        *kept = Some(Kept { at: Instant::now(), epoch, outcome: outcome.clone() });
        outcome
    }

    /// The next to ask reads anew; a reading under way is not kept.
    pub fn forget(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const MINUTE: Duration = Duration::from_mins(1);

    async fn reading(count: &Cell<u32>, outcome: Result<u32, u32>) -> Result<u32, u32> {
        count.set(count.get() + 1);
        tokio::time::sleep(Duration::from_secs(1)).await;
        outcome
    }

    #[tokio::test(start_paused = true)]
    async fn many_who_ask_at_once_share_one_reading_and_its_failure() {
        let (fresh, count) = (Fresh::default(), Cell::new(0));
        let all = (0..5).map(|_| fresh.get(MINUTE, reading(&count, Err(7))));
        assert_eq!(futures::future::join_all(all).await, [Err(7); 5]);
        assert_eq!(count.get(), 1);
        let all = (0..5).map(|_| fresh.get(MINUTE, reading(&count, Ok(8))));
        assert_eq!(futures::future::join_all(all).await, [Ok(8); 5]);
        assert_eq!(count.get(), 2, "a failure is not kept");
    }

    #[tokio::test(start_paused = true)]
    async fn a_value_is_read_again_when_it_is_old_or_forgotten() {
        let (fresh, count) = (Fresh::default(), Cell::new(0));
        for (wait, expected) in [(0, 1), (59, 1), (1, 2)] {
            tokio::time::sleep(Duration::from_secs(wait)).await;
            fresh.get(MINUTE, reading(&count, Ok(1))).await.unwrap();
            assert_eq!(count.get(), expected, "after {wait} s more");
        }
        fresh.forget();
        fresh.get(MINUTE, reading(&count, Ok(1))).await.unwrap();
        assert_eq!(count.get(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_forgotten_while_it_is_read_is_not_kept() {
        let (fresh, count) = (Fresh::default(), Cell::new(0));
        let forgetting = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            fresh.forget();
        };
        let (value, ()) = tokio::join!(fresh.get(MINUTE, reading(&count, Ok(1))), forgetting);
        assert_eq!(value, Ok(1));
        fresh.get(MINUTE, reading(&count, Ok(1))).await.unwrap();
        assert_eq!(count.get(), 2);
    }
}
