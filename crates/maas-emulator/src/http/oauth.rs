//! OAuth 1 as MAAS checks it: six parameters or anonymous, 300 seconds of grace for the past and none needed for the future, each
//! nonce once, PLAINTEXT or HMAC-SHA1.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use base64::Engine as _;
use hmac::{KeyInit as _, Mac as _};
use http::Method;
use serde::{Deserialize, Serialize};

use super::answer::{Answer, HTML, Refusal};
use super::form::Form;
use crate::random::unguessable;
use crate::world::World;
use crate::world::id::Id;
use crate::world::people::{Token, User};

/// How old a timestamp may be, in seconds.
const GRACE: i64 = 300;

/// Nonces seen, with the time after which their timestamp would be refused anyway.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "SavedNonces")]
pub struct Nonces {
    seen: BTreeMap<String, i64>,
    /// The same by that time, so that forgetting looks only at what is forgotten.
    #[serde(skip)]
    by_time: BTreeSet<(i64, String)>,
}

#[derive(Deserialize)]
struct SavedNonces {
    seen: BTreeMap<String, i64>,
}

impl From<SavedNonces> for Nonces {
    fn from(saved: SavedNonces) -> Self {
        let by_time = saved.seen.iter().map(|(key, forgettable)| (*forgettable, key.clone())).collect();
        Nonces { seen: saved.seen, by_time }
    }
}

impl Nonces {
    /// Notes a nonce; false when it was used before.
    fn first_use(&mut self, key: String, timestamp: i64, now: i64) -> bool {
        while self.by_time.first().is_some_and(|(forgettable, _)| *forgettable < now) {
            if let Some((_, key)) = self.by_time.pop_first() {
                self.seen.remove(&key);
            }
        }
        if self.seen.contains_key(&key) {
            return false;
        }
        let forgettable = timestamp.saturating_add(GRACE);
        self.by_time.insert((forgettable, key.clone()));
        self.seen.insert(key, forgettable);
        true
    }
}

/// What a request says of its caller.
#[derive(Debug)]
pub struct Credentials<'a> {
    /// The `Authorization` header.
    pub header: Option<&'a str>,
    /// The method, part of what HMAC-SHA1 signs.
    pub method: &'a Method,
    /// Scheme, host and path, part of what HMAC-SHA1 signs.
    pub address: String,
    /// Fields of the query.
    pub query: &'a Form,
    /// Fields of a URL-encoded body.
    pub form: &'a Form,
}

/// Finds out who calls: a user, nobody, or a refusal.
pub fn authenticate(world: &mut World, credentials: &Credentials<'_>) -> Result<Option<Id<User>>, Refusal> {
    let Some(parameters) = parameters(credentials) else { return Ok(None) };
    let get = |name: &str| parameters.get(name).map(String::as_str);
    let (Some(consumer), Some(key), Some(signature), Some(method), Some(timestamp), Some(nonce)) = (
        get("oauth_consumer_key"),
        get("oauth_token"),
        get("oauth_signature"),
        get("oauth_signature_method"),
        get("oauth_timestamp"),
        get("oauth_nonce"),
    ) else {
        return Ok(None);
    };
    if !world.tokens.iter().any(|token| token.consumer == consumer) {
        return Err(refuse("Invalid API key."));
    }
    let Some(token) = world.tokens.iter().find(|token| token.consumer == consumer && token.token == key).cloned() else {
        return Err(refuse(&format!("'Invalid access token: {key}'")));
    };
    if world.users.get(token.user).is_none() {
        return Err(refuse("Invalid API key."));
    }
    let now = world.now.as_second();
    let given: i64 = timestamp.parse().map_err(|_| refuse("'Invalid timestamp value.'"))?;
    if now.saturating_sub(given) > GRACE {
        return Err(refuse(&format!("'Expired timestamp: given {given} and now {now} has a greater difference than threshold {GRACE}'")));
    }
    let (expected, base) = match method {
        "PLAINTEXT" => (format!("&{}", token.secret), format!("&{}", token.secret)),
        "HMAC-SHA1" => hmac_sha1(credentials, &parameters, &token),
        other => return Err(refuse(&format!("'Signature method {other} not supported try one of the following: PLAINTEXT, HMAC-SHA1'"))),
    };
    if signature != expected {
        return Err(refuse(&format!("'Invalid signature. Expected signature base string: {base}'")));
    }
    if !world.nonces.first_use(format!("{consumer}:{key}:{nonce}"), given, now) {
        return Err(refuse(&format!("'Nonce already used: {nonce}'")));
    }
    Ok(Some(token.user))
}

/// The token key a request names, without proof: for the journal.
pub fn claimed_token(credentials: &Credentials<'_>) -> Option<String> {
    parameters(credentials)?.remove("oauth_token")
}

/// The user who has this token key: for the journal, when a call is refused before anybody asks who it is.
pub fn user_with_token(world: &World, token: &str) -> Option<String> {
    world.tokens.iter().find(|known| known.token == token).map(|known| world.user_name(known.user).to_owned())
}

fn refuse(words: &str) -> Refusal {
    let mut answer = Answer::new(401, HTML, format!("Authorization Error: {words}"));
    answer.headers.push(("www-authenticate", "OAuth realm=\"OAuth\"".into()));
    answer.into()
}

/// The OAuth parameters of header, query and body; none when there is no trace of OAuth.
fn parameters(credentials: &Credentials<'_>) -> Option<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    if let Some(rest) = credentials.header.and_then(|header| header.strip_prefix("OAuth ").or_else(|| header.strip_prefix("oauth "))) {
        for part in rest.split(',') {
            if let Some((name, value)) = part.trim().split_once('=') {
                found.insert(name.to_owned(), percent_decode(value.trim().trim_matches('"')));
            }
        }
    }
    for (name, value) in credentials.query.0.iter().chain(&credentials.form.0) {
        if name.starts_with("oauth_") {
            found.insert(name.clone(), value.clone());
        }
    }
    (!found.is_empty()).then_some(found)
}

/// The signature and what it signs.
fn hmac_sha1(credentials: &Credentials<'_>, parameters: &BTreeMap<String, String>, token: &Token) -> (String, String) {
    let oauth = parameters
        .iter()
        .filter(|(name, _)| *name != "oauth_signature" && *name != "realm")
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let fields = credentials.query.0.iter().chain(&credentials.form.0).filter(|(name, _)| !name.starts_with("oauth_"));
    let mut pairs: Vec<(String, String)> = oauth
        .chain(fields.map(|(name, value)| (name.as_str(), value.as_str())))
        .map(|(name, value)| (percent_encode(name), percent_encode(value)))
        .collect();
    pairs.sort();
    let joined = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
    let base = format!("{}&{}&{}", credentials.method, percent_encode(&credentials.address), percent_encode(&joined));
    let key = format!("&{}", percent_encode(&token.secret));
    let signature = hmac::Hmac::<sha1::Sha1>::new_from_slice(key.as_bytes())
        .map(|mut mac| {
            mac.update(base.as_bytes());
            base64::engine::general_purpose::STANDARD.encode(mac.finalize().into_bytes())
        })
        .unwrap_or_default();
    (signature, base)
}

/// Percent-encoding of RFC 3986, which OAuth signs.
fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _written = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Percent-decoding; what is not an escape stays.
pub fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = (bytes[at] == b'%').then(|| bytes.get(at + 1..at + 3)).flatten();
        if let Some(byte) =
            escape.and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|digits| u8::from_str_radix(digits, 16).ok())
        {
            decoded.push(byte);
            at += 3;
        } else {
            decoded.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Makes a new key for a user.
pub fn new_token(world: &mut World, user: Id<User>, name: &str) -> std::io::Result<Token> {
    let mut part = |length| if world.unguessable_keys { unguessable(length) } else { Ok(world.random.key(length)) };
    let token = Token { user, name: name.to_owned(), consumer: part(18)?, token: part(18)?, secret: part(32)? };
    world.tokens.push(token.clone());
    Ok(token)
}

/// The same for a call, which is refused where the kernel has no randomness.
pub fn token_asked_for(world: &mut World, user: Id<User>, name: &str) -> Result<Token, Refusal> {
    new_token(world, user, name).map_err(|error| Refusal::text(500, format!("could not make a key: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_are_forgotten_when_their_time_is_over_and_not_before() {
        let mut nonces = Nonces::default();
        assert!(nonces.first_use("a".into(), 1_000, 1_000));
        assert!(nonces.first_use("future".into(), 5_000, 1_000));
        assert!(!nonces.first_use("a".into(), 1_300, 1_300), "its timestamp would still be taken");
        let saved = serde_json::to_string(&nonces).unwrap();
        let mut nonces: Nonces = serde_json::from_str(&saved).unwrap();
        assert!(nonces.first_use("b".into(), 1_301, 1_301));
        assert_eq!(nonces.seen.keys().collect::<Vec<_>>(), ["b", "future"], "after a restart too");
    }

    #[test]
    fn many_nonces_do_not_slow_a_call_down() {
        let mut nonces = Nonces::default();
        for number in 0..100_000 {
            assert!(nonces.first_use(format!("early-{number}"), 1_000, 1_000));
        }
        let begun = std::time::Instant::now();
        for number in 0..5_000 {
            assert!(nonces.first_use(format!("late-{number}"), 1_001, 1_001));
        }
        // To look at all of them each time would be five hundred million looks.
        assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
    }
}
