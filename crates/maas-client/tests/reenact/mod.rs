//! Recorded exchanges done again through the typed client: which call it was is read off the recorded request.

pub mod dns_and_networks;
pub mod fields;
pub mod machines;
pub mod others;

use fields::Fields;
use maas_client::{Client, Error};
use serde::Serialize;
use serde_json::Value;

use crate::recordings::Exchange;

/// What came of doing it again: the answer as we understood it, encoded again.
pub struct Reenacted {
    pub result: Result<Value, Error>,
    /// Whether all of the recorded request could be said with the client's types.
    pub sayable: bool,
}

pub fn encoded<T: Serialize>(result: Result<T, Error>) -> Result<Value, Error> {
    result.map(|value| serde_json::to_value(value).unwrap())
}

/// Does the exchange again, or nothing if the client does not cover it.
pub async fn again(client: &Client, exchange: &Exchange) -> Option<Reenacted> {
    let path = exchange.path.as_ref()?.strip_suffix('/')?;
    let segments: Vec<&str> = path.split('/').collect();
    let operation = exchange.operation().to_owned();
    let mut query = Fields::new(&exchange.query);
    query.text("op");
    let mut form = Fields::new(&exchange.form);
    let request = Request { client, method: &exchange.method, segments: &segments, operation: &operation };
    let result = match segments[0] {
        "machines" => machines::again(&request, &mut query, &mut form).await,
        "nodes" | "domains" | "dnsresources" | "dnsresourcerecords" | "ipaddresses" | "subnets" | "fabrics" | "ipranges" => {
            dns_and_networks::again(&request, &mut query, &mut form).await
        }
        _ => others::again(&request, &mut query, &mut form).await,
    }?;
    Some(Reenacted { result, sayable: query.all_said() && form.all_said() && !exchange.odd })
}

pub struct Request<'a> {
    pub client: &'a Client,
    pub method: &'a str,
    pub segments: &'a [&'a str],
    pub operation: &'a str,
}
