//! OAuth 1.0 headers as clients of MAAS send them. Used for requests that say only who sent them, and to sign again what `--rename`
//! changed.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sha1::Sha1;

/// Where MAAS was reached while it was recorded: part of what HMAC signs.
pub const BASE: &str = "http://127.0.0.1:5240";

/// RFC 5849 leaves only these as they are.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// An API key: consumer, token and secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    pub consumer: String,
    pub token: String,
    pub secret: String,
}

impl Key {
    /// Reads `consumer:token:secret`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':').map(str::to_owned);
        let key = Self { consumer: parts.next()?, token: parts.next()?, secret: parts.next()? };
        parts.next().is_none().then_some(key)
    }

    /// The header that signs with the secret itself.
    pub fn plaintext(&self, nonce: u64, timestamp: i64) -> String {
        let Self { consumer, token, secret } = self;
        format!(
            "OAuth oauth_version=\"1.0\", oauth_signature_method=\"PLAINTEXT\", oauth_consumer_key=\"{consumer}\", oauth_token=\"{token}\", \
             oauth_signature=\"%26{secret}\", oauth_nonce=\"{nonce:032x}\", oauth_timestamp=\"{timestamp}\""
        )
    }
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// The parameters of an `OAuth …` header.
fn parameters(header: &str) -> Option<Vec<(String, String)>> {
    let parameter = |part: &str| {
        let (key, value) = part.trim().split_once('=')?;
        Some((key.to_owned(), percent_decode_str(value.trim_matches('"')).decode_utf8().ok()?.into_owned()))
    };
    header.strip_prefix("OAuth ")?.split(',').map(parameter).collect()
}

/// The token a header was signed with, if by HMAC-SHA1.
pub fn hmac_token(header: &str) -> Option<String> {
    let parameters = parameters(header)?;
    let value = |name: &str| parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    (value("oauth_signature_method")? == "HMAC-SHA1").then(|| value("oauth_token")).flatten()
}

/// The same header with the signature that `secret` makes of it.
pub fn sign_hmac(header: &str, secret: &str, method: &str, path: &str, query: &[(String, String)]) -> Option<String> {
    let parameters = parameters(header)?;
    let signed = parameters.iter().filter(|(key, _)| key != "oauth_signature").chain(query);
    let mut pairs: Vec<(String, String)> = signed.map(|(key, value)| (encode(key), encode(value))).collect();
    pairs.sort();
    let joined: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let base = format!("{method}&{}&{}", encode(&format!("{BASE}{path}")), encode(&joined.join("&")));
    // The consumer's secret, which is empty, and the token's.
    let mut code = Hmac::<Sha1>::new_from_slice(format!("&{}", encode(secret)).as_bytes()).ok()?;
    code.update(base.as_bytes());
    let signature = STANDARD.encode(code.finalize().into_bytes());
    let mut result = String::from("OAuth ");
    for (index, (key, value)) in parameters.iter().enumerate() {
        let value = if key == "oauth_signature" { &signature } else { value };
        let comma = if index == 0 { "" } else { ", " };
        write!(result, "{comma}{key}=\"{}\"", encode(value)).ok()?;
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_three_parts() {
        assert!(Key::parse("a:b:c").is_some_and(|key| key.secret == "c"));
        assert!(Key::parse("a:b").is_none());
        assert!(Key::parse("a:b:c:d").is_none());
    }

    #[test]
    fn hmac_signatures_do_not_depend_on_the_order_of_parameters() {
        let query = [("op".to_owned(), "whoami".to_owned())];
        let header = r#"OAuth oauth_signature_method="HMAC-SHA1", oauth_token="t", oauth_nonce="n", oauth_signature="x""#;
        let other = r#"OAuth oauth_nonce="n", oauth_token="t", oauth_signature_method="HMAC-SHA1", oauth_signature="y""#;
        let signature = |header: &str| {
            let signed = sign_hmac(header, "s", "GET", "/MAAS/api/2.0/users/", &query).unwrap();
            parameters(&signed).unwrap().into_iter().find(|(key, _)| key == "oauth_signature").unwrap().1
        };
        assert_eq!(signature(header), signature(other));
        assert_eq!(hmac_token(header).as_deref(), Some("t"));
        assert_eq!(hmac_token(&Key::parse("a:b:c").unwrap().plaintext(1, 2)), None);
    }
}
