//! The circuit breaker of one MAAS: when nobody answers there, calls end at once instead of each waiting for its own timeout, and one in a
//! while tries whether it is back. [`super::guard`] asks it before every call; the feed asks it when to try next.
//!
//! Only silence counts: an answer of any kind, a refusal too, shows that MAAS is there. What the latest attempt failed of is kept, so that
//! whoever is held back can say what to do about it.

use crate::clock::Clock;
use jiff::Timestamp;
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// So many calls in a row without an answer, and MAAS counts as down. Fewer happen whenever it is restarted.
const FAILURES: u32 = 5;
const FIRST_INTERVAL: Duration = Duration::from_secs(1);
const LONGEST_INTERVAL: Duration = Duration::from_secs(30);

/// The breaker of one endpoint.
#[derive(Debug)]
pub(super) struct Breaker {
    endpoint: String,
    clock: Clock,
    state: Mutex<State>,
    closed: Notify,
}

#[derive(Debug)]
enum State {
    /// Calls pass. How many in a row were not answered, and since when.
    Closed { failures: u32, since: Option<Timestamp> },
    /// Calls are held back, but for one at `probe_at`; `cause` are the words of the latest that was tried.
    Open { since: Timestamp, cause: String, interval: Duration, probe_at: Instant, probing: bool },
}

/// Leave to make a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leave {
    /// As always.
    Call,
    /// To see whether MAAS is back; the breaker waits for its end.
    Probe,
}

impl Breaker {
    /// Of a MAAS that is believed to answer.
    pub fn new(endpoint: String, clock: Clock) -> Self {
        Self { endpoint, clock, state: Mutex::new(State::Closed { failures: 0, since: None }), closed: Notify::new() }
    }

    /// Whether a call may be made; if not, why: in the words of the attempt that failed, for it is the same news. Only a read may be the one that tries: a write without an answer is a burden to its caller.
    pub fn admit(&self, read: bool) -> Result<Leave, String> {
        match &mut *self.lock() {
            State::Closed { .. } => Ok(Leave::Call),
            State::Open { probe_at, probing, .. } if read && !*probing && *probe_at <= Instant::now() => {
                *probing = true;
                Ok(Leave::Probe)
            }
            State::Open { cause, .. } => Err(cause.clone()),
        }
    }

    /// MAAS answered, whatever it said.
    pub fn answered(&self) {
        let mut state = self.lock();
        let opened = match &*state {
            State::Closed { .. } => None,
            State::Open { since, .. } => Some(*since),
        };
        *state = State::Closed { failures: 0, since: None };
        drop(state);
        if let Some(since) = opened {
            tracing::info!(endpoint = self.endpoint, %since, "MAAS answers again");
            self.closed.notify_waiters();
        }
    }

    /// A call was not answered, and this is why. Everybody at this MAAS is told, whatever their key.
    pub fn failed(&self, leave: Leave, cause: &str) {
        let now = Instant::now();
        let mut state = self.lock();
        match &mut *state {
            State::Closed { failures, since } => {
                *failures += 1;
                let since = *since.get_or_insert_with(|| self.clock.now());
                if *failures >= FAILURES {
                    let (interval, probe_at) = (FIRST_INTERVAL, now + FIRST_INTERVAL);
                    *state = State::Open { since, cause: cause.to_owned(), interval, probe_at, probing: false };
                    drop(state);
                    tracing::warn!(endpoint = self.endpoint, %since, cause, "MAAS does not answer: calls end at once until it does");
                }
            }
            State::Open { interval, probe_at, probing, cause: latest, .. } if leave == Leave::Probe => {
                cause.clone_into(latest);
                *interval = (*interval * 2).min(LONGEST_INTERVAL);
                (*probe_at, *probing) = (now + *interval, false);
            }
            // A call from before it opened says nothing new.
            State::Open { .. } => {}
        }
    }

    /// A call was given up by its caller before anything could be known.
    pub fn abandoned(&self, leave: Leave) {
        if let (State::Open { probing, .. }, Leave::Probe) = (&mut *self.lock(), leave) {
            *probing = false;
        }
    }

    /// When the next call may pass, if they are held back now.
    pub fn next_try(&self) -> Option<Instant> {
        match &*self.lock() {
            State::Closed { .. } => None,
            State::Open { probe_at, .. } => Some(*probe_at),
        }
    }

    /// Waits until MAAS answers again after it did not.
    pub async fn closes(&self) {
        self.closed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker() -> Breaker {
        Breaker::new("http://maas".to_owned(), Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap()))
    }

    fn down(breaker: &Breaker) {
        for _ in 0..FAILURES {
            breaker.failed(breaker.admit(true).unwrap(), "connection refused");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_failures_in_a_row_only() {
        let breaker = breaker();
        for _ in 0..20 {
            breaker.failed(Leave::Call, "reset");
            breaker.failed(Leave::Call, "reset");
            breaker.answered();
        }
        assert_eq!(breaker.admit(false), Ok(Leave::Call));
        down(&breaker);
        assert_eq!(breaker.admit(true).unwrap_err(), "connection refused");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_held_back_is_told_of_what_the_latest_try_failed() {
        let breaker = breaker();
        down(&breaker);
        tokio::time::sleep(FIRST_INTERVAL).await;
        breaker.failed(Leave::Call, "a call from before it opened");
        assert_eq!(breaker.admit(false).unwrap_err(), "connection refused");
        breaker.failed(breaker.admit(true).unwrap(), "its certificate expired");
        assert_eq!(breaker.admit(false).unwrap_err(), "its certificate expired");
    }

    #[tokio::test(start_paused = true)]
    async fn one_read_at_a_time_tries_at_growing_intervals() {
        let breaker = breaker();
        down(&breaker);
        let mut waits = Vec::new();
        for _ in 0..7 {
            let wait = breaker.next_try().unwrap() - Instant::now();
            waits.push(wait.as_secs());
            tokio::time::sleep(wait).await;
            assert!(breaker.admit(false).is_err(), "a write never tries");
            assert_eq!(breaker.admit(true), Ok(Leave::Probe));
            assert!(breaker.admit(true).is_err(), "one at a time");
            breaker.failed(Leave::Probe, "connection refused");
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(breaker.admit(true), Ok(Leave::Probe));
        breaker.answered();
        assert_eq!((breaker.admit(false), breaker.next_try()), (Ok(Leave::Call), None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_try_that_was_given_up_is_somebody_elses() {
        let breaker = breaker();
        down(&breaker);
        tokio::time::sleep(FIRST_INTERVAL).await;
        breaker.abandoned(breaker.admit(true).unwrap());
        assert_eq!(breaker.admit(true), Ok(Leave::Probe));
    }
}
