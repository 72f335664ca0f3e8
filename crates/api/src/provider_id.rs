//! A machine's identity for Kubernetes: `maas:///<zone>/<system_id>`. Used where machines, nodes and MAAS are matched.

use std::{fmt, str::FromStr};

use crate::SystemId;

/// The value of `spec.providerID` of a machine and of its node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderId {
    /// The zone the machine was in when the id was made; empty in some old ids. Machines may be moved to another zone later.
    pub zone: String,
    /// The machine.
    pub system_id: SystemId,
}

/// Text that names no machine of MAAS.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a machine of MAAS: expected maas:///<zone>/<system_id>")]
pub struct InvalidProviderId(pub String);

impl fmt::Display for ProviderId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "maas:///{}/{}", self.zone, self.system_id)
    }
}

impl FromStr for ProviderId {
    type Err = InvalidProviderId;

    /// Reads every form that has been written: `maas:///zone/id`, `maas://zone/id`, `maas-lxd://zone/id` and those without a zone.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidProviderId(text.to_owned());
        let path = text.strip_prefix("maas://").or_else(|| text.strip_prefix("maas-lxd://")).ok_or_else(invalid)?;
        let path = path.strip_prefix('/').unwrap_or(path);
        let (zone, system_id) = path.rsplit_once('/').unwrap_or(("", path));
        let is_id = !system_id.is_empty() && system_id.chars().all(|letter| letter.is_ascii_alphanumeric());
        if !is_id || zone.contains('/') {
            return Err(invalid());
        }
        Ok(Self { zone: zone.to_owned(), system_id: system_id.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(zone: &str, system_id: &str) -> ProviderId {
        ProviderId { zone: zone.to_owned(), system_id: system_id.into() }
    }

    #[test]
    fn every_form_that_has_been_written_is_read() {
        for (text, read) in [
            ("maas:///zone-1/abc123", id("zone-1", "abc123")),
            ("maas://zone-1/abc123", id("zone-1", "abc123")),
            ("maas-lxd://zone-1/abc123", id("zone-1", "abc123")),
            ("maas-lxd:///zone-1/abc123", id("zone-1", "abc123")),
            ("maas:////abc123", id("", "abc123")),
            ("maas:///abc123", id("", "abc123")),
            ("maas:///rack two/abc123", id("rack two", "abc123")),
        ] {
            assert_eq!(text.parse(), Ok(read), "{text}");
        }
    }

    #[test]
    fn other_text_is_refused_and_quoted() {
        for text in ["", "abc123", "aws:///zone/i-1", "maas://", "maas:///zone/", "maas:///a/b/abc123", "maas:///zone/abc 123"] {
            let error = text.parse::<ProviderId>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}`")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(zone in "[a-zA-Z0-9 _-]{0,20}", system_id in "[a-z0-9]{6}") {
            let written = id(&zone, &system_id);
            prop_assert_eq!(written.to_string().parse(), Ok(written));
        }
    }
}
