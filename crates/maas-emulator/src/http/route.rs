//! From a request to a handler: the path decides the endpoint, method and `op` the operation.

use bytes::Bytes;
use http::Method;

use super::answer::{Answer, HTML, PLAIN, Refusal, Reply};
use super::call::Call;
use super::form::{self, File, Form};
use super::oauth::percent_decode;
use crate::endpoints;
use crate::world::World;

/// What a handler is: it reads and writes the world, and refuses before it writes.
pub type Handler = fn(&mut World, &Call) -> Reply;

/// One path with its operations.
#[derive(Debug)]
pub struct Endpoint {
    /// The path below `api/2.0/`; `{}` stands for one argument.
    pub path: &'static str,
    /// What can be done there.
    pub operations: &'static [Operation],
    /// For whom it is.
    pub access: Access,
}

/// Whom an endpoint is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Users.
    Users,
    /// Strangers have a handler of their own there, which answers unknown operations of the methods it knows.
    Strangers,
    /// Everybody: nobody is asked for a key.
    Everybody,
}

/// One operation of an endpoint.
#[derive(Debug)]
pub struct Operation {
    /// The HTTP method.
    pub method: &'static str,
    /// The name; none for plain reading, creating, updating, deleting.
    pub name: Option<&'static str>,
    /// Whether callers that did not say who they are may use it.
    pub anonymous: bool,
    /// Who does it.
    pub handler: Handler,
}

impl Endpoint {
    /// An endpoint for users.
    pub const fn new(path: &'static str, operations: &'static [Operation]) -> Self {
        Endpoint { path, operations, access: Access::Users }
    }

    /// An endpoint where strangers have a handler of their own.
    pub const fn open(path: &'static str, operations: &'static [Operation]) -> Self {
        Endpoint { path, operations, access: Access::Strangers }
    }

    /// An endpoint that asks nobody for a key.
    pub const fn public(path: &'static str, operations: &'static [Operation]) -> Self {
        Endpoint { path, operations, access: Access::Everybody }
    }

    /// Whether MAAS listens to a stranger who comes with this method.
    fn admits_strangers(&self, method: &Method) -> bool {
        match self.access {
            Access::Users => false,
            Access::Strangers => self.operations.iter().any(|operation| operation.anonymous && operation.method == method.as_str()),
            Access::Everybody => true,
        }
    }
}

impl Operation {
    /// Reading.
    pub const fn get(handler: Handler) -> Self {
        Operation { method: "GET", name: None, anonymous: false, handler }
    }

    /// Creating.
    pub const fn post(handler: Handler) -> Self {
        Operation { method: "POST", name: None, anonymous: false, handler }
    }

    /// Updating.
    pub const fn put(handler: Handler) -> Self {
        Operation { method: "PUT", name: None, anonymous: false, handler }
    }

    /// Deleting.
    pub const fn delete(handler: Handler) -> Self {
        Operation { method: "DELETE", name: None, anonymous: false, handler }
    }

    /// A named question.
    pub const fn get_op(name: &'static str, handler: Handler) -> Self {
        Operation { method: "GET", name: Some(name), anonymous: false, handler }
    }

    /// A named action.
    pub const fn post_op(name: &'static str, handler: Handler) -> Self {
        Operation { method: "POST", name: Some(name), anonymous: false, handler }
    }

    /// The same for everybody.
    pub const fn anonymous(mut self) -> Self {
        self.anonymous = true;
        self
    }
}

/// The API's root.
pub const ROOT: &str = "/MAAS/api/2.0/";

/// A request whose endpoint is known and whose caller is not yet.
#[derive(Debug)]
pub struct Routed {
    /// The endpoint.
    pub endpoint: &'static Endpoint,
    /// The call, without its user.
    pub call: Call,
    /// Whether query or body could not be read; MAAS says so only to those it knows.
    unreadable: bool,
}

/// Finds the endpoint of a request.
pub fn route(method: &Method, path: &str, query: &str, content_type: &str, body: &Bytes) -> Result<Routed, Refusal> {
    let mut path = collapse_slashes(path);
    if path.starts_with("/MAAS/api/1.0/") {
        return Err(Refusal::plain(410, "The 1.0 API is no longer available. Please use API version 2.0."));
    }
    let mut operation_in_path = None;
    if let Some((rest, name)) = path.rsplit_once("/op-")
        && !name.contains('/')
    {
        operation_in_path = Some(name.to_owned());
        path = format!("{rest}/");
    }
    let unknown = || Refusal::text(404, format!("Unknown API endpoint: {path}."));
    let below = path.strip_prefix(ROOT).ok_or_else(unknown)?;
    let (endpoint, arguments) = endpoints::ALL
        .iter()
        .copied()
        .flatten()
        .find_map(|endpoint| Some((endpoint, matches(endpoint.path, below)?)))
        .ok_or_else(unknown)?;
    let is_json = content_type.starts_with("application/json");
    let (asked, sent) = (Form::url_encoded(query.as_bytes()), fields_of(method, content_type, body));
    let unreadable = asked.is_none() || sent.is_none();
    let (query, (mut form, files)) = (asked.unwrap_or_default(), sent.unwrap_or_default());
    // One that the query leaves empty is not there; one that the form leaves empty is an operation nobody knows.
    let operation = query.filled("op").or_else(|| form.get("op")).map(str::to_owned).or(operation_in_path);
    if is_json && operation.is_none() {
        form = form::json(body);
    }
    form.0.retain(|(name, _)| name != "op");
    let call = Call {
        method: method.clone(),
        path: below.to_owned(),
        arguments,
        operation,
        query,
        form,
        files,
        body: body.clone(),
        is_json,
        user: None,
        began: u64::MAX,
    };
    Ok(Routed { endpoint, call, unreadable })
}

/// The fields and files of a body, which MAAS reads of creations and updates only; none when it is not what it says it is.
fn fields_of(method: &Method, content_type: &str, body: &Bytes) -> Option<(Form, Vec<File>)> {
    if *method != Method::POST && *method != Method::PUT {
        return Some(Default::default());
    }
    let (form, files) = if content_type.starts_with("application/json") {
        let good = body.is_empty() || serde_json::from_slice::<serde_json::Value>(body).is_ok();
        good.then(Default::default)?
    } else if content_type.starts_with("multipart/") {
        form::multipart(content_type, body)?
    } else if is_form(content_type) {
        (Form::url_encoded(body)?, Vec::new())
    } else {
        Default::default()
    };
    (form.0.len() + files.len() <= form::MOST_FIELDS).then_some((form, files))
}

impl Routed {
    /// Whether it creates a name, which MAAS lets several do at once.
    pub fn names_something(&self) -> bool {
        self.call.method == Method::POST && self.endpoint.path == "dnsresources/"
    }

    /// Does what the call asks for.
    pub fn perform(&self, world: &mut World) -> Reply {
        let call = &self.call;
        endpoints::vm_hosts::refuse_where_removed(world, self.endpoint.path)?;
        let operations = self.endpoint.operations;
        if call.user.is_none() && !self.endpoint.admits_strangers(&call.method) {
            return Err(Refusal::unauthenticated());
        }
        if self.unreadable {
            return Err(Refusal::plain(400, "Bad Request"));
        }
        if !operations.iter().any(|operation| operation.method == call.method.as_str()) || call.method == Method::HEAD {
            return Err(method_not_allowed(operations));
        }
        let found = operations.iter().find(|operation| {
            operation.method == call.method.as_str()
                && operation.name == call.operation.as_deref()
                && (call.user.is_some() || operation.anonymous)
        });
        let Some(operation) = found else {
            let name = call.operation.as_deref().unwrap_or("None");
            return Err(Refusal::text(400, format!("Unrecognised signature: method={} op={name}", call.method)));
        };
        if let Some(format) = call.query.get("format").filter(|format| *format != "json") {
            return Err(Refusal::plain(400, format!("Invalid output format specified '{format}'.")));
        }
        (operation.handler)(world, call)
    }
}

/// Only forms are read as forms; a body that says nothing of itself is taken for one.
pub fn is_form(content_type: &str) -> bool {
    content_type.is_empty() || content_type.starts_with("application/x-www-form-urlencoded")
}

fn method_not_allowed(operations: &[Operation]) -> Refusal {
    let allowed: Vec<&str> = ["GET", "POST", "PUT", "DELETE"]
        .into_iter()
        .filter(|method| operations.iter().any(|operation| operation.method == *method))
        .collect();
    let mut answer = Answer::new(405, HTML, "");
    answer.headers.push(("allow", allowed.join(", ")));
    answer.into()
}

fn collapse_slashes(path: &str) -> String {
    let mut collapsed = String::with_capacity(path.len());
    for character in path.chars() {
        if character != '/' || !collapsed.ends_with('/') {
            collapsed.push(character);
        }
    }
    collapsed
}

/// The arguments, if the path fits the pattern. A subnet may be named by its CIDR, so the last argument of `subnets/` takes a slash.
fn matches(pattern: &str, path: &str) -> Option<Vec<String>> {
    let pattern: Vec<&str> = pattern.split('/').collect();
    let mut parts: Vec<&str> = path.split('/').collect();
    let joined;
    if pattern.len() == 3 && parts.len() == 4 && pattern[0] == parts[0] && pattern[0] == "subnets" {
        joined = format!("{}/{}", parts[1], parts[2]);
        parts = vec![parts[0], &joined, parts[3]];
    }
    if pattern.len() != parts.len() {
        return None;
    }
    let mut arguments = Vec::new();
    for (wanted, given) in pattern.iter().zip(&parts) {
        match *wanted {
            "{}" if !given.is_empty() => arguments.push(percent_decode(given)),
            fixed if fixed == *given => {}
            _ => return None,
        }
    }
    Some(arguments)
}

/// Text as a plain answer.
pub fn plain(text: impl Into<Bytes>) -> Answer {
    Answer::new(200, PLAIN, text)
}
