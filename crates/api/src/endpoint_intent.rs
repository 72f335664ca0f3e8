//! What a cluster means to have in MAAS's network: the name of its DNS record or the address reserved for it, kept in an annotation. A DNS
//! record has no owner in MAAS: that its name was written down here before there was a record is what makes it ours. Written before MAAS is
//! told anything.

use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::{
    annotation::{self, AnnotationRead},
    names,
};

/// What a cluster means to have in MAAS's network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointIntent {
    /// The object it was made for, as `namespace/name`: a copied manifest carries the annotation of the original.
    pub object: String,
    /// The host of the MAAS it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maas: Option<String>,
    /// The whole name of the DNS record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The address reserved for the API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The record was there before, by somebody else's hand, and stays when the cluster goes, with all that is in it but what we added.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given: bool,
    /// Addresses that we added to a record that was there before, or were about to. Whatever else is in it is somebody else's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<IpAddr>,
    /// The address was reserved before, by a person's hand, and stays so when the cluster goes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub address_given: bool,
    /// Addresses that MAAS may have reserved for us because we put them into the record. They are freed when they leave it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserved: Vec<IpAddr>,
    /// Addresses in the record that were reserved with our user before we put them there, by somebody else. They stay reserved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub theirs: Vec<IpAddr>,
    /// What MAAS is being told and has not been seen to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<EndpointOrder>,
}

/// Something MAAS is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointOrder {
    /// When it was about to be told: it may still do so for some time after.
    pub since: Timestamp,
    /// What.
    pub what: EndpointOrderKind,
}

/// What MAAS is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EndpointOrderKind {
    /// To make the record.
    Create,
    /// To give the record these addresses and no others.
    Write(Vec<IpAddr>),
    /// To reserve this address.
    Reserve(IpAddr),
    /// To free this address.
    Free(IpAddr),
}

/// What an object's annotation says.
pub type EndpointIntentRead = AnnotationRead<EndpointIntent>;

impl EndpointIntent {
    /// Nothing yet.
    pub fn new(metadata: &ObjectMeta) -> Self {
        Self { object: annotation::object_of(metadata), ..Self::default() }
    }

    /// Reads what an object means to have.
    pub fn of(metadata: &ObjectMeta) -> EndpointIntentRead {
        annotation::read(metadata, names::ENDPOINT, |intent: &Self| &intent.object)
    }

    /// The value of the annotation.
    pub fn to_annotation(&self) -> String {
        annotation::write(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn object(name: &str, annotation: Option<String>) -> ObjectMeta {
        ObjectMeta {
            namespace: Some("rack".to_owned()),
            name: Some(name.to_owned()),
            annotations: annotation.map(|text| BTreeMap::from([(names::ENDPOINT.to_owned(), text)])),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn what_is_written_is_read_again_and_only_by_the_same_object() {
        let order = EndpointOrder {
            since: "2026-11-16T04:00:00Z".parse().unwrap(),
            what: EndpointOrderKind::Write(vec!["10.0.0.1".parse().unwrap()]),
        };
        let intent = EndpointIntent { name: Some("a.maas".to_owned()), order: Some(order), ..EndpointIntent::new(&object("one", None)) };
        let text = intent.to_annotation();
        assert_eq!(text, r#"{"name":"a.maas","object":"rack/one","order":{"since":"2026-11-16T04:00:00Z","what":{"write":["10.0.0.1"]}}}"#);
        assert_eq!(EndpointIntent::of(&object("one", Some(text.clone()))), EndpointIntentRead::Ours(intent.clone()));
        assert_eq!(EndpointIntent::of(&object("two", Some(text))), EndpointIntentRead::Copied(intent));
        assert_eq!(EndpointIntent::of(&object("one", None)), EndpointIntentRead::None);
    }

    #[test]
    fn what_somebody_changed_is_told_and_not_taken_for_none() {
        for text in ["", "{}", "yes", r#"{"object":"rack/one","address":"here"}"#] {
            let read = EndpointIntent::of(&object("one", Some(text.to_owned())));
            assert!(
                matches!(&read, EndpointIntentRead::Unreadable(words) if words.starts_with("annotation metalshift.io/endpoint cannot")),
                "{text}"
            );
        }
    }
}
