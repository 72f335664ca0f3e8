//! The recorded exchanges with a real MAAS, which lie beside the repository.

#![allow(dead_code, reason = "each test file uses its part")]

use std::{fs, path::PathBuf};

use bytes::Bytes;
use http::Response;
use serde_json::Value;

pub type Pairs = Vec<(String, String)>;

#[derive(Clone, Debug)]
pub struct Exchange {
    pub number: u32,
    pub method: String,
    /// Below the API's version; nothing for exchanges elsewhere.
    pub path: Option<String>,
    pub query: Pairs,
    pub form: Pairs,
    /// Sent in a way the client never would: another content type, header or user.
    pub odd: bool,
    pub status: u16,
    pub headers: Pairs,
    pub body: Value,
}

impl Exchange {
    pub fn operation(&self) -> &str {
        self.query.iter().find(|(key, _)| key == "op").map_or("", |(_, value)| value)
    }

    pub fn succeeded(&self) -> bool {
        self.status < 300
    }

    pub fn is_json(&self) -> bool {
        self.headers.iter().any(|(name, value)| name.eq_ignore_ascii_case("content-type") && value.starts_with("application/json"))
    }

    pub fn response(&self) -> Response<Bytes> {
        let mut response = Response::builder().status(self.status);
        for (name, value) in self.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("content-length")) {
            response = response.header(name, value);
        }
        let body = match &self.body {
            body if self.is_json() => serde_json::to_vec_pretty(body).unwrap(),
            Value::String(text) => text.clone().into_bytes(),
            _ => Vec::new(),
        };
        response.body(body.into()).unwrap()
    }
}

fn pairs(value: &Value) -> Pairs {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    value.as_array().into_iter().flatten().map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
}

fn exchange(number: u32, value: &Value) -> Exchange {
    let (request, response) = (&value["request"], &value["response"]);
    let path = request["path"].as_str().unwrap();
    Exchange {
        number,
        method: request["method"].as_str().unwrap().to_owned(),
        path: path.strip_prefix("/MAAS/api/2.0/").map(str::to_owned),
        query: pairs(&request["query"]),
        form: pairs(&request["form"]),
        odd: ["content_type", "raw_body", "headers", "multipart"].iter().any(|key| !request[*key].is_null()),
        status: u16::try_from(response["status"].as_u64().unwrap()).unwrap(),
        headers: response["headers"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
            .collect(),
        body: response["body"].clone(),
    }
}

/// All exchanges in order, or nothing where there are no recordings, which is said. In continuous integration that is a failure.
pub fn all() -> Option<Vec<Exchange>> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/maas-recordings");
    let Ok(entries) = fs::read_dir(&directory) else {
        assert!(std::env::var_os("CI").is_none(), "there are no recordings in {}", directory.display());
        eprintln!("left out: there are no recordings in {}", directory.display());
        return None;
    };
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    files.sort();
    let mut exchanges = Vec::new();
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let number: u32 = name[..3].parse().unwrap();
        let value: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        match &value["exchanges"] {
            _ if number == 0 => {}
            Value::Array(race) => exchanges.extend(race.iter().map(|value| exchange(number, value))),
            _ => exchanges.push(exchange(number, &value)),
        }
    }
    assert!(exchanges.len() > 400, "only {} recordings were found", exchanges.len());
    Some(exchanges)
}
