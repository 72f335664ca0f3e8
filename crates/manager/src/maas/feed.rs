//! The feed of one account: reads what is new in MAAS's event log and pokes the objects whose machines it names. Nothing else polls MAAS
//! for changes. [`super::MaasAccounts::follow`] runs one for each account, all in one task.

use maas_client::{Batch, Error, EventFilter, EventFollower, EventLevel, FollowSettings, MOST_EVENTS, Machine, MachineFilter, SystemId};
use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, sleep_until};

use super::{account::AccountState, accounts::MaasAccounts, connection::Connection};

/// From one poll to the next while something is in flight.
const BUSY_INTERVAL: Duration = Duration::from_secs(1);
/// From one poll to the next at rest: whatever people do to a machine in MAAS is seen within two seconds.
const QUIET_INTERVAL: Duration = Duration::from_millis(1200);
/// The longest wait after failures.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// A feed that failed for so long has to be told to the objects: they say that MAAS is not available, and look again when it is.
const LASTING: Duration = Duration::from_mins(1);

pub(super) struct Feed {
    accounts: MaasAccounts,
    state: Arc<AccountState>,
    following: Option<Following>,
    failing: Option<Failing>,
    polled: Option<Instant>,
    /// Numbers the times all objects were poked, for the jitter.
    occasions: u64,
    swept: Instant,
    /// Our machines as the last sweep saw them.
    seen: BTreeMap<SystemId, String>,
}

struct Following {
    connection: Arc<Connection>,
    follower: EventFollower,
    begun: bool,
}

#[derive(Clone, Copy)]
struct Failing {
    since: Instant,
    count: u32,
    told: bool,
}

impl Feed {
    pub fn new(accounts: MaasAccounts, state: Arc<AccountState>) -> Self {
        Self { accounts, state, following: None, failing: None, polled: None, occasions: 0, swept: Instant::now(), seen: BTreeMap::new() }
    }

    /// Follows for ever.
    pub async fn run(mut self) -> Infallible {
        loop {
            self.turn().await;
            self.poll().await;
            self.sweep().await;
        }
    }

    /// Waits for the time of the next poll. The time is looked at again whenever something changes.
    async fn turn(&mut self) {
        let state = Arc::clone(&self.state);
        loop {
            if !state.is_in_use() {
                self.following = None;
                state.set_followed(false);
                state.wake.notified().await;
                continue;
            }
            let due = self.due();
            if due <= Instant::now() {
                return;
            }
            let breaker = Arc::clone(&state.connection().endpoint.breaker);
            tokio::select! {
                biased;
                () = state.wake.notified() => {}
                () = breaker.closes(), if self.failing.is_some() => return,
                () = sleep_until(due) => {}
            }
        }
    }

    fn due(&self) -> Instant {
        let Some(polled) = self.polled else { return Instant::now() };
        let Some(failing) = self.failing else {
            let busy = self.state.watched().is_busy();
            return polled + if busy { BUSY_INTERVAL } else { QUIET_INTERVAL };
        };
        if let Some(next_try) = self.state.connection().endpoint.breaker.next_try() {
            return next_try.max(polled + BUSY_INTERVAL);
        }
        let wait = BUSY_INTERVAL.saturating_mul(1 << failing.count.saturating_sub(1).min(10)).min(LONGEST_WAIT);
        polled
            + self.accounts.jitter().spread(wait, 200, &format!("feed {} {}", self.state.endpoint, self.state.user), failing.count.into())
    }

    async fn poll(&mut self) {
        let connection = self.state.connection();
        if self.following.as_ref().is_none_or(|following| !Arc::ptr_eq(&following.connection, &connection)) {
            // The feed has its own pace. Beginning anew loses no change: all objects are poked.
            let settings = FollowSettings { interval: Duration::ZERO, ..FollowSettings::default() };
            let follower = connection.client.events().follow(EventFilter::new().level(EventLevel::Debug), None, settings);
            self.following = Some(Following { connection: Arc::clone(&connection), follower, begun: false });
        }
        self.polled = Some(Instant::now());
        let Some(following) = &mut self.following else { return };
        match following.follower.next().await {
            Ok(batch) => self.took(&batch),
            Err(Error::Unauthenticated { .. }) if self.has_another_key(&connection).await => self.polled = None,
            Err(error) => self.failed(&error),
        }
    }

    /// Finds what no event tells, such as a machine that was deleted: one list of all our machines, now and then.
    async fn sweep(&mut self) {
        let Some(following) = &self.following else { return };
        if self.failing.is_some() || self.swept.elapsed() < self.accounts.sweep_period() || self.state.watched().is_empty() {
            return;
        }
        self.swept = Instant::now();
        let machines = following.connection.client.machines();
        let listed = match machines.list(&MachineFilter::new().owner(&self.state.user)).await {
            // Before 3.3 MAAS has no such filter.
            Err(Error::Refused { .. }) => machines.list(&MachineFilter::new()).await,
            listed => listed,
        };
        let Ok(mut machines) = listed else { return };
        machines.retain(|machine| machine.owner.as_ref().is_some_and(|owner| *owner == self.state.user));
        let look = |machine: &Machine| format!("{} {:?} {}", machine.status, machine.power_state, machine.locked);
        let now: BTreeMap<SystemId, String> = machines.iter().map(|machine| (machine.system_id.clone(), look(machine))).collect();
        let before = std::mem::replace(&mut self.seen, now);
        let mut watched = self.state.watched();
        let changed: BTreeSet<SystemId> = watched
            .machines()
            .filter(|id| before.contains_key(id) && before.get(id) != self.seen.get(id) || !self.seen.contains_key(id))
            .collect();
        watched.poke(&changed.iter().collect());
    }

    fn took(&mut self, batch: &Batch) {
        let begins = self.following.as_mut().is_some_and(|following| !std::mem::replace(&mut following.begun, true));
        let told = self.failing.take().is_some_and(|failing| failing.told);
        if told {
            tracing::info!(endpoint = self.state.endpoint, user = self.state.user, "the event log of MAAS can be read again");
        }
        if begins || batch.reset {
            self.state.failures.forget();
        }
        if begins || batch.reset || told {
            self.poke_all();
        }
        self.state.set_followed(true);
        let now = self.accounts.clock().now();
        self.state.failures.take(&batch.events, now);
        let machines: BTreeSet<_> = batch.events.iter().filter_map(|event| event.node.as_ref()).collect();
        self.state.watched().poke(&machines);
        if let Some(newest) = batch.events.iter().filter_map(maas_client::Event::created_at).max() {
            // Two clocks that differ must not count as time travel.
            let age = Duration::try_from(now.duration_since(newest)).unwrap_or_default();
            self.accounts.metrics().event_seen(&self.state.endpoint, age);
        }
        if batch.events.len() >= MOST_EVENTS as usize / 2 {
            // It looks as if there were more than fit.
            self.polled = None;
        }
    }

    fn failed(&mut self, error: &Error) {
        self.state.set_followed(false);
        self.accounts.metrics().feed_failed(&self.state.endpoint);
        let mut failing = self.failing.unwrap_or(Failing { since: Instant::now(), count: 0, told: false });
        failing.count = failing.count.saturating_add(1);
        tracing::debug!(endpoint = self.state.endpoint, user = self.state.user, %error, failures = failing.count, "could not read the event log");
        if !failing.told && failing.since.elapsed() >= LASTING {
            failing.told = true;
            tracing::warn!(endpoint = self.state.endpoint, user = self.state.user, %error, "the event log of MAAS cannot be read");
            self.poke_all();
        }
        self.failing = Some(failing);
    }

    fn poke_all(&mut self) {
        self.occasions += 1;
        self.state.watched().poke_all(self.accounts.jitter(), self.occasions);
    }

    /// The key is not accepted any more: whether the Secrets it came from hold a newer one.
    async fn has_another_key(&self, refused: &Arc<Connection>) -> bool {
        for (namespace, identity) in self.state.sources() {
            if let Err(error) = self.accounts.of(&namespace, identity.as_deref()).await {
                tracing::debug!(%error, namespace, "looked for a newer key");
            }
            if !Arc::ptr_eq(&self.state.connection(), refused) {
                return true;
            }
        }
        false
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.state.set_followed(false);
    }
}
