//! Canaries: no part of a key, no password and no answer to a bad key shows up in anything a person or a log may see.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod support;

use std::{
    collections::BTreeMap,
    fmt::Debug,
    io::Write,
    sync::{LazyLock, Mutex},
};

use maas_client::{
    Allocate, ApiKey, Client, ClientBuilder, Deploy, Error, ExposeSecret as _, Id, MachineSettings, NewMachine, NewUser, SystemId,
    UserData, VmHostSettings,
};
use support::{KEY, always, answer, json, text};

static LOGGED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// What a thread says where nobody listens is remembered as not listened to for every thread: one log for all, there before a client is.
static LISTENING: LazyLock<()> = LazyLock::new(|| {
    tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(|| Log).with_ansi(false).init();
});

struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOGGED.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn builder() -> ClientBuilder {
    LazyLock::force(&LISTENING);
    support::builder()
}

fn assert_the_log_is_clean() {
    let log = String::from_utf8(LOGGED.lock().unwrap().clone()).unwrap();
    assert!(log.contains("trying again"), "nothing was logged");
    assert_clean(&log);
}

fn assert_clean(shown: &str) {
    assert!(!shown.to_lowercase().contains("canary"), "a secret shows: {shown}");
}

fn assert_hidden(value: &dyn Debug) {
    assert_clean(&format!("{value:?}"));
    assert_clean(&format!("{value:#?}"));
}

fn assert_hidden_error(error: &Error) {
    assert_hidden(error);
    assert_clean(&error.to_string());
}

#[tokio::test(start_paused = true)]
async fn neither_errors_nor_logs_quote_a_key_whoever_quotes_it_to_us() {
    let quoting = "Expected signature base string: &canarysecret, token canarytoken, consumer canaryconsumer";
    let answers = [400, 401, 403, 404, 409, 410, 429, 500, 502, 503, 504, 302]
        .into_iter()
        .flat_map(|status| ["text/plain", "text/html"].map(|kind| answer(status, kind, quoting)))
        .flat_map(|response| [support::of_maas(response.clone()), response])
        .chain([400, 409, 500].map(|status| {
            support::of_maas(answer(status, "application/json", &format!(r#"{{"field": ["{quoting}"], "x": "{quoting}"}}"#)))
        }))
        .chain([json(&format!(r#"["{quoting}"]"#)), answer(200, "text/html", quoting)]);
    for response in answers {
        let (transport, _) = always(response);
        let client = builder().build_on(transport);
        let id = SystemId::from("abc123");
        assert_hidden_error(&client.whoami().await.unwrap_err());
        assert_hidden_error(&client.machines().allocate(&Allocate::new()).await.unwrap_err());
        assert_hidden_error(&client.machine(&id).deploy(&Deploy::default()).await.unwrap_err());
    }
    let (transport, _) = support::wire(move |_, _| async move { Err(quoting.into()) });
    assert_hidden_error(&builder().build_on(transport).whoami().await.unwrap_err());
    assert_the_log_is_clean();
}

/// What MAAS, a driver or a proxy may do with what it was given: quote it in words, by field, as the name of a field, at length.
fn quoting(secret: &str) -> Vec<http::Response<bytes::Bytes>> {
    let long = format!("{}{secret}{}", "y".repeat(1_990), "x".repeat(100));
    let by_field = serde_json::json!({ "power_pass": [format!("'{secret}' is not valid")], secret: "unknown" }).to_string();
    let encoded: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    [400, 403, 404, 409, 429, 500, 502, 503, 504]
        .into_iter()
        .flat_map(|status| [secret, &long, &encoded].map(|body| text(status, body)))
        .chain([400, 409, 500, 503].map(|status| support::of_maas(answer(status, "application/json", &by_field))))
        .chain([answer(200, secret.lines().next().unwrap(), "{}"), answer(200, "text/html", secret)])
        .collect()
}

#[tokio::test(start_paused = true)]
async fn neither_errors_nor_logs_quote_what_was_secret_in_the_call() {
    let id = SystemId::from("abc123");
    let power_parameters =
        BTreeMap::from([("power_pass".to_owned(), "canary & söns".into()), ("power_address".to_owned(), "10.0.0.9".into())]);
    let settings = MachineSettings { power_parameters, ..MachineSettings::default() };
    for response in quoting("canary & söns") {
        let client = builder().build_on(always(response).0);
        assert_hidden_error(&client.machine(&id).update(&settings).await.unwrap_err());
        assert_hidden_error(
            &client.machines().create(&NewMachine { settings: settings.clone(), ..NewMachine::default() }).await.unwrap_err(),
        );
        let host = VmHostSettings { power_pass: Some("canary & söns".into()), ..VmHostSettings::default() };
        assert_hidden_error(&client.vm_hosts().create("lxd", &host).await.unwrap_err());
        assert_hidden_error(&client.vm_hosts().update(Id::new(1), &host).await.unwrap_err());
        let user = NewUser { username: "u".into(), email: "e".into(), password: "canary & söns".into(), is_superuser: false };
        assert_hidden_error(&client.users().create(&user).await.unwrap_err());
        let licence = Deploy { license_key: Some("canary & söns".into()), ..Deploy::default() };
        assert_hidden_error(&client.machine(&id).deploy(&licence).await.unwrap_err());
    }
    let pem = "-----BEGIN PRIVATE KEY-----\nCANARYmiievqibadanbgkqhk\nCANARYig9w0baqefaascbkgw\n-----END PRIVATE KEY-----\n";
    for response in quoting(pem).into_iter().chain(quoting("CANARYig9w0baqefaascbkgw")) {
        let host = VmHostSettings { key: Some(pem.into()), ..VmHostSettings::default() };
        assert_hidden_error(&builder().build_on(always(response).0).vm_hosts().create("lxd", &host).await.unwrap_err());
    }
    let content = "#cloud-config\nruncmd:\n- join --token canary.0123456789\n";
    for response in quoting(content).into_iter().chain(quoting("- join --token canary.0123456789")) {
        let deploy = Deploy { user_data: Some(UserData::new(content)), ..Deploy::default() };
        assert_hidden_error(&builder().build_on(always(response).0).machine(&id).deploy(&deploy).await.unwrap_err());
    }
    for response in quoting("canaryencoded") {
        let deploy = Deploy { user_data: Some(UserData::from_base64("canaryencoded")), ..Deploy::default() };
        assert_hidden_error(&builder().build_on(always(response).0).machine(&id).deploy(&deploy).await.unwrap_err());
    }
    let key = ApiKey::from_parts("consumer", "canaryofanother", "secret");
    let (transport, _) = always(text(400, "there is no token canaryofanother"));
    assert_hidden_error(&builder().build_on(transport).account().delete_token(&key).await.unwrap_err());
    assert_the_log_is_clean();
}

#[tokio::test]
async fn what_an_error_is_about_is_still_said() {
    let power_parameters = BTreeMap::from([("power_pass".to_owned(), "calvin".into()), ("power_address".to_owned(), "10.0.0.9".into())]);
    let settings = MachineSettings { power_parameters, ..MachineSettings::default() };
    let (transport, _) = always(text(500, "ipmi at 10.0.0.9 does not take the password calvin"));
    let error = builder().build_on(transport).machine(&SystemId::from("abc123")).update(&settings).await.unwrap_err();
    assert!(error.to_string().contains("ipmi at 10.0.0.9 does not take the password [redacted]"), "{error}");
}

#[tokio::test]
async fn the_answer_to_a_bad_key_is_dropped_whole() {
    let mut refused = answer(401, "text/html", "Authorization Error: 'something else entirely'");
    refused.headers_mut().insert("www-authenticate", http::HeaderValue::from_static("OAuth realm=\"OAuth\""));
    let (transport, _) = always(refused);
    let error = builder().build_on(transport).whoami().await.unwrap_err();
    assert!(matches!(error, Error::Unauthenticated { .. }));
    assert!(!format!("{error:?} {error}").contains("entirely"));
}

#[tokio::test]
async fn what_holds_secrets_does_not_show_them() {
    let (transport, sent) = always(json(r#"{"username": "somebody"}"#));
    let client = builder().build_on(transport.clone());
    assert_hidden(&client);
    assert_hidden(&builder());
    assert_hidden(&transport);
    assert_hidden(&KEY.parse::<ApiKey>().unwrap());
    assert_hidden(&client.machines());
    client.whoami().await.unwrap();
    assert_hidden(&sent.last());

    let deploy = Deploy { user_data: Some(UserData::new("#cloud-config canary")), license_key: Some("canary".into()), ..Deploy::default() };
    assert_hidden(&deploy);
    assert_hidden(&Deploy { user_data: Some(UserData::from_base64("canary")), ..Deploy::default() });
    let settings =
        MachineSettings { power_parameters: BTreeMap::from([("power_pass".to_owned(), "canary".into())]), ..MachineSettings::default() };
    assert_hidden(&NewMachine { settings, ..NewMachine::default() });
    let canary = || Some("canary".into());
    assert_hidden(&VmHostSettings { password: canary(), power_pass: canary(), key: canary(), ..VmHostSettings::default() });
    assert_hidden(&NewUser { username: "u".to_owned(), email: "e".to_owned(), password: "canary".into(), is_superuser: false });
}

#[tokio::test]
async fn keys_and_passwords_in_answers_can_be_had_and_are_not_shown() {
    let (transport, _) = always(json(r#"[{"name": "n", "token": "canary1:canary2:canary3"}, {"name": "odd", "token": "canary"}]"#));
    let tokens = builder().build_on(transport).account().list_tokens().await.unwrap();
    assert_hidden(&tokens);
    assert_eq!(tokens[0].key.as_ref().unwrap().expose().expose_secret(), "canary1:canary2:canary3");
    assert!(tokens[1].key.is_none());

    let (transport, _) = always(json(r#"{"power_pass": "canary", "key": "canary"}"#));
    let parameters = builder().build_on(transport).machine(&SystemId::from("a")).power_parameters().await.unwrap();
    assert_hidden(&parameters);
    assert_eq!(parameters.expose("power_pass").unwrap(), "canary");
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_not_quoted() {
    let (transport, _) = always(json(r#"[{"name": ["canary"], "token": {"canary": 1}}]"#));
    let error = builder().build_on(transport).account().list_tokens().await.unwrap_err();
    assert!(error.to_string().contains("[0].name"), "{error}");
    assert_clean(&error.to_string());
}

#[test]
fn addresses_and_keys_that_cannot_be_used_are_not_quoted() {
    for (address, key) in
        [("http://h/MAAS", "canary"), ("http://u:canary@h/MAAS", KEY), ("http://h:5240/MAAS?canary", KEY), ("canary", KEY)]
    {
        let error = Client::builder(address, key).unwrap_err();
        assert_hidden(&error);
        assert_clean(&error.to_string());
    }
}

#[tokio::test]
async fn the_signature_reaches_maas_nevertheless() {
    let (transport, sent) = always(text(403, ""));
    builder().build_on(transport).whoami().await.unwrap_err();
    let header = sent.last().headers()["authorization"].clone();
    assert!(header.to_str().unwrap().contains("oauth_signature=\"%26canarysecret\""));
}
