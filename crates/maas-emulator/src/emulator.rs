//! The emulator itself: the world behind its lock, the clock, the hardware, the journal. [`Emulator::answer`] is the whole MAAS; the
//! server and in-process clients both call it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use jiff::Timestamp;
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, later};
use crate::faults::{CallHarm, Fault, Strike, UnknownTarget, seconds};
use crate::fleet::Fleet;
use crate::hardware::{Hardware, Outcome, Report, Simulated};
use crate::http::answer::{Answer, Refusal, Reply};
use crate::http::call::SavedCall;
use crate::http::form::Form;
use crate::http::oauth::{self, Credentials};
use crate::http::route::{self, Access, Routed};
use crate::journal::{Entry, Journal};
use crate::lifecycle;
use crate::load::{self, FleetError};
use crate::schedule::Due;
use crate::version::Version;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;

/// How long a transaction that makes a name takes, and therefore how far apart two of them may begin without seeing each other: MAAS
/// does not stop the second, and clients must expect it.
const NAMING: Duration = Duration::from_millis(20);

/// How long a call waits for others that are to come together with it.
const GATHERING: Duration = Duration::from_secs(30);

/// Bodies above this are refused as the web server in front of MAAS refuses them.
pub const LARGEST_BODY: usize = 64 << 20;

/// How an emulator is set up.
pub struct Options {
    /// Where the time comes from.
    pub clock: Clock,
    /// What chance begins with.
    pub seed: u64,
    /// The machines behind the API.
    pub hardware: Arc<dyn Hardware>,
    /// Whether keys that are made come from the kernel's randomness: whoever knows the seed must not know keys of machines that really boot.
    pub unguessable_keys: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { clock: Clock::manual(Timestamp::UNIX_EPOCH), seed: 1, hardware: Arc::new(Simulated), unguessable_keys: false }
    }
}

/// A MAAS in this process. Clones are the same MAAS.
#[derive(Clone)]
pub struct Emulator {
    shared: Arc<Shared>,
}

struct Shared {
    version: Version,
    clock: Clock,
    hardware: Arc<dyn Hardware>,
    world: Mutex<World>,
    journal: Mutex<Journal>,
    /// Where calls wait for each other, by fault and their number.
    gatherings: Mutex<BTreeMap<(usize, u32), Gathering>>,
}

/// Calls of a fault that wait for each other.
#[derive(Clone)]
struct Gathering {
    barrier: Arc<Barrier>,
    /// Cancelled when the fault is over.
    ended: CancellationToken,
}

/// The connection ended without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection was reset")]
pub struct ConnectionReset;

enum Judged {
    Answer(Answer),
    Reset,
}

/// A call under way. However it ends, it is in the journal.
struct Noted<'emulator> {
    emulator: &'emulator Emulator,
    entry: Entry,
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        let mut entry = std::mem::take(&mut self.entry);
        if std::thread::panicking() {
            entry.status = 500;
        }
        self.emulator.journal(|journal| journal.add(entry));
    }
}

impl Emulator {
    /// A MAAS that holds this fleet.
    pub fn new(fleet: Fleet, options: Options) -> Result<Self, FleetError> {
        let world = load::world(fleet, options.clock.now(), options.seed, options.unguessable_keys)?;
        let emulator = Emulator::resume(world, options);
        // Machines that begin in the middle of something go on with it.
        emulator.world(|_| ());
        Ok(emulator)
    }

    /// A MAAS that goes on from a saved world.
    pub fn resume(mut world: World, options: Options) -> Self {
        world.unguessable_keys = options.unguessable_keys;
        Emulator {
            shared: Arc::new(Shared {
                version: world.version,
                clock: options.clock,
                hardware: options.hardware,
                world: Mutex::new(world),
                journal: Mutex::new(Journal::default()),
                gatherings: Mutex::default(),
            }),
        }
    }

    /// The release it is.
    pub fn version(&self) -> Version {
        self.shared.version
    }

    /// Its clock.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Looks at the world or changes it directly, as of now.
    pub fn world<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.settled();
        let result = look(&mut world);
        self.pass_on_orders(&mut world);
        result
    }

    /// Reads the journal.
    pub fn journal<T>(&self, read: impl FnOnce(&mut Journal) -> T) -> T {
        read(&mut self.shared.journal.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets something go wrong from now on.
    pub fn inject(&self, fault: Fault) -> Result<(), UnknownTarget> {
        self.inject_all(vec![fault])
    }

    /// Lets several things go wrong from now on, or none of them if one is about something that does not exist.
    pub fn inject_all(&self, faults: Vec<Fault>) -> Result<(), UnknownTarget> {
        self.world(|world| {
            let aimed = faults.into_iter().map(|fault| world.aimed(fault)).collect::<Result<Vec<Fault>, UnknownTarget>>()?;
            world.commits += 1;
            for fault in aimed {
                world.inject(fault);
            }
            Ok(())
        })
    }

    /// Ends all faults; what was to happen to machines does not.
    pub fn clear_faults(&self) {
        self.world(|world| {
            world.commits += 1;
            world.faults.clear();
            world.schedule.forget_incidents();
        });
        // Whoever waits for others of a fault that is over goes on, and nobody joins them.
        for gathering in std::mem::take(&mut *self.gatherings()).into_values() {
            gathering.ended.cancel();
        }
    }

    /// Begins a deployment under way anew, for hardware that has lost the order.
    pub fn boot_again(&self, machine: Id<Machine>) {
        self.world(|world| lifecycle::deploy::boot(world, machine));
    }

    /// How long MAAS still waits for what a machine was last told; nothing if it does not wait.
    pub fn patience_left(&self, machine: Id<Machine>) -> Option<Duration> {
        self.world(|world| {
            let end = world.schedule.end_of_patience(machine, world.machines.get(machine)?.boot)?;
            Some(Duration::try_from(end.duration_since(world.now)).unwrap_or_default())
        })
    }

    /// Takes a report of hardware that works in its own time.
    pub fn report(&self, machine: Id<Machine>, boot: u64, outcome: Outcome) {
        self.world(|world| lifecycle::take_report(world, &Report { machine, boot, outcome }));
    }

    /// Notes an address that a machine was seen with, such as DHCP gave it; one seen before is forgotten.
    pub fn observe_address(&self, machine: Id<Machine>, ip: IpAddr) {
        self.world(|world| world.observe_address(machine, ip));
    }

    /// Answers a request. Once this future was polled the request has been sent: dropping it is a client that gives up, and what was
    /// asked for is done and noted all the same, at the time it would have been. That is a task of its own, so this needs a runtime of
    /// tokio; on one thread the tasks run in the order of the calls, and a paused clock waits for them.
    pub async fn answer(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ConnectionReset> {
        let emulator = self.clone();
        match tokio::spawn(async move { emulator.carry_out(request).await }).await {
            Ok(answered) => answered,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is ending, and everything in it.
                Err(_) => Err(ConnectionReset),
            },
        }
    }

    /// Does what a request asks for, as long as somebody waits for it. A panic is noted as 500 and goes on to the caller.
    pub(crate) async fn carry_out(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ConnectionReset> {
        let (parts, body) = request.into_parts();
        let uri = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str).to_owned();
        let mut noted = Noted {
            emulator: self,
            entry: Entry {
                at: self.shared.clock.now(),
                method: parts.method.to_string(),
                uri,
                request: Some(body.clone()),
                ..Entry::default()
            },
        };
        match self.judged(&parts, &body, &mut noted.entry).await {
            Judged::Reset => Err(ConnectionReset),
            Judged::Answer(answer) => {
                noted.entry.status = answer.status;
                noted.entry.size = answer.body.len();
                noted.entry.response = Some(answer.body.clone());
                Ok(answer.into_response(self.shared.version))
            }
        }
    }

    /// Finds out who calls and for what, and does it.
    async fn judged(&self, parts: &http::request::Parts, body: &Bytes, entry: &mut Entry) -> Judged {
        let uri = entry.uri.clone();
        let (path, query) = uri.split_once('?').unwrap_or((&uri, ""));
        let content_type = header(parts, http::header::CONTENT_TYPE).unwrap_or_default();
        if body.len() > LARGEST_BODY {
            self.note_claims(entry, parts, &Bytes::new());
            return Judged::Answer(Answer::too_large());
        }
        let mut routed = match route::route(&parts.method, path, query, content_type, body) {
            Ok(routed) => routed,
            Err(Refusal(answer)) => {
                self.note_claims(entry, parts, body);
                return Judged::Answer(*answer);
            }
        };
        entry.operation.clone_from(&routed.call.operation);
        let host = parts.uri.authority().map(http::uri::Authority::as_str).or_else(|| header(parts, http::header::HOST));
        let credentials = Credentials {
            header: header(parts, http::header::AUTHORIZATION),
            method: &parts.method,
            address: format!("http://{}{path}", host.unwrap_or_default()),
            query: &routed.call.query,
            form: &routed.call.form,
        };
        entry.key = oauth::claimed_token(&credentials);
        let known = {
            let mut world = self.settled();
            let known = match oauth::authenticate(&mut world, &credentials) {
                Err(_) if routed.endpoint.access == Access::Everybody => Ok(None),
                known => known,
            };
            entry.user = match &known {
                Ok(user) => user.map(|user| world.user_name(user).to_owned()),
                Err(_) => entry.key.as_deref().and_then(|key| oauth::user_with_token(&world, key)),
            };
            known.map(|user| {
                let strike = world.faults.strike_call(&routed.call, entry.user.as_deref());
                // What a fault has done is part of the state, also when it kept the call from doing anything.
                world.commits += u64::from(strike.is_some());
                (user, strike, world.commits)
            })
        };
        let (user, strike, began) = match known {
            Ok(known) => known,
            Err(Refusal(answer)) => return Judged::Answer(*answer),
        };
        routed.call.user = user;
        routed.call.began = began;
        routed.call.forget_credentials();
        // Calls that come together begin together, as transactions of one moment do.
        if routed.names_something() {
            tokio::time::sleep(NAMING).await;
        } else {
            tokio::task::yield_now().await;
        }
        self.judge(&routed, &uri, content_type, strike).await
    }

    /// Notes who a request says it is from that never became a call.
    fn note_claims(&self, entry: &mut Entry, parts: &http::request::Parts, body: &Bytes) {
        let read = |text: &[u8]| Form::url_encoded(text).unwrap_or_default();
        let content_type = header(parts, http::header::CONTENT_TYPE).unwrap_or_default();
        entry.key = oauth::claimed_token(&Credentials {
            header: header(parts, http::header::AUTHORIZATION),
            method: &parts.method,
            address: String::new(),
            query: &read(parts.uri.query().unwrap_or_default().as_bytes()),
            form: &if route::is_form(content_type) { read(body) } else { Form::default() },
        });
        entry.user = entry.key.as_deref().and_then(|key| oauth::user_with_token(&self.settled(), key));
    }

    /// Notes a call that the server refused before it became one.
    pub fn note_refused(&self, parts: &http::request::Parts, status: http::StatusCode) {
        let mut entry = Entry {
            at: self.shared.clock.now(),
            method: parts.method.to_string(),
            uri: parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str).to_owned(),
            status: status.as_u16(),
            ..Entry::default()
        };
        self.note_claims(&mut entry, parts, &Bytes::new());
        self.journal(|journal| journal.add(entry));
    }

    /// Notes a request whose head could not be read, so that nobody knows what it was.
    pub fn note_unread(&self, status: http::StatusCode) {
        let entry = Entry { at: self.shared.clock.now(), status: status.as_u16(), ..Entry::default() };
        self.journal(|journal| journal.add(entry));
    }

    /// Does the work of a call, or what a fault makes of it.
    async fn judge(&self, routed: &Routed, uri: &str, content_type: &str, strike: Option<Strike>) -> Judged {
        let fault = strike.as_ref().map_or(0, |strike| strike.fault);
        match strike.map(|strike| strike.harm) {
            None => Judged::Answer(self.work(routed)),
            Some(CallHarm::Slow { seconds: time }) => {
                tokio::time::sleep(seconds(time)).await;
                Judged::Answer(self.work(routed))
            }
            Some(CallHarm::Together { calls }) => {
                self.gather((fault, calls)).await;
                Judged::Answer(self.work(routed))
            }
            Some(CallHarm::Status { status, body, retry_after }) => {
                let mut answer = *Refusal::text(status, body).0;
                answer.headers.extend(retry_after.map(|time| ("retry-after", time.to_string())));
                Judged::Answer(answer)
            }
            Some(CallHarm::Conflict) => Judged::Answer(*Refusal::conflict(self.settled().version).0),
            Some(CallHarm::ResetBefore) => Judged::Reset,
            Some(CallHarm::ResetAfter) => {
                self.work(routed);
                Judged::Reset
            }
            Some(CallHarm::LateCommit { seconds: time }) => {
                let mut world = self.settled();
                let at = later(world.now, seconds(time));
                let saved = SavedCall {
                    method: routed.call.method.to_string(),
                    uri: uri.to_owned(),
                    content_type: content_type.to_owned(),
                    body: routed.call.body.to_vec(),
                    user: routed.call.user,
                    began: routed.call.began,
                };
                // A change like any other: what is saved must hold it.
                world.commits += 1;
                world.schedule.add(at, Due::LateCall(Box::new(saved)));
                Judged::Reset
            }
        }
    }

    /// Waits until as many calls are here, or for so long that no more will come.
    async fn gather(&self, place: (usize, u32)) {
        let calls = usize::try_from(place.1).unwrap_or(usize::MAX);
        let new = || Gathering { barrier: Arc::new(Barrier::new(calls)), ended: CancellationToken::new() };
        let gathering = self.gatherings().entry(place).or_insert_with(new).clone();
        tokio::select! {
            biased;
            _ = gathering.barrier.wait() => {}
            () = gathering.ended.cancelled() => {}
            () = tokio::time::sleep(GATHERING) => drop(self.gatherings().remove(&place)),
        }
    }

    fn gatherings(&self) -> MutexGuard<'_, BTreeMap<(usize, u32), Gathering>> {
        self.shared.gatherings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, routed: &Routed) -> Answer {
        let mut world = self.settled();
        world.commits += 1;
        let answer = answer_of(routed.perform(&mut world));
        self.pass_on_orders(&mut world);
        drop(world);
        answer.written()
    }

    /// The world after everything that is due by now.
    fn settled(&self) -> MutexGuard<'_, World> {
        let mut world = self.shared.world.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.shared.clock.now();
        while let Some((at, due)) = world.schedule.pop_due(now) {
            world.now = at;
            match due {
                Due::LateCall(saved) => perform_late(&mut world, &saved),
                other => lifecycle::take_due(&mut world, other),
            }
            self.pass_on_orders(&mut world);
        }
        world.now = now;
        world
    }

    /// When the next scheduled thing happens, for a server that lets time act without calls.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.settled().schedule.next_at()
    }

    fn pass_on_orders(&self, world: &mut World) {
        while !world.orders.is_empty() {
            for order in std::mem::take(&mut world.orders) {
                let timings = world.timings;
                for (delay, outcome) in self.shared.hardware.perform(&order, &mut world.random, &timings) {
                    let at = later(world.now, delay);
                    world.schedule.add(at, Due::Report(Report { machine: order.machine, boot: order.boot, outcome }));
                }
            }
        }
    }
}

fn header(parts: &http::request::Parts, name: http::HeaderName) -> Option<&str> {
    parts.headers.get(name).and_then(|value| value.to_str().ok())
}

fn answer_of(reply: Reply) -> Answer {
    reply.unwrap_or_else(|Refusal(answer)| *answer)
}

/// A call whose client has gone takes effect all the same; its answer is nobody's.
fn perform_late(world: &mut World, saved: &SavedCall) {
    let (path, query) = saved.uri.split_once('?').unwrap_or((&saved.uri, ""));
    let Ok(method) = saved.method.parse() else { return };
    if let Ok(mut routed) = route::route(&method, path, query, &saved.content_type, &Bytes::from(saved.body.clone())) {
        routed.call.user = saved.user;
        routed.call.began = saved.began;
        routed.call.forget_credentials();
        world.commits += 1;
        let _answer = routed.perform(world);
    }
}
