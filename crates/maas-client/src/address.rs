//! Where a MAAS is. Parsed once, when a client is built.

use std::{fmt, str::FromStr};

use http::Uri;

/// The address of a MAAS up to and without its API version, such as `http://maas.example:5240/MAAS`.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(String);

/// Says what is wrong with an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the MAAS address must look like http://maas.example:5240/MAAS; this one {0}")]
pub struct MalformedAddress(&'static str);

impl FromStr for Address {
    type Err = MalformedAddress;

    /// Takes the address with or without a slash at its end, with or without `/api/2.0`; without a path it is `/MAAS`.
    fn from_str(text: &str) -> Result<Self, MalformedAddress> {
        let text = text.trim();
        if text.is_empty() {
            return Err(MalformedAddress("is empty"));
        }
        if !text.starts_with("http://") && !text.starts_with("https://") {
            return Err(MalformedAddress("does not begin with http:// or https://"));
        }
        if text.contains(['?', '#']) {
            return Err(MalformedAddress("has a query or a fragment"));
        }
        let uri: Uri = text.parse().map_err(|_| MalformedAddress("cannot be read as an address"))?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(MalformedAddress("names no host"));
        };
        if authority.as_str().contains('@') {
            return Err(MalformedAddress("holds a user name or password; the API key is given separately"));
        }
        if authority.host().is_empty() {
            return Err(MalformedAddress("names no host"));
        }
        // `port_u16` is nothing both without a port and with one that is no number.
        if authority.as_str().rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']')) && authority.port_u16().is_none() {
            return Err(MalformedAddress("has a port that is no number"));
        }
        let path = uri.path().trim_end_matches('/');
        let path = path.strip_suffix("/api/2.0").unwrap_or(path).trim_end_matches('/');
        if path.contains("/api/") {
            return Err(MalformedAddress("names an API version other than 2.0; leave the version out"));
        }
        let path = if path.is_empty() { "/MAAS" } else { path };
        Ok(Self(format!("{scheme}://{authority}{path}")))
    }
}

impl Address {
    /// The address as text, without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_an_address_are_the_same_one() {
        for text in
            ["http://h:5240/MAAS", "http://h:5240/MAAS/", " http://h:5240/MAAS/api/2.0", "http://h:5240/MAAS/api/2.0/", "http://h:5240"]
        {
            assert_eq!(text.parse::<Address>().unwrap().as_str(), "http://h:5240/MAAS", "{text}");
        }
        assert_eq!("https://[fd00::1]/metal/".parse::<Address>().unwrap().as_str(), "https://[fd00::1]/metal");
    }

    #[test]
    fn a_bad_address_is_told_in_one_sentence_without_its_password() {
        for text in [
            "",
            "maas.example",
            "ftp://h/MAAS",
            "http://",
            "http:///MAAS",
            "http://u:canary@h/MAAS",
            "http://h/MAAS?x=canary",
            "http://h:x/",
            "http://h/MAAS/api/1.0/",
            "http://h h/",
        ] {
            let error = text.parse::<Address>().expect_err(text).to_string();
            assert!(error.contains("http://maas.example:5240/MAAS") && !error.contains("canary"), "{error}");
        }
    }
}
