//! The intent to own a machine, kept in an annotation.
//! Written before MAAS is asked for a machine; read by everything that asks whether a machine is ours.

use std::{fmt, net::IpAddr, str::FromStr};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::{
    SystemId,
    annotation::{self, AnnotationRead},
    names,
};

/// The random word by which a machine is known to be ours; MAAS keeps it with the machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Claim(Box<str>);

/// Text that is no claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a claim: expected `ms-` and 32 hexadecimal digits")]
pub struct InvalidClaim(String);

impl Claim {
    const PREFIX: &str = "ms-";

    /// The claim for a random number.
    pub fn from_random(number: u128) -> Self {
        Self(format!("{}{number:032x}", Self::PREFIX).into())
    }

    /// The claim as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for Claim {
    type Err = InvalidClaim;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_digit = |letter: char| letter.is_ascii_digit() || ('a'..='f').contains(&letter);
        match text.strip_prefix(Self::PREFIX) {
            Some(digits) if digits.len() == 32 && digits.chars().all(is_digit) => Ok(Self(text.into())),
            _ => Err(InvalidClaim(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Claim {
    type Error = InvalidClaim;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Claim> for String {
    fn from(claim: Claim) -> Self {
        claim.0.into()
    }
}

/// That an object means to own a machine, since when, and what it is giving back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// The word MAAS keeps with the machine.
    pub claim: Claim,
    /// The object it was made for, as `namespace/name`: a copied manifest carries the claim of the original.
    pub object: String,
    /// The MAAS it was made for. Another one, under the same credentials' name, knows nothing of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maas: Option<String>,
    /// The MAAS user it was made as. To another one the machine looks as if it were somebody else's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// When MAAS was last about to be told to do something: it may still do so for some time after, whatever became of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The process that wrote it: only that one can know whether all its calls were answered. Times alone would not tell two processes apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<String>,
    /// The machine that another provider recorded, or that somebody wished for, until it is marked as ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopting: Option<SystemId>,
    /// The machine that another provider had allocated for the object: MAAS does not know it by our claim, so only its marks show that it is
    /// ours, and it may have been handed over before it was deployed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopted: Option<SystemId>,
    /// The machine that somebody asked for: no other one is tried in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wished: Option<SystemId>,
    /// Machines whose release was begun and not yet seen to end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub releasing: Vec<SystemId>,
    /// Fixed addresses that machines were given for the object. MAAS leaves them there when it releases a machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub linked: Vec<LinkedAddress>,
    /// Addresses of pools that are held for the object, by name: the claim that leads to one may be gone before the machine is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pooled: Vec<String>,
}

/// A fixed address on an interface of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkedAddress {
    /// The machine.
    pub server: SystemId,
    /// The address.
    pub address: IpAddr,
}

/// What an object's annotation says.
pub type IntentRead = AnnotationRead<Intent>;

impl Intent {
    /// A new intent of an object; MAAS has not been asked for anything yet.
    pub fn new(claim: Claim, metadata: &ObjectMeta) -> Self {
        Self {
            claim,
            object: annotation::object_of(metadata),
            maas: None,
            user: None,
            since: None,
            writer: None,
            adopting: None,
            adopted: None,
            wished: None,
            releasing: Vec::new(),
            linked: Vec::new(),
            pooled: Vec::new(),
        }
    }

    /// Reads the intent of an object.
    pub fn of(metadata: &ObjectMeta) -> IntentRead {
        annotation::read(metadata, names::CLAIM, |intent: &Self| &intent.object)
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
            annotations: annotation.map(|text| BTreeMap::from([(names::CLAIM.to_owned(), text)])),
            ..ObjectMeta::default()
        }
    }

    fn intent() -> Intent {
        let since = Some("2026-11-16T04:00:00Z".parse().unwrap());
        Intent { since, ..Intent::new(Claim::from_random(255), &object("one", None)) }
    }

    #[test]
    fn an_intent_is_compact_json_and_is_read_again() {
        let intent = Intent { releasing: vec!["abc123".into()], ..intent() };
        let text = intent.to_annotation();
        assert_eq!(
            text,
            r#"{"claim":"ms-000000000000000000000000000000ff","object":"rack/one","releasing":["abc123"],"since":"2026-11-16T04:00:00Z"}"#
        );
        assert_eq!(Intent::of(&object("one", Some(text))), IntentRead::Ours(intent));
        assert_eq!(Intent::of(&object("one", None)), IntentRead::None);
    }

    #[test]
    fn a_copied_manifest_does_not_carry_the_right_to_the_original_machine() {
        assert_eq!(Intent::of(&object("two", Some(intent().to_annotation()))), IntentRead::Copied(intent()));
    }

    #[test]
    fn an_annotation_somebody_changed_is_told_and_not_taken_for_none() {
        let words = intent().to_annotation().replace("ms-", "xx-");
        for text in ["", "{}", "yes", &words] {
            let IntentRead::Unreadable(reason) = Intent::of(&object("one", Some(text.to_owned()))) else {
                panic!("{text} was read");
            };
            assert!(reason.starts_with("annotation metalshift.io/claim cannot be read: "), "{reason}");
        }
    }

    #[test]
    fn claims_have_one_form() {
        assert_eq!(Claim::from_random(u128::MAX).as_str().len(), 35);
        for text in ["", "ms-", "ms-00", "MS-000000000000000000000000000000ff", "ms-000000000000000000000000000000FF"] {
            assert!(text.parse::<Claim>().is_err(), "{text}");
        }
    }
}
