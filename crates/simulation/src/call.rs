//! One request as the server reads it: verb, target, query, body and the form of the answer that is wanted.

use crate::{
    refusal::Refusal,
    selector::Selector,
    target::Target,
    watching::{WatchRequest, metadata_of},
};
use http::{
    Method,
    header::{ACCEPT, CONTENT_TYPE},
};
use serde_json::Value;
use std::{collections::BTreeMap, time::Duration};

/// One request, read.
#[derive(Debug)]
pub struct Call {
    pub method: Method,
    pub target: Target,
    pub content_type: String,
    pub body: Value,
    query: BTreeMap<String, String>,
    metadata_only: bool,
}

impl Call {
    pub fn read(parts: http::request::Parts, body: &[u8]) -> Result<Self, Refusal> {
        let header = |name| parts.headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok()).unwrap_or_default();
        let body = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(body).map_err(|error| Refusal::bad_request(error.to_string()))?
        };
        Ok(Self {
            target: Target::parse(parts.uri.path())?,
            query: query_of(parts.uri.query().unwrap_or_default()),
            content_type: header(CONTENT_TYPE).to_owned(),
            metadata_only: header(ACCEPT).contains("as=PartialObjectMetadata"),
            method: parts.method,
            body,
        })
    }

    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    /// The object in the form that was asked for.
    pub fn shown(&self, object: &Value) -> Value {
        if self.metadata_only { metadata_of(object) } else { object.clone() }
    }

    pub fn watch_request(&self, selector: Selector) -> Result<WatchRequest, Refusal> {
        let no_number = |_| Refusal::bad_request("resourceVersion is no number");
        Ok(WatchRequest {
            api_version: self.target.api_version(),
            resource: self.target.resource.clone(),
            selector,
            revision: self.query("resourceVersion").unwrap_or("0").parse().map_err(no_number)?,
            bookmarks: self.query("allowWatchBookmarks") == Some("true"),
            timeout: Duration::from_secs(self.query("timeoutSeconds").and_then(|seconds| seconds.parse().ok()).unwrap_or(1800)),
            metadata_only: self.metadata_only,
        })
    }
}

/// The pairs of a query string, decoded.
fn query_of(query: &str) -> BTreeMap<String, String> {
    let decode = |text: &str| {
        let mut bytes = text.bytes();
        let mut decoded = Vec::new();
        while let Some(byte) = bytes.next() {
            decoded.push(match byte {
                b'+' => b' ',
                b'%' => {
                    let digits = [bytes.next().unwrap_or(b'0'), bytes.next().unwrap_or(b'0')];
                    u8::from_str_radix(&String::from_utf8_lossy(&digits), 16).unwrap_or(b'?')
                }
                other => other,
            });
        }
        String::from_utf8_lossy(&decoded).into_owned()
    };
    query.split('&').filter_map(|pair| pair.split_once('=')).map(|(name, value)| (decode(name), decode(value))).collect()
}
