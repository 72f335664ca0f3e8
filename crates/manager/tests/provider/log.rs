//! The log of this test program, all levels of all crates. It would be too long to be kept, so every line is looked at as it is written.

use std::sync::{
    LazyLock, Mutex,
    atomic::{AtomicU64, Ordering},
};

use k8s_openapi::ByteString;
use tracing_subscriber::filter::LevelFilter;

use crate::{
    listening,
    rack::{CANARY, USER_DATA},
};

/// The canary as people write it, as a debug form of bytes shows it, and as the API server and MAAS send it.
static FORMS: LazyLock<[String; 3]> = LazyLock::new(|| {
    let sent = serde_json::to_value(ByteString(USER_DATA.into())).unwrap();
    // Of what is sent, three bytes are four characters: those of the canary alone.
    let begin = USER_DATA.find(CANARY).unwrap().div_ceil(3);
    let end = (USER_DATA.find(CANARY).unwrap() + CANARY.len()) / 3;
    let numbers = format!("{:?}", CANARY.as_bytes());
    [CANARY.to_owned(), numbers.trim_matches(['[', ']']).to_owned(), sent.as_str().unwrap()[4 * begin..4 * end].to_owned()]
});
static DEPLOYMENTS: AtomicU64 = AtomicU64::new(0);
static RECONCILES: AtomicU64 = AtomicU64::new(0);
static SHOWN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// It is called before anything is said.
pub fn listen() {
    listening::listen(LevelFilter::TRACE, hear);
}

fn hear(line: &[u8]) {
    let line = String::from_utf8_lossy(line);
    if shows_bootstrap_data(&line) {
        SHOWN.lock().unwrap().push(line.clone().into_owned());
    }
    DEPLOYMENTS.fetch_add(u64::from(line.contains("called MAAS") && line.contains("deploy")), Ordering::Relaxed);
    RECONCILES.fetch_add(u64::from(line.contains("\"message\":\"reconciled\"")), Ordering::Relaxed);
}

/// Whether bootstrap data is in this text, in any form.
pub fn shows_bootstrap_data(text: &str) -> bool {
    FORMS.iter().any(|form| text.contains(form))
}

/// Fails if bootstrap data is in a line of the log so far, or if those who had it in hand were not heard.
pub fn assert_it_has_no_bootstrap_data() {
    assert_eq!(*SHOWN.lock().unwrap(), Vec::<String>::new(), "bootstrap data is secret");
    let heard = (DEPLOYMENTS.load(Ordering::Relaxed), RECONCILES.load(Ordering::Relaxed));
    assert!(heard.0 > 0 && heard.1 > 0, "the log has {} deployments and {} reconciles, so it shows nothing", heard.0, heard.1);
}

#[test]
fn bootstrap_data_is_recognized_in_all_its_forms() {
    let secret = serde_json::to_string(&ByteString(USER_DATA.into())).unwrap();
    let bytes = USER_DATA.as_bytes();
    for text in [USER_DATA, &secret, &format!("{bytes:?}"), &format!("{USER_DATA:?}")] {
        assert!(shows_bootstrap_data(&format!("said {text}!")), "{text}");
    }
    assert!(!shows_bootstrap_data("#cloud-config"));
}
