//! An emulated MAAS in this process with real clients of it, under whatever clock the test's runtime has.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use maas_client::{Client, Error, Machine, MachineStatus, SystemId, Transport};
use maas_emulator::{Clock, Emulator, Fleet, Options};
use serde_json::Value;

/// Where the clock stands when a test begins.
pub const BEGINNING: i64 = 1_800_000_000;
/// The keys of an administrator and of a plain user, in fleets that name them.
#[allow(dead_code, reason = "not every test needs every helper")]
pub const ADMIN: Option<&str> = Some("ac:at:as");
#[allow(dead_code, reason = "not every test needs every helper")]
pub const ALICE: Option<&str> = Some("lc:lt:ls");

/// The emulator that holds this fleet.
#[allow(dead_code, reason = "not every test needs every helper")]
pub fn emulator(fleet: &str) -> Emulator {
    let start = jiff::Timestamp::from_second(BEGINNING).unwrap();
    let options = Options { clock: Clock::running(start), ..Options::default() };
    Emulator::new(Fleet::from_yaml(fleet).unwrap(), options).unwrap()
}

/// A client of the administrator of a fleet that names no users.
#[allow(dead_code, reason = "not every test needs every helper")]
pub fn administrator(emulator: &Emulator) -> Client {
    client(emulator, Fleet::DEFAULT_KEY)
}

/// A client with this key; its nonces count up, so that the same test makes the same calls.
pub fn client(emulator: &Emulator, key: &str) -> Client {
    static CLIENTS: AtomicU64 = AtomicU64::new(1);
    let (clock, number) = (emulator.clock().clone(), Arc::new(AtomicU64::new(CLIENTS.fetch_add(1, Ordering::Relaxed) << 32)));
    let emulator = emulator.clone();
    let transport = Transport::new(tower::service_fn(move |request| {
        let emulator = emulator.clone();
        async move { emulator.answer(request).await }
    }));
    Client::builder("http://maas.test:5240/MAAS", key)
        .unwrap()
        .clock(move || u64::try_from(clock.now().as_second()).unwrap())
        .randomness(move || u128::from(number.fetch_add(1, Ordering::Relaxed)))
        .build_on(transport)
}

/// A call as its form is written, by the user with this key or by nobody: status and body.
#[allow(dead_code, reason = "not every test needs every helper")]
pub async fn call(emulator: &Emulator, key: Option<&str>, method: &str, path: &str, form: &str) -> (u16, String) {
    call_at(emulator, key, method, path, form, &emulator.clock().now().as_second().to_string()).await
}

/// The same with the body as JSON, or as the text it is.
#[allow(dead_code, reason = "not every test needs every helper")]
pub async fn answer(emulator: &Emulator, key: Option<&str>, method: &str, path: &str, form: &str) -> (u16, Value) {
    let (status, body) = call(emulator, key, method, path, form).await;
    (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
}

#[allow(dead_code, reason = "not every test needs every helper")]
pub async fn post(emulator: &Emulator, key: Option<&str>, path: &str, form: &str) -> (u16, Value) {
    answer(emulator, key, "POST", path, form).await
}

/// A call signed at a time of the caller's.
#[allow(dead_code, reason = "not every test needs every helper")]
pub async fn call_at(emulator: &Emulator, key: Option<&str>, method: &str, path: &str, form: &str, timestamp: &str) -> (u16, String) {
    send(emulator, key, method, path, ("application/x-www-form-urlencoded", form), timestamp).await
}

/// A call whose body is JSON.
#[allow(dead_code, reason = "not every test needs every helper")]
pub async fn call_json(emulator: &Emulator, key: Option<&str>, method: &str, path: &str, body: &Value) -> (u16, String) {
    let now = emulator.clock().now().as_second().to_string();
    send(emulator, key, method, path, ("application/json", &body.to_string()), &now).await
}

async fn send(
    emulator: &Emulator,
    key: Option<&str>,
    method: &str,
    path: &str,
    (content_type, form): (&str, &str),
    timestamp: &str,
) -> (u16, String) {
    static NONCE: AtomicU64 = AtomicU64::new(1);
    let mut request = http::Request::builder().method(method).uri(format!("/MAAS/api/2.0/{path}")).header("content-type", content_type);
    if let Some(key) = key {
        let [consumer, token, secret] = <[&str; 3]>::try_from(key.split(':').collect::<Vec<_>>()).unwrap();
        let nonce = NONCE.fetch_add(1, Ordering::Relaxed);
        let header = format!(
            "OAuth oauth_signature_method=\"PLAINTEXT\", oauth_consumer_key=\"{consumer}\", oauth_token=\"{token}\", \
             oauth_signature=\"%26{secret}\", oauth_nonce=\"{nonce}\", oauth_timestamp=\"{timestamp}\""
        );
        request = request.header("authorization", header);
    }
    let answer = emulator.answer(request.body(bytes::Bytes::from(form.to_owned())).unwrap()).await.unwrap();
    (answer.status().as_u16(), String::from_utf8_lossy(answer.body()).into_owned())
}

/// Waits, on the test's clock, until a machine is in a state.
#[allow(dead_code, reason = "not every test needs every helper")]
pub async fn settled(client: &Client, id: &SystemId, status: MachineStatus) -> Result<Machine, Error> {
    let deadline = tokio::time::Instant::now() + Duration::from_hours(2);
    loop {
        let machine = client.machine(id).read().await?;
        if machine.status == status {
            return Ok(machine);
        }
        assert!(tokio::time::Instant::now() < deadline, "{id} is still {:?}, not {status:?}: {:?}", machine.status, machine.status_message);
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}
