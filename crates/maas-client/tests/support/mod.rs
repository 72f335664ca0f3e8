//! A wire made of a function, and the client on it.

#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use http::{Request, Response};
use maas_client::{BoxError, Client, ClientBuilder, Transport};

pub const KEY: &str = "canaryconsumer:canarytoken:canarysecret";

/// A client whose signatures and waits are the same every time.
pub fn builder() -> ClientBuilder {
    let numbers = AtomicU64::new(1);
    Client::builder("http://maas.example:5240/MAAS", KEY)
        .unwrap()
        .clock(|| 1_794_772_043)
        .randomness(move || u128::from(numbers.fetch_add(1, Ordering::Relaxed)))
}

/// What was sent, in order.
#[derive(Clone, Default)]
pub struct Sent(Arc<Mutex<Vec<Request<Bytes>>>>);

impl Sent {
    pub fn all(&self) -> Vec<Request<Bytes>> {
        self.0.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub fn last(&self) -> Request<Bytes> {
        self.all().pop().unwrap()
    }
}

/// A wire that answers the n-th request, counted from 0, as the function says.
pub fn wire<F, Answer>(answer: F) -> (Transport, Sent)
where
    F: Fn(usize, Request<Bytes>) -> Answer + Clone + Send + Sync + 'static,
    Answer: Future<Output = Result<Response<Bytes>, BoxError>> + Send + 'static,
{
    let sent = Sent::default();
    let kept = sent.clone();
    let service = tower::service_fn(move |request: Request<Bytes>| {
        let number = {
            let mut requests = kept.0.lock().unwrap();
            requests.push(request.clone());
            requests.len() - 1
        };
        answer(number, request)
    });
    (Transport::new(service), sent)
}

/// A wire that always gives the same answer.
pub fn always(response: Response<Bytes>) -> (Transport, Sent) {
    wire(move |_, _| {
        let response = response.clone();
        async move { Ok(response) }
    })
}

pub fn json(body: &str) -> Response<Bytes> {
    answer(200, "application/json; charset=utf-8", body)
}

pub fn text(status: u16, body: &str) -> Response<Bytes> {
    of_maas(answer(status, "text/plain; charset=utf-8", body))
}

/// The page of a conflict that MAAS could not solve itself, without the header that says when to try again.
pub fn conflict_page() -> Response<Bytes> {
    answer(409, "text/html; charset=utf-8", "<html><h2>Conflict error. Try your request again, as it will most likely succeed.</h2></html>")
}

/// The same answer with what MAAS's own web server gives to every answer.
pub fn of_maas(mut response: Response<Bytes>) -> Response<Bytes> {
    response.headers_mut().insert("x-frame-options", http::HeaderValue::from_static("DENY"));
    response
}

pub fn answer(status: u16, content_type: &str, body: &str) -> Response<Bytes> {
    Response::builder().status(status).header("content-type", content_type).body(Bytes::copy_from_slice(body.as_bytes())).unwrap()
}

pub fn with_retry_after(mut response: Response<Bytes>, seconds: u64) -> Response<Bytes> {
    response.headers_mut().insert("retry-after", seconds.into());
    response
}
