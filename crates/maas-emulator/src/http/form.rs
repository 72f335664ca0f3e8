//! Form fields: URL-encoded or multipart, several values a key, the last one wins where one is asked for.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// More fields than this are refused: the limit of Django, which MAAS does not lift.
pub const MOST_FIELDS: usize = 1000;

/// Fields in the order they were sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form(pub Vec<(String, String)>);

/// A file of a multipart body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The field it was sent as.
    pub field: String,
    /// What it holds.
    pub content: Bytes,
}

impl Form {
    /// Reads `a=1&b=2`; none when there are more fields than MAAS takes, of which only the separators are looked at.
    pub fn url_encoded(text: &[u8]) -> Option<Self> {
        let fields = text.split(|byte| *byte == b'&').take(MOST_FIELDS + 1).count();
        (fields <= MOST_FIELDS).then(|| Self::parse(text))
    }

    fn parse(text: &[u8]) -> Self {
        Form(form_urlencoded::parse(text).map(|(key, value)| (key.into_owned(), value.into_owned())).collect())
    }

    /// The last value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The last value of a key unless it is empty.
    pub fn filled(&self, key: &str) -> Option<&str> {
        self.get(key).filter(|value| !value.is_empty())
    }

    /// All values of a key.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Whether a key was sent at all.
    pub fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(name, _)| name == key)
    }

    /// The keys, each once and with all its values, in the order of their first appearance. Walks the form once.
    pub fn grouped(&self) -> Vec<(&str, Vec<&str>)> {
        let mut places = std::collections::BTreeMap::new();
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for (name, value) in &self.0 {
            let place = *places.entry(name.as_str()).or_insert_with(|| {
                groups.push((name.as_str(), Vec::new()));
                groups.len() - 1
            });
            groups[place].1.push(value.as_str());
        }
        groups
    }

    /// The keys, each once, in the order of their first appearance.
    pub fn keys(&self) -> Vec<&str> {
        let mut seen = std::collections::BTreeSet::new();
        self.0.iter().map(|(name, _)| name.as_str()).filter(|name| seen.insert(*name)).collect()
    }
}

/// The plain members of a JSON object as fields, as forms of MAAS read them, which are written in Python. What is empty was not sent.
pub fn json(body: &[u8]) -> Form {
    let members: serde_json::Map<String, Value> = serde_json::from_slice(body).unwrap_or_default();
    let plain = |(name, value): (String, Value)| match value {
        Value::String(text) => Some((name, text)),
        Value::Number(number) => Some((name, number.to_string())),
        Value::Bool(true) => Some((name, "True".into())),
        Value::Bool(false) => Some((name, "False".into())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    Form(members.into_iter().filter_map(plain).collect())
}

/// Reads a multipart body; none when it is not one.
pub fn multipart(content_type: &str, body: &Bytes) -> Option<(Form, Vec<File>)> {
    let boundary = content_type.split(';').map(str::trim).find_map(|part| part.strip_prefix("boundary="))?.trim_matches('"');
    let delimiter = [b"--", boundary.as_bytes()].concat();
    let (mut form, mut files) = (Form::default(), Vec::new());
    let mut at = find(body, &delimiter, 0)? + delimiter.len();
    while !body[at..].starts_with(b"--") {
        let start = at + 2;
        let end = find(body, &delimiter, start)?;
        let head_end = find(body, b"\r\n\r\n", start).filter(|head_end| *head_end < end)?;
        let head = String::from_utf8_lossy(&body[start..head_end]).into_owned();
        let content = body.slice((head_end + 4).min(end)..end.saturating_sub(2).max((head_end + 4).min(end)));
        let disposition = head.lines().find(|line| line.to_ascii_lowercase().starts_with("content-disposition:"))?;
        let field = parameter(disposition, "name")?;
        if parameter(disposition, "filename").is_some() {
            files.push(File { field, content });
        } else {
            form.0.push((field, String::from_utf8_lossy(&content).into_owned()));
        }
        at = end + delimiter.len();
    }
    Some((form, files))
}

fn find(body: &[u8], pattern: &[u8], from: usize) -> Option<usize> {
    body.get(from..)?.windows(pattern.len()).position(|window| window == pattern).map(|position| position + from)
}

fn parameter(header: &str, name: &str) -> Option<String> {
    header
        .split(';')
        .map(str::trim)
        .find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
        .map(|value| value.trim_matches('"').to_owned())
}
