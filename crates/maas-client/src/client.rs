//! The client: it signs, sends, waits, repeats what may be repeated and tells what came of it. Endpoints hang off it, one file each.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout_at};

use crate::{
    address::{Address, MalformedAddress},
    answer,
    call::{Body, Call},
    error::Error,
    key::{ApiKey, MalformedKey},
    limits::{Budget, Limits, backoff, later},
    named::Named,
    network::{NetworkError, network_transport},
    scrub::Secrets,
    transport::{HeldBack, NotSent, Transport},
};

type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;
type Randomness = Arc<dyn Fn() -> u128 + Send + Sync>;

/// Why a client could not be made. No message repeats a key or a password.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The address cannot be used.
    #[error(transparent)]
    Address(#[from] MalformedAddress),
    /// The API key cannot be used.
    #[error(transparent)]
    Key(#[from] MalformedKey),
    /// HTTP or TLS could not be set up.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

/// A client of one MAAS on behalf of one user. Clones share everything.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    not_after: Option<Instant>,
}

struct Shared {
    address: Address,
    key: Option<ApiKey>,
    transport: Transport,
    limits: Limits,
    budget: Budget,
    clock: Clock,
    randomness: Randomness,
}

/// What a [`Client`] is made from.
pub struct ClientBuilder {
    address: Address,
    key: Option<ApiKey>,
    limits: Limits,
    budget: Budget,
    clock: Clock,
    randomness: Randomness,
    certificate_authority: Option<Vec<u8>>,
}

impl ClientBuilder {
    /// How long calls may take.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How many calls may be under way at once; share one between all clients of the same MAAS.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Trusts what this PEM bundle signed, and nothing else. Without it the system's authorities are trusted. Only for
    /// [`ClientBuilder::build`]: another transport has its own trust.
    #[must_use]
    pub fn certificate_authority(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.certificate_authority = Some(pem.into());
        self
    }

    /// The time of signatures, in seconds since 1970: for simulations. MAAS accepts what is less than five minutes old.
    #[must_use]
    pub fn clock(mut self, unix_seconds: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(unix_seconds);
        self
    }

    /// Where nonces and jitter come from: for simulations. It must never give the same number twice.
    #[must_use]
    pub fn randomness(mut self, source: impl Fn() -> u128 + Send + Sync + 'static) -> Self {
        self.randomness = Arc::new(source);
        self
    }

    /// A client over the network, as [`network_transport`] has it.
    pub fn build(self) -> Result<Client, SetupError> {
        let transport = network_transport(self.certificate_authority.as_deref())?;
        Ok(self.build_on(transport))
    }

    /// A client over another transport.
    pub fn build_on(self, transport: Transport) -> Client {
        let Self { address, key, limits, budget, clock, randomness, .. } = self;
        Client { shared: Arc::new(Shared { address, key, transport, limits, budget, clock, randomness }), not_after: None }
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ClientBuilder").field("address", &self.address).field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Client").field("address", &self.shared.address).finish_non_exhaustive()
    }
}

impl Client {
    /// Begins a client of the MAAS at `address`, for the user whose API key it is.
    ///
    /// The address is `http://maas.example:5240/MAAS`, with or without a slash at its end or `/api/2.0`.
    pub fn builder(address: &str, key: &str) -> Result<ClientBuilder, SetupError> {
        let key = key.parse()?;
        Ok(ClientBuilder { key: Some(key), ..Self::anonymous(address)? })
    }

    /// Begins a client without a key: it may read the version and little more.
    pub fn anonymous(address: &str) -> Result<ClientBuilder, SetupError> {
        Ok(ClientBuilder {
            address: address.parse()?,
            key: None,
            limits: Limits::default(),
            budget: Budget::default(),
            clock: Arc::new(|| SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())),
            randomness: Arc::new(|| fastrand::u128(..)),
            certificate_authority: None,
        })
    }

    /// Where this MAAS is.
    pub fn address(&self) -> &Address {
        &self.shared.address
    }

    /// The same client, for calls that rest on something true only until `time`: what has not been sent by then is never sent, however
    /// long it waited for its turn or for another attempt. A call of which nothing was sent is [`Error::TooLate`]. To connect is part of
    /// sending; over the network it takes ten seconds at most.
    #[must_use]
    pub fn not_after(&self, time: Instant) -> Self {
        Self { not_after: Some(self.not_after.map_or(time, |earlier| earlier.min(time))), ..self.clone() }
    }

    /// Performs a call and reads its answer.
    pub(crate) async fn json<T: DeserializeOwned>(&self, call: Call) -> Result<T, Error> {
        let response = self.perform(&call).await?;
        answer::value(&call, &response).map_err(|error| self.scrubbed(&call, error))
    }

    /// Performs a call whose answer is one object. An answer that does not name it is no MAAS's; if the call was a write, what it did is
    /// unknown, and looking comes before anything else.
    pub(crate) async fn object<T: DeserializeOwned + Named>(&self, call: Call) -> Result<T, Error> {
        let response = self.perform(&call).await?;
        self.read_object(&call, &response)
    }

    /// The same for a call that MAAS may answer with null.
    pub(crate) async fn object_or_null<T: DeserializeOwned + Named>(&self, call: Call) -> Result<Option<T>, Error> {
        let response = self.perform(&call).await?;
        if answer::is_null(&response) { Ok(None) } else { self.read_object(&call, &response).map(Some) }
    }

    fn read_object<T: DeserializeOwned + Named>(&self, call: &Call, response: &Response<Bytes>) -> Result<T, Error> {
        answer::object(call, response).map_err(|error| self.scrubbed(call, error))
    }

    /// Performs a call whose answer says nothing but that it was done.
    pub(crate) async fn done(&self, call: Call) -> Result<(), Error> {
        let response = self.perform(&call).await?;
        answer::done(&call, &response).map_err(|error| self.scrubbed(&call, error))
    }

    async fn perform(&self, call: &Call) -> Result<Response<Bytes>, Error> {
        if call.invalid {
            return Err(Error::Invalid { call: Box::new(call.name.clone()), reason: "a name or id in its path is empty" });
        }
        let limit = self.shared.limits.of(call.class);
        let deadline = later(Instant::now(), limit.total);
        let last_start = self.not_after.map_or(deadline, |time| time.min(deadline));
        let mut attempts = 0;
        let mut unanswered = false;
        let mut before = None;
        loop {
            attempts += 1;
            let Failed { error, asked, in_vain } = match self.attempt(call, attempts, deadline).await {
                Ok(response) => return Ok(response),
                // The attempt nobody answered did it.
                Err(Failed { error: Error::NotFound { .. }, .. }) if unanswered && call.name.method == http::Method::DELETE => {
                    return Ok(Response::default());
                }
                // Earlier attempts were sent, so what came of them is what came of the call.
                Err(Failed { error: error @ (Error::TooLate { .. } | Error::Unavailable { attempts: 0, .. }), .. }) => {
                    return Err(before.unwrap_or(error));
                }
                Err(failed) => failed,
            };
            unanswered |= matches!(error, Error::OutcomeUnknown { .. });
            let wait = backoff(attempts, (self.shared.randomness)()).max(error.retry_after().or(asked).unwrap_or_default());
            let again = call.repeatable && !in_vain && worth_repeating(&error);
            let error = if unanswered { still_unknown(error) } else { error };
            if !again || Instant::now().checked_add(wait).is_none_or(|at| at >= last_start) {
                return Err(error);
            }
            tracing::debug!(call = %call.name, attempts, ?wait, %error, "trying again");
            before = Some(error);
            sleep(wait).await;
        }
    }

    /// One attempt, signed anew: MAAS takes a nonce once.
    async fn attempt(&self, call: &Call, attempts: u32, deadline: Instant) -> Result<Response<Bytes>, Failed> {
        let unavailable = |words: String, attempts: u32| {
            let call = Box::new(call.name.clone());
            Error::Unavailable { call, words, retry_after: None, attempts, answered: false }
        };
        let busy = || unavailable("too many calls are under way from here, so MAAS was not asked".to_owned(), 0);
        let turn = timeout_at(self.not_after.map_or(deadline, |time| time.min(deadline)), self.shared.budget.turn()).await;
        let request = self.request(call)?;
        let started = Instant::now();
        if self.not_after.is_some_and(|time| started >= time) {
            return Err(Error::TooLate { call: Box::new(call.name.clone()) }.into());
        }
        let Ok(Some(_turn)) = turn else { return Err(busy().into()) };
        let end = deadline.min(later(started, self.shared.limits.of(call.class).attempt));
        let outcome = timeout_at(end, self.shared.transport.send(request)).await;
        let held_back = matches!(&outcome, Ok(Err(error)) if error.is::<HeldBack>());
        let answer = outcome.as_ref().ok().and_then(|sent| sent.as_ref().ok());
        let asked = answer.and_then(|answer| answer::retry_after(answer.headers(), (self.shared.clock)()));
        let (silent, of_the_moment) = (answer.is_none(), answer.is_none_or(|answer| answer::is_of_the_moment(answer.status())));
        let result = match outcome {
            Ok(Ok(response)) => answer::check(call, response, asked, attempts),
            Ok(Err(error)) if held_back || error.is::<NotSent>() => Err(unavailable(error.to_string(), attempts)),
            Ok(Err(error)) => Err(unanswered_call(call, attempts, error.to_string())),
            Err(_) => Err(unanswered_call(call, attempts, format!("no answer within {:?}", end - started))),
        };
        let result = result.map_err(|error| {
            let from_stranger = matches!(error, Error::OutcomeUnknown { .. }) && !of_the_moment;
            let in_vain = held_back || from_stranger || (silent && error.is_about_certificate());
            Failed { error: self.scrubbed(call, error), asked, in_vain }
        });
        tracing::trace!(call = %call.name, attempts, elapsed = ?started.elapsed(), failed = result.is_err(), "called MAAS");
        result
    }

    fn request(&self, call: &Call) -> Result<Request<Bytes>, Error> {
        let mut request = Request::builder()
            .method(call.name.method.clone())
            .uri(format!("{}/api/2.0/{}", self.shared.address.as_str(), call.target()))
            .header(header::ACCEPT, "application/json");
        let body = match &call.body {
            Body::Nothing => Bytes::new(),
            Body::Form(form) => {
                request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
                form.encoded().into()
            }
            Body::Octets(octets) => {
                request = request.header(header::CONTENT_TYPE, "application/octet-stream");
                octets.clone()
            }
        };
        if !matches!(call.body, Body::Nothing) {
            request = request.header(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        if let Some(key) = &self.shared.key {
            request = request.header(header::AUTHORIZATION, key.sign((self.shared.randomness)(), (self.shared.clock)()));
        }
        let reason = "its parameters make no address";
        request.body(body).map_err(|_| Error::Invalid { call: Box::new(call.name.clone()), reason })
    }

    /// The error without what nobody may see, should MAAS or a proxy have quoted it: the key, and what was secret in the call. Only then
    /// its words are cut, lest a part of a secret stays at the end.
    fn scrubbed(&self, call: &Call, mut error: Error) -> Error {
        let mut secrets = Secrets::default();
        self.shared.key.iter().flat_map(ApiKey::parts).chain(call.secrets()).for_each(|secret| secrets.add(secret));
        let clean = |text: &str| answer::cut(secrets.scrub(text));
        match &mut error {
            Error::Refused { refusal, .. } => {
                refusal.words = clean(&refusal.words);
                let complaints = std::mem::take(&mut refusal.fields).into_iter();
                refusal.fields = complaints.map(|(field, texts)| (clean(&field), texts.iter().map(|text| clean(text)).collect())).collect();
            }
            Error::NotFound { words, .. }
            | Error::NotPermitted { words, .. }
            | Error::Conflict { words, .. }
            | Error::Unavailable { words, .. }
            | Error::Failed { words, .. }
            | Error::OutcomeUnknown { words, .. }
            | Error::Gone { words, .. }
            | Error::NotMaas { reason: words, .. } => *words = clean(words),
            Error::Invalid { .. } | Error::TooLate { .. } | Error::Unauthenticated { .. } => {}
        }
        error
    }
}

/// An attempt that did not succeed.
struct Failed {
    error: Error,
    /// How long the answer asked to wait: a gateway may, whose answer is no answer to the call.
    asked: Option<Duration>,
    /// Whether another attempt would meet the same.
    in_vain: bool,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self { error, asked: None, in_vain: false }
    }
}

/// A call that may have arrived and was not answered. That it was a read makes it harmless.
fn unanswered_call(call: &Call, attempts: u32, words: String) -> Error {
    let name = Box::new(call.name.clone());
    if call.name.method == http::Method::GET {
        Error::Unavailable { call: name, words, retry_after: None, attempts, answered: false }
    } else {
        Error::OutcomeUnknown { call: name, words }
    }
}

fn worth_repeating(error: &Error) -> bool {
    match error {
        // What MAAS itself cannot serve it can serve again only if it says when.
        Error::Unavailable { answered, retry_after, .. } => !answered || retry_after.is_some(),
        Error::OutcomeUnknown { .. } => true,
        Error::Conflict { retry_after, .. } => retry_after.is_some(),
        _ => false,
    }
}

/// An earlier attempt may have been carried out, whatever the last one met: a refusal may even be because of it.
fn still_unknown(error: Error) -> Error {
    match error {
        Error::Unavailable { call, words, .. }
        | Error::Conflict { call, words, .. }
        | Error::NotPermitted { call, words }
        | Error::Gone { call, words }
        | Error::NotMaas { call, reason: words } => Error::OutcomeUnknown { call, words },
        Error::Refused { call, refusal, .. } => Error::OutcomeUnknown { call, words: refusal.to_string() },
        Error::Unauthenticated { call } => Error::OutcomeUnknown { call, words: "then the API key was not accepted".to_owned() },
        other => other,
    }
}
