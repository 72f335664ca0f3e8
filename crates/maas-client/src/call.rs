//! One call as data: where it goes, what it sends, how long it may take and whether it may be repeated. Made by every endpoint, performed
//! by the client.

use std::{
    borrow::Cow,
    fmt::{self, Display},
};

use bytes::Bytes;
use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::{error::CallName, limits::Class};

/// What a path segment may hold as it is; the colon and the at sign because MAAS names subnets by `cidr:` and tokens by `@`.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':').remove(b'@');

/// Parameters of a query or a form, in order; a key may come several times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form(Vec<Parameter>);

#[derive(Clone, PartialEq, Eq)]
struct Parameter {
    key: Cow<'static, str>,
    value: String,
    secret: bool,
}

impl fmt::Debug for Parameter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={:?}", self.key, if self.secret { "[redacted]" } else { &self.value })
    }
}

impl Form {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with(mut self, key: impl Into<Cow<'static, str>>, value: impl Display) -> Self {
        self.0.push(Parameter { key: key.into(), value: value.to_string(), secret: false });
        self
    }

    /// A value that nobody may quote to a person or a log.
    pub fn with_secret(mut self, key: impl Into<Cow<'static, str>>, value: &str) -> Self {
        self.0.push(Parameter { key: key.into(), value: value.to_owned(), secret: true });
        self
    }

    pub fn maybe_secret(self, key: &'static str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with_secret(key, value),
            None => self,
        }
    }

    pub fn maybe(self, key: &'static str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    pub fn each(self, key: &'static str, values: impl IntoIterator<Item = impl Display>) -> Self {
        values.into_iter().fold(self, |form, value| form.with(key, value))
    }

    /// A flag in the one spelling that all of MAAS's parsers take for yes; left out for no, as some take any text for yes.
    pub fn yes(self, key: &'static str, value: bool) -> Self {
        if value { self.with(key, "1") } else { self }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn encoded(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(self.0.iter().map(|pair| (&pair.key, &pair.value))).finish()
    }

    /// These parameters, and then those.
    pub fn and(mut self, others: &Self) -> Self {
        self.0.extend_from_slice(&others.0);
        self
    }

    fn secrets(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|pair| pair.secret).map(|pair| pair.value.as_str())
    }
}

/// A path below the API's version. It ends in a slash: MAAS answers 404 without.
pub(crate) struct Path {
    text: String,
    invalid: bool,
}

impl Path {
    pub fn new(collection: &'static str) -> Self {
        Self { text: format!("{collection}/"), invalid: false }
    }

    /// Goes down into an item. An empty or dotted name would address the collection instead, so the call will not be sent.
    pub fn item(mut self, name: impl Display) -> Self {
        let name = name.to_string();
        self.invalid |= matches!(name.trim(), "" | "." | "..");
        self.text.push_str(&utf8_percent_encode(&name, SEGMENT).to_string());
        self.text.push('/');
        self
    }

    /// Goes down into an item whose name holds slashes of its own, as subnets by their CIDR.
    pub fn items(self, names: &str) -> Self {
        names.split('/').fold(self, Path::item)
    }
}

pub(crate) enum Body {
    Nothing,
    Form(Form),
    /// A part of an upload.
    Octets(Bytes),
}

/// One call.
pub(crate) struct Call {
    pub name: CallName,
    pub query: Form,
    pub body: Body,
    pub class: Class,
    /// Whether doing it twice is as good as doing it once, whatever happens in between.
    pub repeatable: bool,
    /// MAAS answers 404 when an address is taken; such an answer is a conflict.
    pub taken_is_not_found: bool,
    pub invalid: bool,
}

impl Call {
    fn new(method: Method, path: Path, class: Class, repeatable: bool) -> Self {
        let name = CallName { method, path: path.text, operation: None, subject: None };
        Self { name, query: Form::new(), body: Body::Nothing, class, repeatable, taken_is_not_found: false, invalid: path.invalid }
    }

    pub fn get(path: Path) -> Self {
        Self::new(Method::GET, path, Class::Read, true)
    }

    /// Never repeated, unless [`Call::repeatable`] says otherwise.
    pub fn post(path: Path) -> Self {
        Self { body: Body::Form(Form::new()), ..Self::new(Method::POST, path, Class::Write, false) }
    }

    pub fn put(path: Path) -> Self {
        Self { body: Body::Form(Form::new()), ..Self::new(Method::PUT, path, Class::Write, true) }
    }

    /// May be repeated where a number tells what to remove, since MAAS gives none twice. A name may be another thing's by then:
    /// [`Call::once`].
    pub fn delete(path: Path) -> Self {
        Self::new(Method::DELETE, path, Class::Write, true)
    }

    pub fn operation(mut self, operation: &'static str) -> Self {
        self.name.operation = Some(operation);
        self
    }

    pub fn about(mut self, kind: &str, name: impl Display) -> Self {
        self.name.subject = Some(format!("{kind} {name}"));
        self
    }

    pub fn query(mut self, query: Form) -> Self {
        self.query = query;
        self
    }

    pub fn form(mut self, form: Form) -> Self {
        self.body = Body::Form(form);
        self
    }

    pub fn octets(mut self, octets: Bytes) -> Self {
        self.body = Body::Octets(octets);
        self
    }

    pub fn slow(mut self) -> Self {
        self.class = Class::Slow;
        self
    }

    pub fn once(mut self) -> Self {
        self.repeatable = false;
        self
    }

    pub fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    pub fn taken_is_not_found(mut self) -> Self {
        self.taken_is_not_found = true;
        self
    }

    /// What was given with it that nobody may quote.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let form = match &self.body {
            Body::Form(form) => Some(form),
            Body::Nothing | Body::Octets(_) => None,
        };
        form.into_iter().flat_map(Form::secrets)
    }

    /// Path and query below the API's version.
    pub fn target(&self) -> String {
        let query = self.name.operation.map_or_else(Form::new, |operation| Form::new().with("op", operation)).and(&self.query);
        if query.is_empty() { self.name.path.clone() } else { format!("{}?{}", self.name.path, query.encoded()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_paths_are_encoded_and_cannot_climb() {
        assert_eq!(Path::new("zones").item("a b/../c").text, "zones/a%20b%2F..%2Fc/");
        assert_eq!(Path::new("subnets").items("cidr:10.0.0.0/24").text, "subnets/cidr:10.0.0.0/24/");
        for name in ["", " ", ".", ".."] {
            assert!(Call::get(Path::new("machines").item(name)).invalid, "{name:?}");
        }
    }

    #[test]
    fn an_operation_comes_first_in_the_query_and_keys_may_repeat() {
        let call = Call::get(Path::new("events")).operation("query").query(Form::new().each("id", ["a", "b&c"]));
        assert_eq!(call.target(), "events/?op=query&id=a&id=b%26c");
    }
}
