//! What agreement means: status, the four headers, and the body, value by value. Only places that `places` names are free, and what
//! is made up there is paired one to one over the whole replay.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use super::{
    mapping::{Kind, Mapping},
    places::{Place, form_of_time, has_form, parts, place},
    recordings::{BodyKind, Response, relative},
};

/// The headers that count.
pub const HEADERS: [&str; 4] = ["content-type", "retry-after", "allow", "www-authenticate"];

/// An answer of the emulator.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A place where the two differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub place: String,
    pub expected: String,
    pub got: String,
}

/// What is known of an exchange besides its answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct About<'a> {
    /// The path that was asked.
    pub path: &'a str,
    /// Keys of the body that are not compared.
    pub leave_out: &'a [String],
    /// The recording kept only some keys of the body.
    pub cut: bool,
}

/// Every difference between the recorded answer and the emulator's. Pairs are learnt from what agrees.
pub fn compare(expected: &Response, got: &Answer, about: About<'_>, mapping: &mut Mapping) -> Vec<Difference> {
    let mut comparison = Comparison { mapping, differences: Vec::new(), sentences: Vec::new() };
    comparison.whole("status", &expected.status.to_string(), &got.status.to_string());
    for name in HEADERS {
        comparison.whole(name, expected.header(name).unwrap_or("(absent)"), got.header(name).unwrap_or("(absent)"));
    }
    if expected.status != got.status {
        // The bodies are about different things: one difference with both is worth more than a hundred.
        comparison.differ("body", &shown(&expected.body), &in_a_line(&got.body));
        return comparison.differences;
    }
    comparison.body(expected, got, about);
    comparison.check_sentences();
    comparison.differences
}

pub(super) struct Comparison<'a> {
    mapping: &'a mut Mapping,
    differences: Vec<Difference>,
    /// Strings that differ as they stand and may agree once everything made up in this answer is known.
    sentences: Vec<(String, String, String)>,
}

impl Comparison<'_> {
    pub(super) fn differ(&mut self, place: &str, expected: &str, got: &str) {
        self.differences.push(Difference { place: place.to_owned(), expected: expected.to_owned(), got: got.to_owned() });
    }

    fn whole(&mut self, place: &str, expected: &str, got: &str) {
        if expected != got {
            self.differ(place, expected, got);
        }
    }

    fn body(&mut self, expected: &Response, got: &Answer, about: About<'_>) {
        match expected.kind() {
            BodyKind::Base64 => {
                let encoded = STANDARD.encode(&got.body);
                self.whole("body", expected.body.as_str().unwrap_or_default(), &encoded);
            }
            BodyKind::Text => {
                let text = String::from_utf8_lossy(&got.body).into_owned();
                self.sentence("body", expected.body.as_str().unwrap_or_default(), &text);
            }
            BodyKind::Json => match serde_json::from_slice::<Value>(&got.body) {
                Ok(value) => self.json(&expected.body, value, about),
                Err(_) => self.differ("body", &shown(&expected.body), &in_a_line(&got.body)),
            },
        }
    }

    fn json(&mut self, expected: &Value, mut got: Value, about: About<'_>) {
        let mut expected = expected.clone();
        if let (Some(expected), Some(got)) = (expected.as_object_mut(), got.as_object_mut()) {
            for key in about.leave_out {
                expected.remove(key);
                got.remove(key);
            }
            if about.cut {
                got.retain(|key, _| expected.contains_key(key));
            }
        }
        let collection = relative(about.path).trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        self.value("$", collection, &expected, &got);
    }

    pub(super) fn value(&mut self, path: &str, parent: &str, expected: &Value, got: &Value) {
        match (expected, got) {
            (Value::Object(expected), Value::Object(got)) if parent == "constraints_by_type" => self.constraints(path, expected, got),
            (Value::Object(expected), Value::Object(got)) => self.object(path, parent, expected, got),
            (Value::Array(expected), Value::Array(got)) => self.list(path, parent, expected, got),
            (Value::String(expected), Value::String(got)) => self.sentence(path, expected, got),
            _ if expected == got => {}
            _ => self.differ(path, &shown(expected), &shown(got)),
        }
    }

    fn object(&mut self, path: &str, parent: &str, expected: &Map<String, Value>, got: &Map<String, Value>) {
        // Objects by system id have made-up names for keys.
        let named: BTreeMap<String, &Value> = expected.iter().map(|(key, value)| (self.mapping.translate_text(key), value)).collect();
        for (key, value) in &named {
            let here = format!("{path}.{key}");
            match got.get(key) {
                Some(other) => self.at(place(key, expected, parent), &here, key, value, other),
                None => self.differ(&here, &shown(value), "(no such key)"),
            }
        }
        for (key, value) in got.iter().filter(|(key, _)| !named.contains_key(*key)) {
            self.differ(&format!("{path}.{key}"), "(no such key)", &shown(value));
        }
    }

    fn at(&mut self, place: Place, path: &str, key: &str, expected: &Value, got: &Value) {
        let agree = match (place, expected, got) {
            (Place::Equal, _, _) => return self.value(path, key, expected, got),
            (_, Value::String(expected), Value::String(got)) => match place {
                Place::Time => form_of_time(expected) == form_of_time(got),
                Place::Made(kind) => self.made(kind, expected, got),
                Place::Key => self.all_made(Kind::Token, ':', expected, got),
                Place::Fqdn => self.fqdn(expected, got),
                Place::Uri => self.uri(expected, got),
                Place::Equal => expected == got,
            },
            (Place::Made(kind), Value::Number(expected), Value::Number(got)) => self.made(kind, &expected.to_string(), &got.to_string()),
            _ => return self.value(path, key, expected, got),
        };
        if !agree {
            let expected = match expected {
                Value::String(text) => format!("{:?} (here {:?})", text, self.mapping.translate_text(text)),
                other => shown(other),
            };
            self.differ(path, &expected, &shown(got));
        }
    }

    fn list(&mut self, path: &str, parent: &str, expected: &[Value], got: &[Value]) {
        if expected.len() != got.len() {
            let (theirs, ours) = (shown(&Value::from(expected)), shown(&Value::from(got)));
            return self.differ(path, &format!("{} of them: {theirs}", expected.len()), &format!("{} of them: {ours}", got.len()));
        }
        for (index, (expected, got)) in expected.iter().zip(got).enumerate() {
            let (mark, differences, sentences) = (self.mapping.mark(), self.differences.len(), self.sentences.len());
            self.value(&format!("{path}[{index}]"), parent, expected, got);
            let says_else = self.sentences[sentences..].iter().any(|(_, expected, got)| self.mapping.translate_text(expected) != *got);
            if self.differences.len() > differences || says_else {
                // Two rows that differ may be different rows: what they were called teaches nothing.
                self.mapping.forget_since(mark);
            }
        }
    }

    /// Whether two values of a free place may be the same thing.
    pub(super) fn made(&mut self, kind: Kind, expected: &str, got: &str) -> bool {
        if !has_form(kind, expected) || !has_form(kind, got) {
            return expected == got;
        }
        self.mapping.agree(kind, expected, got)
    }

    fn all_made(&mut self, kind: Kind, separator: char, expected: &str, got: &str) -> bool {
        let (expected, got): (Vec<_>, Vec<_>) = (expected.split(separator).collect(), got.split(separator).collect());
        expected.len() == got.len() && expected.iter().zip(got).all(|(expected, got)| self.made(kind, expected, got))
    }

    fn fqdn(&mut self, expected: &str, got: &str) -> bool {
        match (expected.split_once('.'), got.split_once('.')) {
            (Some((host, domain)), Some((our_host, our_domain))) => domain == our_domain && self.made(Kind::Hostname, host, our_host),
            _ => expected == got,
        }
    }

    fn uri(&mut self, expected: &str, got: &str) -> bool {
        let split =
            |uri: &str| uri.split_once('?').map_or((uri.to_owned(), None), |(path, query)| (path.to_owned(), Some(query.to_owned())));
        let ((path, query), (our_path, our_query)) = (split(expected), split(got));
        self.path(&path, &our_path)
            && match (query, our_query) {
                (Some(query), Some(our_query)) => self.query(&query, &our_query),
                (query, our_query) => query == our_query,
            }
    }

    fn path(&mut self, expected: &str, got: &str) -> bool {
        let (expected, got) = (parts(expected), parts(got));
        let pairs = expected.iter().zip(&got);
        let differs = pairs.filter(|((expected, kind), (got, _))| match kind {
            Some(kind) => !self.made(*kind, expected, got),
            None => expected != got,
        });
        expected.len() == got.len() && differs.count() == 0
    }

    fn query(&mut self, expected: &str, got: &str) -> bool {
        let (expected, got): (Vec<_>, Vec<_>) = (expected.split('&').collect(), got.split('&').collect());
        let same = |comparison: &mut Self, expected: &str, got: &str| match (expected.split_once('='), got.split_once('=')) {
            (Some((key @ ("before" | "after"), number)), Some((our_key, our_number))) => {
                key == our_key && comparison.made(Kind::Event, number, our_number)
            }
            _ => expected == got || comparison.mapping.translate_text(expected) == got,
        };
        expected.len() == got.len() && expected.iter().zip(got).all(|(expected, got)| same(self, expected, got))
    }

    /// A string that must be equal, but for made-up names inside it.
    fn sentence(&mut self, path: &str, expected: &str, got: &str) {
        if expected != got {
            self.sentences.push((path.to_owned(), expected.to_owned(), got.to_owned()));
        } else if self.mapping.translate_text(expected) != expected {
            // It names something that is called otherwise here.
            self.sentences.push((path.to_owned(), expected.to_owned(), got.to_owned()));
        }
    }

    fn check_sentences(&mut self) {
        for (path, expected, got) in std::mem::take(&mut self.sentences) {
            let translated = self.mapping.translate_text(&expected);
            if translated != got {
                self.differ(
                    &path,
                    &shortened_around(&format!("{translated:?}"), &format!("{got:?}")),
                    &shortened_around(&format!("{got:?}"), &format!("{translated:?}")),
                );
            }
        }
    }
}

/// A value in a line of its own.
pub(super) fn shown(value: &Value) -> String {
    shortened(&value.to_string())
}

/// A body in a line of its own.
fn in_a_line(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    serde_json::from_str(&text).map_or_else(|_| shown(&Value::from(text)), |value: Value| shown(&value))
}

const LONGEST: usize = 300;

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The part of a long text where it begins to differ from another.
fn shortened_around(text: &str, other: &str) -> String {
    let same = text.chars().zip(other.chars()).take_while(|(left, right)| left == right).count();
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let begin = same.saturating_sub(40);
    let part: String = text.chars().skip(begin).take(LONGEST).collect();
    if begin == 0 { format!("{part}…") } else { format!("…{part}…") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn recorded(status: u16, body: &Value) -> Response {
        let headers = json!({"Content-Type": "application/json; charset=utf-8"});
        serde_json::from_value(json!({"status": status, "headers": headers, "body": body, "body_kind": "json"})).unwrap()
    }

    fn given(body: &Value) -> Answer {
        let headers = vec![("content-type".to_owned(), "application/json; charset=utf-8".to_owned())];
        Answer { status: 200, headers, body: serde_json::to_vec_pretty(body).unwrap() }
    }

    fn places(expected: &Value, got: &Value, mapping: &mut Mapping) -> Vec<String> {
        let differences = compare(&recorded(200, expected), &given(got), About::default(), mapping);
        differences.into_iter().map(|difference| difference.place).collect()
    }

    #[test]
    fn every_difference_is_named_by_its_place() {
        let expected = json!({"a": 1, "b": [1, 2], "c": {"d": null}, "e": 1.0});
        let got = json!({"a": 2, "b": [2, 1], "c": {"f": null}, "e": 1});
        assert_eq!(places(&expected, &got, &mut Mapping::default()), ["$.a", "$.b[0]", "$.b[1]", "$.c.d", "$.c.f", "$.e"]);
    }

    #[test]
    fn another_status_is_reported_with_both_bodies_and_no_more() {
        let differences = compare(&recorded(404, &json!({"a": 1})), &given(&json!({"b": 1})), About::default(), &mut Mapping::default());
        assert_eq!(differences.iter().map(|difference| difference.place.as_str()).collect::<Vec<_>>(), ["status", "body"]);
    }

    #[test]
    fn headers_count_when_they_are_there_and_when_they_are_not() {
        let mut answer = given(&json!([]));
        answer.headers.push(("retry-after".into(), "5".into()));
        answer.headers.push(("server".into(), "another".into()));
        let differences = compare(&recorded(200, &json!([])), &answer, About::default(), &mut Mapping::default());
        assert_eq!(differences, [Difference { place: "retry-after".into(), expected: "(absent)".into(), got: "5".into() }]);
    }

    #[test]
    fn sentences_and_keys_name_what_was_paired_elsewhere_in_the_answer() {
        let expected =
            json!({"abc123": 1, "text": "No abc123.", "z": [{"system_id": "abc123", "resource_uri": "/MAAS/api/2.0/machines/abc123/"}]});
        let got =
            json!({"abc123": 1, "text": "No xyz789.", "z": [{"system_id": "xyz789", "resource_uri": "/MAAS/api/2.0/machines/xyz789/"}]});
        let mut mapping = Mapping::default();
        assert_eq!(places(&expected, &got, &mut mapping), [""; 0], "the pair is learnt");
        let renamed = json!({"xyz789": 1, "text": "No xyz789.", "z": got["z"]});
        assert_eq!(places(&expected, &renamed, &mut mapping), [""; 0], "and known from now on");
        assert_eq!(places(&expected, &got, &mut mapping), ["$.xyz789", "$.abc123"]);
    }

    #[test]
    fn rows_that_differ_teach_nothing() {
        let row = |id: u32, name: &str| json!({"id": id, "name": name, "resource_uri": format!("/MAAS/api/2.0/subnets/{id}/")});
        let mut mapping = Mapping::default();
        assert_eq!(
            places(&json!([row(3, "a"), row(4, "b")]), &json!([row(30, "b"), row(40, "a")]), &mut mapping),
            ["$[0].name", "$[1].name"]
        );
        assert_eq!(places(&json!([row(3, "a")]), &json!([row(40, "a")]), &mut mapping), [""; 0]);
    }

    #[test]
    fn keys_can_be_left_out_and_bodies_can_be_cut() {
        let (expected, got) = (recorded(200, &json!({"a": 1, "b": 1})), given(&json!({"a": 1, "b": 2, "c": 3})));
        let leave_out = ["b".to_owned()];
        let about = About { leave_out: &leave_out, cut: true, path: "" };
        assert_eq!(compare(&expected, &got, about, &mut Mapping::default()), []);
        assert_eq!(compare(&expected, &got, About::default(), &mut Mapping::default()).len(), 2);
    }
}
