//! The recordings: one file an exchange, or a list of exchanges for a race. Read by `replay`, which merges several directories.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Value;

/// Why recordings could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingsError {
    #[error("there are no recordings in {}: it is not a directory; name the directory that holds files like 001-version.json", .0.display())]
    NoDirectory(PathBuf),
    #[error("there are no recordings in {}: no file is named like 001-version.json", .0.display())]
    NoFiles(PathBuf),
    #[error("could not read {}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{} is not a recording", path.display())]
    NotARecording { path: PathBuf, source: serde_json::Error },
    #[error("number {number} is both {first} and {second}: recordings of one run have different numbers")]
    SameNumber { number: u16, first: String, second: String },
}

/// One file: an exchange, or several that were made at once.
#[derive(Clone, Debug)]
pub struct Recording {
    pub number: u16,
    pub name: String,
    pub race: bool,
    pub exchanges: Vec<Exchange>,
}

/// A request and its answer.
#[derive(Clone, Debug, Deserialize)]
pub struct Exchange {
    pub request: Request,
    pub response: Response,
}

/// What was sent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Request {
    pub method: String,
    pub path: String,
    #[serde(deserialize_with = "nothing_when_null")]
    pub query: Vec<(String, String)>,
    #[serde(deserialize_with = "nothing_when_null")]
    pub form: Vec<(String, String)>,
    pub user: Option<String>,
    /// `OAuth1 PLAINTEXT` for a header made from `user`'s key, or a header to be sent as it is.
    pub auth: Option<String>,
    pub headers: BTreeMap<String, String>,
    pub content_type: Option<String>,
    pub raw_body: Option<String>,
    pub multipart: bool,
}

impl Request {
    /// The operation, wherever it was named.
    pub fn operation(&self) -> Option<&str> {
        self.query.iter().chain(&self.form).find(|(key, _)| key == "op").map(|(_, value)| value.as_str())
    }

    /// Whether this reads a whole collection: no operation and no filter.
    pub fn lists(&self, collection: &str) -> bool {
        self.method == "GET" && self.query.is_empty() && relative(&self.path) == collection
    }
}

/// What came back.
#[derive(Clone, Debug, Deserialize)]
pub struct Response {
    pub status: u16,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub body: Value,
    #[serde(default)]
    pub body_kind: Option<BodyKind>,
}

impl Response {
    /// The header of this name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// How the body is written down. Races do not say, so their content type does.
    pub fn kind(&self) -> BodyKind {
        let json = || self.header("content-type").is_some_and(|content_type| content_type.starts_with("application/json"));
        self.body_kind.unwrap_or_else(|| if json() { BodyKind::Json } else { BodyKind::Text })
    }
}

/// How a body is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BodyKind {
    Json,
    Text,
    Base64,
}

/// Recordings write null for what a request did not have.
fn nothing_when_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, String)>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[derive(Deserialize)]
struct File {
    name: String,
    exchanges: Option<Vec<Exchange>>,
    request: Option<Request>,
    response: Option<Response>,
}

/// The path without the prefix that every path of the API has.
pub fn relative(path: &str) -> &str {
    path.strip_prefix("/MAAS/api/2.0/").unwrap_or(path)
}

/// Reads the recordings of all directories in the order of their numbers.
pub fn read(directories: &[PathBuf]) -> Result<Vec<Recording>, RecordingsError> {
    let mut recordings: BTreeMap<u16, Recording> = BTreeMap::new();
    for directory in directories {
        let found = read_directory(directory)?;
        if found.is_empty() {
            return Err(RecordingsError::NoFiles(directory.clone()));
        }
        for recording in found {
            let (number, second) = (recording.number, recording.name.clone());
            if let Some(first) = recordings.insert(number, recording) {
                return Err(RecordingsError::SameNumber { number, first: first.name, second });
            }
        }
    }
    Ok(recordings.into_values().collect())
}

fn read_directory(directory: &Path) -> Result<Vec<Recording>, RecordingsError> {
    if !directory.is_dir() {
        return Err(RecordingsError::NoDirectory(directory.to_owned()));
    }
    let unreadable = |source| RecordingsError::Unreadable { path: directory.to_owned(), source };
    let mut recordings = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if let Some(number) = number_of(&path).filter(|number| *number > 0) {
            recordings.push(read_file(&path, number)?);
        }
    }
    Ok(recordings)
}

/// The number a file's name begins with; 000 is not an exchange but what is said about them.
fn number_of(path: &Path) -> Option<u16> {
    let name = path.file_name()?.to_str()?;
    let digits = name.strip_suffix(".json")?.split_once('-')?.0;
    (digits.len() == 3).then(|| digits.parse().ok()).flatten()
}

fn read_file(path: &Path, number: u16) -> Result<Recording, RecordingsError> {
    let text = fs::read_to_string(path).map_err(|source| RecordingsError::Unreadable { path: path.to_owned(), source })?;
    let not_a_recording = |source| RecordingsError::NotARecording { path: path.to_owned(), source };
    let file: File = serde_json::from_str(&text).map_err(not_a_recording)?;
    let race = file.exchanges.is_some();
    let exchanges = match (file.exchanges, file.request, file.response) {
        (Some(exchanges), _, _) => exchanges,
        (None, Some(request), Some(response)) => vec![Exchange { request, response }],
        _ => {
            let missing = serde::de::Error::custom("it has neither request and response nor exchanges");
            return Err(not_a_recording(missing));
        }
    };
    Ok(Recording { number, name: file.name, race, exchanges })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(directory: &Path, name: &str, text: &str) {
        fs::write(directory.join(name), text).unwrap();
    }

    const EXCHANGE: &str =
        r#"{"name": "x", "request": {"method": "GET", "path": "/MAAS/api/2.0/zones/"}, "response": {"status": 200, "body": []}}"#;

    #[test]
    fn directories_are_merged_in_number_order() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write(first.path(), "001-a.json", EXCHANGE);
        write(first.path(), "003-c.json", EXCHANGE);
        write(first.path(), "000-provenance.json", "{}");
        write(first.path(), "README.md", "text");
        write(second.path(), "002-b.json", EXCHANGE);
        let recordings = read(&[first.path().to_owned(), second.path().to_owned()]).unwrap();
        assert_eq!(recordings.iter().map(|recording| recording.number).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn a_missing_directory_and_one_without_recordings_are_named() {
        let empty = tempfile::tempdir().unwrap();
        let missing = empty.path().join("nothing");
        let error = read(std::slice::from_ref(&missing)).unwrap_err().to_string();
        assert!(error.contains(missing.to_str().unwrap()), "{error}");
        assert!(matches!(read(&[empty.path().to_owned()]), Err(RecordingsError::NoFiles(_))));
    }

    #[test]
    fn a_number_is_taken_once() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write(first.path(), "001-a.json", EXCHANGE);
        write(second.path(), "001-b.json", EXCHANGE);
        let outcome = read(&[first.path().to_owned(), second.path().to_owned()]);
        assert!(matches!(outcome, Err(RecordingsError::SameNumber { number: 1, .. })));
    }

    #[test]
    fn a_file_that_is_no_recording_is_named() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), "001-a.json", r#"{"name": "a"}"#);
        let error = read(&[directory.path().to_owned()]).unwrap_err().to_string();
        assert!(error.contains("001-a.json"), "{error}");
    }
}
