//! Answers in the shapes MAAS has: JSON of objects, text of refusals, HTML of conflicts.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde_json::Value;

use crate::lifecycle::power::Unswitched;
use crate::render;
use crate::version::Version;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;

/// An answer before it becomes an HTTP response.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The content type.
    pub content_type: &'static str,
    /// Headers besides those of every answer.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Bytes,
    /// What the body is yet to be made of.
    pub unwritten: Option<Box<MachineList>>,
}

/// Machines that are to be shown, with a copy of what that needs.
#[derive(Debug, Clone)]
pub struct MachineList {
    excerpt: World,
    machines: Vec<Id<Machine>>,
}

/// Lists above this are written after the world is open for others again; copying is not worth it below.
const LONG: usize = 20;

/// What a handler gives.
pub type Reply = Result<Answer, Refusal>;

/// A call that was refused; nothing has changed.
#[derive(Debug, Clone)]
pub struct Refusal(pub Box<Answer>);

/// Content type of objects.
pub const JSON: &str = "application/json; charset=utf-8";
/// Content type of most refusals.
pub const TEXT: &str = "text/plain; charset=utf-8";
/// Content type of deletions and missing objects.
pub const PLAIN: &str = "text/plain";
/// Content type of conflicts and OAuth refusals.
pub const HTML: &str = "text/html; charset=utf-8";

impl Answer {
    /// An answer with a body.
    pub fn new(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Answer { status, content_type, headers: Vec::new(), body: body.into(), unwritten: None }
    }

    /// An object, four spaces a level as MAAS writes it.
    pub fn json(value: &Value) -> Self {
        Answer::json_with(200, value)
    }

    /// An object with another status.
    pub fn json_with(status: u16, value: &Value) -> Self {
        let mut body = Vec::with_capacity(1024);
        if serde::Serialize::serialize(value, &mut indenting(&mut body)).is_err() {
            body.clear();
        }
        Answer::new(status, JSON, body)
    }

    /// Machines by row.
    pub fn machines(world: &World, machines: &[Id<Machine>]) -> Self {
        if machines.len() > LONG {
            let list = MachineList { excerpt: world.excerpt(machines), machines: machines.to_owned() };
            return Answer { unwritten: Some(Box::new(list)), ..Answer::new(200, JSON, "") };
        }
        Answer::new(200, JSON, machines_as_json(world, machines))
    }

    /// The answer with its body, if that was left for later.
    pub fn written(mut self) -> Self {
        if let Some(list) = self.unwritten.take() {
            self.body = machines_as_json(&list.excerpt, &list.machines).into();
        }
        self
    }

    /// An object without white space, as `version/` writes it.
    pub fn compact_json(value: &Value) -> Self {
        Answer::new(200, JSON, value.to_string())
    }

    /// The body is too large; the web server in front of MAAS says so.
    pub fn too_large() -> Self {
        Answer::new(413, "text/html", "<html><head><title>413 Request Entity Too Large</title></head></html>\n")
    }

    /// Done, nothing to say.
    pub fn deleted() -> Self {
        Answer::new(204, PLAIN, "")
    }

    /// The HTTP response. Every answer of MAAS says which frames it is for; the hash of the API is on what its views answer, and missing
    /// where one was left by way of an error.
    pub fn into_response(self, version: Version) -> Response<Bytes> {
        let mut response = Response::new(self.body);
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let of_a_view =
            self.status < 300 || self.status == 405 || (!matches!(self.status, 410 | 413) && !self.content_type.contains("charset"));
        let headers = response.headers_mut();
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if of_a_view {
            headers.insert("x-maas-api-hash", HeaderValue::from_static("5d1c0dbe2f2a6cf1b3b0a4c5a5b0a8b7ad9d4c11"));
        }
        headers.insert("x-frame-options", HeaderValue::from_static(version.frames()));
        headers.insert(http::header::VARY, HeaderValue::from_static("Authorization, Cookie"));
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        response
    }
}

type Indenting<'a> = serde_json::Serializer<&'a mut Vec<u8>, serde_json::ser::PrettyFormatter<'a>>;

fn indenting(body: &mut Vec<u8>) -> Indenting<'_> {
    serde_json::Serializer::with_formatter(body, serde_json::ser::PrettyFormatter::with_indent(b"    "))
}

/// One machine after another: as values they take five times the room of their text.
fn machines_as_json(world: &World, machines: &[Id<Machine>]) -> Vec<u8> {
    let mut body = Vec::with_capacity(1024);
    let rows = machines.iter().filter_map(|id| world.machines.get(*id));
    if serde::Serializer::collect_seq(&mut indenting(&mut body), rows.map(|machine| render::machine(world, machine))).is_err() {
        body.clear();
    }
    body
}

impl From<Answer> for Refusal {
    fn from(answer: Answer) -> Self {
        Refusal(Box::new(answer))
    }
}

impl Refusal {
    /// One sentence.
    pub fn text(status: u16, words: impl Into<String>) -> Self {
        Answer::new(status, TEXT, words.into()).into()
    }

    /// One sentence without a character set.
    pub fn plain(status: u16, words: impl Into<String>) -> Self {
        Answer::new(status, PLAIN, words.into()).into()
    }

    /// One field of a form is wrong.
    pub fn field(name: &str, words: impl Into<String>) -> Self {
        Refusal::fields([(name.to_owned(), vec![words.into()])])
    }

    /// One field is wrong, found after the form was checked: MAAS then leaves the character set out.
    pub fn late_field(name: &str, words: impl Into<String>) -> Self {
        let mut refusal = Refusal::field(name, words);
        refusal.0.content_type = "application/json";
        refusal
    }

    /// Several fields of a form are wrong.
    pub fn fields(fields: impl IntoIterator<Item = (String, Vec<String>)>) -> Self {
        let object: serde_json::Map<String, Value> = fields.into_iter().map(|(name, words)| (name, Value::from(words))).collect();
        Answer::json_with(400, &Value::Object(object)).into()
    }

    /// Not allowed, without a word.
    pub fn forbidden() -> Self {
        Refusal::text(403, "")
    }

    /// For administrators only.
    pub fn admin_only() -> Self {
        Refusal::text(403, "This method is reserved for admin users.")
    }

    /// Nobody said who is calling.
    pub fn unauthenticated() -> Self {
        Refusal::plain(401, "Forbidden")
    }

    /// The object does not exist; releases before 3.3 do not say which kind.
    pub fn no_match(world: &World, model: &str) -> Self {
        Refusal::missing(world, &format!("No {model} matches the given query."))
    }

    /// Something does not exist; releases before 3.3 have no words for it.
    pub fn missing(world: &World, words: &str) -> Self {
        Refusal::plain(404, if world.version < Version::V3_3 { "Not Found" } else { words })
    }

    /// A conflict in the database that outlasted MAAS's own retries; 3.2 and later say when to try again.
    pub fn conflict(version: Version) -> Self {
        let mut answer = Answer::new(409, HTML, CONFLICT_PAGE);
        if version >= Version::V3_3 {
            answer.headers.push(("retry-after", "5".into()));
        }
        answer.into()
    }

    /// The power could not be switched.
    pub fn unswitched(trouble: Unswitched) -> Self {
        match trouble {
            Unswitched::Driver(words) => Refusal::text(500, words),
            Unswitched::NoRack(rack) => Refusal::no_rack(&rack),
        }
    }

    /// No rack controller is connected; try again soon.
    pub fn no_rack(system_id: &str) -> Self {
        Refusal::busy(Unswitched::NoRack(system_id.to_owned()).to_string())
    }

    /// What stands between MAAS and a machine is not free; try again soon.
    pub fn busy(words: String) -> Self {
        let mut answer = Answer::new(503, TEXT, words);
        answer.headers.push(("retry-after", "10".into()));
        answer.into()
    }
}

/// The words MAAS has for it, in its own page: clients may look for them.
const CONFLICT_PAGE: &str = concat!(
    "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Transitional//EN\" \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd\">\n",
    "<html xmlns=\"http://www.w3.org/1999/xhtml\" xml:lang=\"en\" lang=\"en\">\n",
    "  <head>\n    <title>Error: Conflict Error</title>\n  </head>\n",
    "  <body>\n    <h2 class=\"p-heading--four\">\n      Conflict error. Try your request again, as it will most likely succeed.\n    </h2>\n  </body>\n",
    "</html>\n"
);
