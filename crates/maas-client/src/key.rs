//! The API key of a MAAS user, and its OAuth signature. Used by the client for every attempt of every call.

use std::{fmt, str::FromStr};

use http::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret as _, SecretString};

/// What RFC 5849 leaves as it is.
const UNRESERVED_STAYS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// An API key, `consumer:token:secret`, as the user's preferences page of MAAS shows it. No part of it is ever printed.
#[derive(Clone)]
pub struct ApiKey {
    consumer: SecretString,
    token: SecretString,
    secret: SecretString,
}

/// Says what is wrong with a key without repeating it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the MAAS API key must be three parts joined by colons (consumer:token:secret), as the MAAS user's preferences show it; this one {0}"
)]
pub struct MalformedKey(&'static str);

impl FromStr for ApiKey {
    type Err = MalformedKey;

    fn from_str(text: &str) -> Result<Self, MalformedKey> {
        let text = text.trim();
        if text.is_empty() {
            return Err(MalformedKey("is empty"));
        }
        if text.chars().any(|character| character.is_whitespace() || character.is_control()) {
            return Err(MalformedKey("holds white space"));
        }
        let parts: Vec<&str> = text.split(':').collect();
        let [consumer, token, secret] = parts[..] else {
            return Err(MalformedKey("has another number of parts"));
        };
        if consumer.is_empty() || token.is_empty() || secret.is_empty() {
            return Err(MalformedKey("has an empty part"));
        }
        Ok(Self::from_parts(consumer, token, secret))
    }
}

impl ApiKey {
    /// A key from its three parts, as creating one answers them.
    pub fn from_parts(consumer: &str, token: &str, secret: &str) -> Self {
        Self { consumer: consumer.into(), token: token.into(), secret: secret.into() }
    }

    /// The whole key as text: for storing it, never for printing it.
    pub fn expose(&self) -> SecretString {
        format!("{}:{}:{}", self.consumer.expose_secret(), self.token.expose_secret(), self.secret.expose_secret()).into()
    }

    /// The middle part, by which MAAS deletes a key.
    pub(crate) fn token(&self) -> &str {
        self.token.expose_secret()
    }

    /// The value of the `Authorization` header. The nonce may be used once only: MAAS refuses it the second time.
    pub(crate) fn sign(&self, nonce: u128, unix_seconds: u64) -> HeaderValue {
        let encoded = |part: &SecretString| utf8_percent_encode(part.expose_secret(), UNRESERVED_STAYS).to_string();
        let text = format!(
            "OAuth oauth_version=\"1.0\", oauth_signature_method=\"PLAINTEXT\", oauth_consumer_key=\"{}\", oauth_token=\"{}\", \
             oauth_signature=\"%26{}\", oauth_nonce=\"{nonce:032x}\", oauth_timestamp=\"{unix_seconds}\"",
            encoded(&self.consumer),
            encoded(&self.token),
            encoded(&self.secret),
        );
        // Percent-encoded text always is a header value.
        let mut value = HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""));
        value.set_sensitive(true);
        value
    }

    /// What nobody may quote of it.
    pub(crate) fn parts(&self) -> [&str; 3] {
        [&self.secret, &self.token, &self.consumer].map(SecretString::expose_secret)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey([redacted])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_has_every_part_maas_asks_for() {
        let key: ApiKey = "consumer:to/ken:sec ret".replace(' ', "+").parse().unwrap();
        let value = key.sign(0xab, 1_794_772_043);
        assert_eq!(
            value.to_str().unwrap(),
            "OAuth oauth_version=\"1.0\", oauth_signature_method=\"PLAINTEXT\", oauth_consumer_key=\"consumer\", \
             oauth_token=\"to%2Fken\", oauth_signature=\"%26sec%2Bret\", oauth_nonce=\"000000000000000000000000000000ab\", \
             oauth_timestamp=\"1794772043\""
        );
        assert!(value.is_sensitive());
    }

    #[test]
    fn a_malformed_key_is_told_in_one_sentence_that_does_not_repeat_it() {
        for text in ["", "canary", "canary:canary", "canary:canary:canary:canary", "canary::canary", "canary:can ary:canary"] {
            let error = text.parse::<ApiKey>().unwrap_err().to_string();
            assert!(!error.contains("canary") && error.contains("consumer:token:secret"), "{error}");
        }
    }
}
