//! Recorded requests as the emulator gets them: ids that MAAS made up are replaced by those the emulator made up, and requests that say
//! only who sent them are signed anew.

use std::collections::BTreeMap;

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderName, header};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::{
    mapping::{Kind, Mapping},
    oauth::Key,
    places::{has_form, kind_of_parameter, parts},
    recordings::Request,
};

/// What must not stand in a request line as it is.
const UNSAFE: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'`').add(b'#').add(b'?').add(b'{').add(b'}');

/// What a request says when the key of its sender is to be used.
const SIGN: &str = "OAuth1 PLAINTEXT";

/// What a recording has instead of a file's bytes.
pub const FILE: &str = "<file>";

const BOUNDARY: &str = "----replayed-form-boundary";

/// Signs requests, each with a nonce of its own.
#[derive(Default)]
pub struct Senders {
    keys: BTreeMap<String, Key>,
    nonce: u64,
}

impl Senders {
    pub fn new(keys: BTreeMap<String, Key>) -> Self {
        Self { keys, nonce: 0 }
    }

    /// The request for the emulator, at this time of its clock.
    pub fn request(&mut self, request: &Request, mapping: &Mapping, now: i64) -> anyhow::Result<http::Request<Bytes>> {
        let operation = request.operation();
        let query = translated(&request.query, operation, mapping);
        let form = translated(&request.form, operation, mapping);
        let mut uri = utf8_percent_encode(&translated_path(&request.path, mapping), UNSAFE).to_string();
        if !query.is_empty() {
            uri = format!("{uri}?{}", encoded(&query));
        }
        let mut builder = http::Request::builder().method(request.method.as_str()).uri(uri).header(header::HOST, "127.0.0.1:5240");
        if let Some(authorization) = self.authorization(request, now)? {
            builder = builder.header(header::AUTHORIZATION, authorization);
        }
        for (name, value) in &request.headers {
            builder = builder.header(HeaderName::try_from(name.as_str()).context("a recorded header has no name")?, value);
        }
        let (content_type, body) = body(request, &form);
        if let Some(content_type) = content_type {
            builder = builder.header(header::CONTENT_TYPE, content_type).header(header::CONTENT_LENGTH, body.len());
        }
        builder.body(body).with_context(|| format!("{} {} cannot be sent", request.method, request.path))
    }

    fn authorization(&mut self, request: &Request, now: i64) -> anyhow::Result<Option<String>> {
        if let Some(verbatim) = request.auth.as_ref().filter(|auth| *auth != SIGN) {
            return Ok(Some(verbatim.clone()));
        }
        let Some(user) = &request.user else { return Ok(None) };
        let nonce = self.nonce + 1;
        let header = self.key(user)?.plaintext(nonce, now);
        self.nonce = nonce;
        Ok(Some(header))
    }

    /// The key of a user.
    pub fn key(&self, user: &str) -> anyhow::Result<&Key> {
        self.keys.get(user).with_context(|| format!("there is no key for user {user}"))
    }
}

fn body(request: &Request, form: &[(String, String)]) -> (Option<String>, Bytes) {
    if let Some(raw) = &request.raw_body {
        return (request.content_type.clone(), Bytes::from(raw.clone()));
    }
    if request.multipart {
        return (Some(format!("multipart/form-data; boundary={BOUNDARY}")), Bytes::from(multipart(form)));
    }
    if form.is_empty() {
        return (request.content_type.clone(), Bytes::new());
    }
    let content_type = request.content_type.clone().unwrap_or_else(|| "application/x-www-form-urlencoded".to_owned());
    (Some(content_type), Bytes::from(encoded(form)))
}

fn encoded(pairs: &[(String, String)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

fn multipart(form: &[(String, String)]) -> Vec<u8> {
    let size = form.iter().find(|(key, _)| key == "size").and_then(|(_, size)| size.parse().ok());
    let mut body = Vec::new();
    for (key, value) in form {
        let (parameters, content) = if value == FILE {
            let parameters = format!("; filename=\"{key}\"\r\nContent-Type: application/octet-stream");
            (parameters, file(size.unwrap_or(16)))
        } else {
            (String::new(), value.clone().into_bytes())
        };
        body.extend(format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{key}\"{parameters}\r\n\r\n").into_bytes());
        body.extend(content);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{BOUNDARY}--\r\n").into_bytes());
    body
}

/// The content of an uploaded file, which no recording holds: any bytes of the right number do.
pub fn file(size: usize) -> Vec<u8> {
    b"replayed ".iter().copied().cycle().take(size).collect()
}

/// A recorded path with the ids that are used here.
pub fn translated_path(path: &str, mapping: &Mapping) -> String {
    let translate = |(part, kind): (&str, Option<Kind>)| match kind {
        Some(kind) if has_form(kind, part) => mapping.translate(kind, part),
        _ => mapping.translate_text(part),
    };
    parts(path).into_iter().map(translate).collect::<Vec<_>>().join("/")
}

fn translated(pairs: &[(String, String)], operation: Option<&str>, mapping: &Mapping) -> Vec<(String, String)> {
    let translate = |key: &str, value: &str| match kind_of_parameter(key, operation) {
        Some(Kind::Event) => mapping.translate_between(Kind::Event, value),
        Some(kind) if has_form(kind, value) => mapping.translate(kind, value),
        _ => mapping.translate_text(value),
    };
    pairs.iter().map(|(key, value)| (key.clone(), translate(key, value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn mapping() -> Mapping {
        let mut mapping = Mapping::default();
        assert!(mapping.agree(Kind::Machine, "abc123", "xyz789"));
        assert!(mapping.agree(Kind::Interface, "3", "30"));
        assert!(mapping.agree(Kind::Link, "3", "33"));
        mapping
    }

    #[test]
    fn made_up_ids_are_translated_in_paths_queries_and_forms() {
        let request = Request {
            method: "POST".into(),
            path: "/MAAS/api/2.0/nodes/abc123/interfaces/3/".into(),
            query: pairs(&[("op", "unlink_subnet")]),
            form: pairs(&[("id", "3"), ("machines", "abc123"), ("parents", "3"), ("cores", "3")]),
            ..Request::default()
        };
        let sent = Senders::default().request(&request, &mapping(), 0).unwrap();
        assert_eq!(sent.uri(), "/MAAS/api/2.0/nodes/xyz789/interfaces/30/?op=unlink_subnet");
        assert_eq!(sent.body().as_ref(), b"id=33&machines=xyz789&parents=30&cores=3");
    }

    #[test]
    fn headers_are_sent_as_recorded_or_signed_for_the_user_and_never_twice_alike() {
        let key = Key::parse("consumer:token:secret").unwrap();
        let mut senders = Senders::new(BTreeMap::from([("alice".to_owned(), key)]));
        let mut request = Request { method: "GET".into(), path: "/".into(), user: Some("alice".into()), ..Request::default() };
        let header = |senders: &mut Senders, request: &Request| {
            let sent = senders.request(request, &Mapping::default(), 7).unwrap();
            sent.headers().get(header::AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned())
        };
        let (first, second) = (header(&mut senders, &request).unwrap(), header(&mut senders, &request).unwrap());
        assert!(first.contains(r#"oauth_timestamp="7""#) && first != second, "{first} {second}");
        request.auth = Some("Basic abc".into());
        assert_eq!(header(&mut senders, &request).as_deref(), Some("Basic abc"));
        request.auth = None;
        request.user = None;
        assert_eq!(header(&mut senders, &request), None);
        request.user = Some("nobody".into());
        assert!(senders.request(&request, &Mapping::default(), 7).is_err());
    }

    #[test]
    fn files_are_sent_with_the_size_the_form_names() {
        let form = pairs(&[("content", FILE), ("name", "custom/x"), ("size", "21")]);
        let request = Request { method: "POST".into(), path: "/".into(), form, multipart: true, ..Request::default() };
        let sent = Senders::default().request(&request, &Mapping::default(), 0).unwrap();
        let text = String::from_utf8(sent.body().to_vec()).unwrap();
        assert!(text.contains(&String::from_utf8(file(21)).unwrap()), "{text}");
        assert!(text.contains("name=\"content\"; filename=\"content\"") && text.contains("\r\n\r\ncustom/x\r\n"), "{text}");
    }
}
