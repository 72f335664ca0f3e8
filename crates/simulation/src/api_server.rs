//! The server itself: a tower service that a `kube::Client` takes instead of a connection. Tests make one and ask it for clients.

use crate::{
    call::Call,
    faults::{Fate, Faults},
    patch::Patch,
    refusal::Refusal,
    selector::Selector,
    store::{Owners, Part, Store},
    target::Key,
    trace::{Entry, Trace},
    watching::{WatchRequest, Watching},
};
use axum::body::Body;
use futures::{FutureExt, stream};
use http::{Method, Request, Response, StatusCode};
use kube::Client;
use manager::Clock;
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64, atomic::Ordering},
};
use tokio::time::{Instant, sleep};

/// An API server in this process; clones are the same server.
#[derive(Debug, Clone)]
pub struct ApiServer {
    store: Arc<Mutex<Store>>,
    faults: Arc<Mutex<Faults>>,
    trace: Trace,
    calls: Arc<AtomicU64>,
    began: Instant,
}

/// What a call leads to.
enum Answer {
    Object(StatusCode, Value),
    Watch(Box<WatchRequest>),
}

impl ApiServer {
    /// An empty server.
    pub fn new(clock: Clock, faults: Faults) -> Self {
        Self {
            store: Arc::new(Mutex::new(Store::new(clock))),
            faults: Arc::new(Mutex::new(faults)),
            trace: Trace::default(),
            calls: Arc::default(),
            began: Instant::now(),
        }
    }

    /// A client of this server; `name` tells its calls apart in the trace.
    pub fn client(&self, name: &str) -> Client {
        let (server, name) = (self.clone(), name.to_owned());
        let service = tower::service_fn(move |request| server.clone().answer(name.clone(), request).boxed());
        Client::new(service, "default")
    }

    /// Everything that happened.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// From now on other things go wrong.
    pub fn set_faults(&self, faults: Faults) {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = faults;
    }

    /// Forgets the history, as compaction does: watches that resume from before must list again.
    pub fn forget_history(&self) {
        self.store().forget_history();
    }

    /// All objects of a resource, such as `maasmachines`, as they are now.
    pub fn objects(&self, plural: &str) -> Vec<Value> {
        self.store().all(plural)
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, client: &str, call: u64, what: String) {
        self.trace.add(Entry { at: self.began.elapsed(), client: client.to_owned(), call, what });
    }

    pub(crate) async fn answer(self, client: String, request: Request<kube::client::Body>) -> Result<Response<Body>, io::Error> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let faults = *self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await.map_err(io::Error::other)?;
        self.note(&client, number, format!("{} {} {}", parts.method, parts.uri, String::from_utf8_lossy(&body)));
        // A call takes no time at all only when the test says so; then it still yields, as a real one would.
        sleep(faults.latency(number)).await;
        let fate = faults.fate(number);
        let answer = match fate {
            Fate::Refused => Err(Refusal::internal("the simulated server fails")),
            Fate::Answered | Fate::Lost => Call::read(parts, &body).and_then(|call| self.carry_out(&call)),
        };
        let (status, value) = match answer {
            Ok(Answer::Watch(request)) => {
                self.note(&client, number, "watches".to_owned());
                let watching = Watching::new(Arc::clone(&self.store), *request, &faults, number);
                return Ok(Response::new(self.stream(watching, client, number)));
            }
            Ok(Answer::Object(status, value)) => (status, value),
            Err(refusal) => (refusal.code, refusal.status()),
        };
        self.note(&client, number, format!("{fate:?} {status} {value}"));
        if fate == Fate::Lost {
            return Err(io::Error::new(io::ErrorKind::ConnectionReset, "the simulated answer is lost"));
        }
        let mut response = Response::new(Body::from(value.to_string()));
        *response.status_mut() = status;
        Ok(response)
    }

    fn stream(&self, watching: Watching, client: String, number: u64) -> Body {
        let server = self.clone();
        Body::from_stream(stream::unfold((watching, server, client), move |(mut watching, server, client)| async move {
            let event = watching.next().await;
            let name = |event: &Value| {
                format!("{} {} {}", event["type"], event["object"]["metadata"]["name"], event["object"]["metadata"]["resourceVersion"])
            };
            server.note(&client, number, event.as_ref().map_or_else(|| "watch ends".to_owned(), name));
            Some((Ok::<_, Infallible>(format!("{}\n", event?)), (watching, server, client)))
        }))
    }

    fn carry_out(&self, call: &Call) -> Result<Answer, Refusal> {
        match &call.target.name {
            Some(name) => self.on_object(call, call.target.key(name)),
            None => self.on_collection(call),
        }
    }

    fn on_collection(&self, call: &Call) -> Result<Answer, Refusal> {
        let target = &call.target;
        let selector = Selector::new(target.namespace.as_deref(), call.query("labelSelector"), call.query("fieldSelector"))?;
        match call.method {
            Method::GET if matches!(call.query("watch"), Some("true" | "1")) => Ok(Answer::Watch(Box::new(call.watch_request(selector)?))),
            Method::GET => {
                let store = self.store();
                let items: Vec<Value> = store.list(&target.resource, &selector).iter().map(|object| call.shown(object)).collect();
                let metadata = json!({"resourceVersion": store.revision().to_string()});
                let list = json!({"kind": "List", "apiVersion": target.api_version(), "metadata": metadata, "items": items});
                Ok(Answer::Object(StatusCode::OK, list))
            }
            Method::POST => {
                let name = call.body["metadata"]["name"].as_str().ok_or_else(|| Refusal::invalid("metadata.name is required here"))?;
                let created = self.store().create(target.key(name), call.body.clone(), Owners::new())?;
                Ok(Answer::Object(StatusCode::CREATED, call.shown(&created)))
            }
            _ => Err(Refusal::method_not_allowed()),
        }
    }

    fn on_object(&self, call: &Call, key: Key) -> Result<Answer, Refusal> {
        let part = match call.target.subresource.as_deref() {
            None => Part::Object,
            Some("status") => Part::Status,
            Some(other) => return Err(Refusal::not_found(format!("the subresource {other}"))),
        };
        let mut store = self.store();
        let object = match call.method {
            Method::GET => store.get(&key)?,
            Method::PUT => {
                let owners = store.owners(&key);
                store.update(key, call.body.clone(), part, owners)?
            }
            Method::PATCH => {
                let patch = Patch::from_content_type(&call.content_type, call.query("fieldManager"), call.query("force") == Some("true"))?;
                match (store.get(&key), &patch) {
                    (Ok(before), _) => {
                        let (after, owners) = patch.result(&before, store.owners(&key), &call.body)?;
                        store.update(key, after, part, owners)?
                    }
                    (Err(_), Patch::Apply(_)) if part == Part::Object => {
                        let (after, owners) = patch.result(&json!({}), Owners::new(), &call.body)?;
                        store.create(key, after, owners)?
                    }
                    (Err(refusal), _) => return Err(refusal),
                }
            }
            Method::DELETE => match store.delete(key, &call.body)? {
                Some(held) => held,
                None => return Ok(Answer::Object(StatusCode::OK, json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}))),
            },
            _ => return Err(Refusal::method_not_allowed()),
        };
        Ok(Answer::Object(StatusCode::OK, call.shown(&object)))
    }
}
