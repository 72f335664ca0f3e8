//! Plays recordings: the emulator on the seed, the requests in their order with the script's steps between them, each answer compared.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use futures::future::join_all;
use jiff::Timestamp;
use maas_emulator::{
    Clock, Emulator, Options,
    world::{
        World,
        addressing::NewAddress,
        id::Id,
        machine::{Machine, PowerState},
        network::AddressKind,
        people::{Token, User},
        status::Status,
    },
};
use serde_json::Value;

use super::{
    compare::{About, Answer, Difference, compare},
    mapping::Mapping,
    oauth::Key,
    races,
    recordings::{Exchange, Recording, Request},
    request::Senders,
    script::{Action, Call, Discovered, Relink, Run, Script, Set},
    seed,
};

/// Time that passes before each request: enough for what happens at once, too little for anything else.
const TICK: Duration = Duration::from_millis(10);

/// What came of a recording.
#[derive(Debug)]
pub enum Outcome {
    LeftOut(String),
    Compared(Vec<Difference>),
}

/// What came of everything.
#[derive(Debug, Default)]
pub struct Played {
    /// In the order of the recordings.
    pub outcomes: Vec<Outcome>,
    /// Steps of the script that were refused: the state is not what it should be.
    pub refused: Vec<String>,
}

/// Plays all recordings.
pub async fn play(recordings: &[Recording], script: &Script) -> anyhow::Result<Played> {
    let mut played = Played::default();
    let mut stage: Option<(u16, Stage)> = None;
    let mut previous = None;
    for recording in recordings {
        let run = script.run_of(recording.number).with_context(|| format!("number {} belongs to no run", recording.number))?;
        if stage.as_ref().is_none_or(|(from, _)| *from != run.from) {
            stage = Some((run.from, Stage::new(recordings, script, run)?));
        }
        let Some((_, stage)) = &mut stage else { bail!("there is no emulator") };
        for action in script.due(previous, recording.number) {
            if let Err(refusal) = stage.act(action).await {
                played.refused.push(format!("before {:03}: {refusal:#}", recording.number));
            }
        }
        previous = Some(recording.number);
        let answers = stage.send(&recording.exchanges).await?;
        played.outcomes.push(match script.left_out(recording) {
            Some(reason) => Outcome::LeftOut(reason.to_owned()),
            None => Outcome::Compared(stage.compare(recording, answers, script.keys_left_out(recording))),
        });
    }
    Ok(played)
}

/// The emulator of a run.
struct Stage {
    emulator: Emulator,
    senders: Senders,
    mapping: Mapping,
}

impl Stage {
    fn new(recordings: &[Recording], script: &Script, run: Run) -> anyhow::Result<Self> {
        let seed = seed::derive(recordings, script)?;
        let start = Timestamp::from_second(run.clock).context("a run begins at no time")?;
        let options = Options { clock: Clock::manual(start), seed: 1, ..Options::default() };
        let emulator = Emulator::new(seed.fleet, options).context("the emulator does not take the recorded state")?;
        Ok(Self { emulator, senders: Senders::new(seed.keys), mapping: seed.mapping })
    }

    /// Sends requests at the same moment; a connection that ends without an answer has status 0.
    async fn send(&mut self, exchanges: &[Exchange]) -> anyhow::Result<Vec<Answer>> {
        self.emulator.clock().advance(TICK);
        let now = self.emulator.clock().now().as_second();
        let requests = exchanges.iter().map(|exchange| self.senders.request(&exchange.request, &self.mapping, now));
        let requests = requests.collect::<anyhow::Result<Vec<_>>>()?;
        let answers = join_all(requests.into_iter().map(|request| self.emulator.answer(request))).await;
        Ok(answers.iter().map(|answer| answer.as_ref().map_or_else(|_| reset(), received)).collect())
    }

    fn compare(&mut self, recording: &Recording, answers: Vec<Answer>, leave_out: &[String]) -> Vec<Difference> {
        if recording.race {
            return races::compare(recording, &answers, leave_out, &mut self.mapping);
        }
        let pairs = recording.exchanges.iter().zip(answers);
        pairs
            .flat_map(|(exchange, answer)| {
                let about = About { path: &exchange.request.path, leave_out, cut: false };
                compare(&exchange.response, &answer, about, &mut self.mapping)
            })
            .collect()
    }

    async fn act(&mut self, action: &Action) -> anyhow::Result<()> {
        match action {
            Action::Call(call) => {
                let mapping = self.mapping.clone();
                self.call(call, &mapping).await.map(drop)
            }
            Action::Wait(seconds) => {
                self.emulator.clock().advance(Duration::try_from_secs_f64(*seconds).context("a wait is not a time")?);
                Ok(())
            }
            Action::Clock(at) => {
                let at = Timestamp::from_second(*at).context("a clock shows no time")?;
                let wait = Duration::try_from(at.duration_since(self.emulator.clock().now())).context("it is later already")?;
                // The next request is a tick later and still in this second.
                self.emulator.clock().advance(wait);
                Ok(())
            }
            Action::Fault(fault) => {
                self.emulator.inject(serde_json::from_value(fault.clone()).with_context(|| format!("{fault} is not a fault"))?)?;
                Ok(())
            }
            Action::Clear(_) => {
                self.emulator.clear_faults();
                Ok(())
            }
            Action::Join(user) => self.join(user),
            Action::Set(set) => self.set(set),
            Action::Relink(relink) => self.relink(relink).await,
        }
    }

    async fn call(&mut self, call: &Call, mapping: &Mapping) -> anyhow::Result<Value> {
        let request = Request {
            method: call.method.clone(),
            path: format!("/MAAS/api/2.0/{}", call.path),
            query: call.op.iter().map(|op| ("op".to_owned(), op.clone())).collect(),
            form: call.form.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            user: Some(call.user.clone()),
            ..Request::default()
        };
        self.emulator.clock().advance(TICK);
        let now = self.emulator.clock().now().as_second();
        let request = self.senders.request(&request, mapping, now)?;
        let answer = self.emulator.answer(request).await.as_ref().map_or_else(|_| reset(), received);
        let text = String::from_utf8_lossy(&answer.body);
        let named = || format!("{} {} {}", call.method, call.path, call.op.as_deref().unwrap_or_default());
        ensure!((200..300).contains(&answer.status), "{} was refused: {} {text}", named(), answer.status);
        Ok(serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// Adds a user with the key its requests are signed with, unless it is there.
    fn join(&self, name: &str) -> anyhow::Result<()> {
        let key = self.senders.key(name)?.clone();
        self.emulator.world(|world| {
            if world.user_named(name).is_none() {
                let email = format!("{name}@example.com");
                let user = world.users.add(None, |id| User { id, name: name.to_owned(), email, superuser: false });
                let Key { consumer, token, secret } = key;
                world.tokens.push(Token { user, name: "MAAS consumer".to_owned(), consumer, token, secret });
            }
        });
        Ok(())
    }

    fn set(&self, set: &Set) -> anyhow::Result<()> {
        let read = |status: &String| {
            let status = serde_json::from_value::<Status>(status.as_str().into());
            status.with_context(|| format!("the script writes a state that {} cannot have", set.machine))
        };
        let status = set.status.as_ref().map(read).transpose()?;
        self.emulator.world(|world| {
            let machine = world.machines.values_mut().find(|machine| machine.system_id == set.machine);
            let machine = machine.with_context(|| format!("there is no machine {}", set.machine))?;
            machine.status = status.unwrap_or(machine.status);
            if let Some(on) = set.power {
                machine.powered = on;
                machine.power_state = if on { PowerState::On } else { PowerState::Off };
            }
            let id = machine.id;
            set.discovered.as_ref().map_or(Ok(()), |discovered| discover(world, id, discovered))
        })
    }

    async fn relink(&mut self, relink: &Relink) -> anyhow::Result<()> {
        let path = format!("nodes/{}/interfaces/{}/", relink.machine, relink.interface);
        // Machine and interface are of the seed and links are the emulator's own: nothing is translated.
        let as_it_is = Mapping::default();
        let call = |method: &str, op: Option<&str>, form: &[(&str, String)]| Call {
            user: relink.user.clone(),
            method: method.to_owned(),
            path: path.clone(),
            op: op.map(str::to_owned),
            form: form.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
        };
        let interface = self.call(&call("GET", None, &[]), &as_it_is).await?;
        for link in interface["links"].as_array().into_iter().flatten() {
            self.call(&call("POST", Some("unlink_subnet"), &[("id", link["id"].to_string())]), &as_it_is).await?;
        }
        // An interface without links is up all the same.
        if let Some(subnet) = &relink.subnet {
            let form = [("mode", relink.mode.clone()), ("subnet", subnet.clone())];
            self.call(&call("POST", Some("link_subnet"), &form), &as_it_is).await?;
        }
        Ok(())
    }
}

/// Gives an interface an address that was seen on it.
fn discover(world: &mut World, machine: Id<Machine>, discovered: &Discovered) -> anyhow::Result<()> {
    let ip = discovered.address.parse().context("what was discovered is no address")?;
    let interface = world.interfaces.values().find(|interface| interface.machine == machine && interface.name == discovered.interface);
    let interface = interface.with_context(|| format!("there is no interface {}", discovered.interface))?.id;
    world.add_address(NewAddress { ip: Some(ip), kind: AddressKind::Discovered, subnet: None, user: None, interface: Some(interface) });
    Ok(())
}

fn reset() -> Answer {
    Answer { status: 0, headers: Vec::new(), body: b"the connection was reset".to_vec() }
}

fn received(response: &http::Response<Bytes>) -> Answer {
    let headers = response.headers().iter();
    let headers = headers.map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
    Answer { status: response.status().as_u16(), headers: headers.collect(), body: response.body().to_vec() }
}
