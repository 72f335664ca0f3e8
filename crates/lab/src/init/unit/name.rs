//! Names of units: `kubelet.service`, `getty@tty1.service`. Everything that reads or refers to a unit goes through this type.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a unit is, told by its suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitKind {
    /// A process or a set of commands.
    Service,
    /// A group of units.
    Target,
    /// A kind that this machine knows by name only: it is named on the console and has no effect.
    Unsupported,
}

/// A valid unit name with its suffix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UnitName(String);

/// A text that is no unit name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("invalid unit name {0:?}")]
pub struct InvalidUnitName(pub String);

const SUFFIXES: [&str; 11] = ["service", "target", "timer", "socket", "mount", "automount", "path", "swap", "slice", "scope", "device"];
const LONGEST: usize = 255;

impl UnitName {
    /// Reads a full name, suffix included.
    pub fn parse(text: &str) -> Result<Self, InvalidUnitName> {
        let valid_character = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
        let invalid = || InvalidUnitName(text.to_owned());
        let (stem, suffix) = text.rsplit_once('.').ok_or_else(invalid)?;
        if stem.is_empty()
            || stem.starts_with('@')
            || text.len() > LONGEST
            || !SUFFIXES.contains(&suffix)
            || !text.chars().all(valid_character)
        {
            return Err(invalid());
        }
        Ok(Self(text.to_owned()))
    }

    /// Reads a name as a person types it: a name without a suffix is a service.
    pub fn from_argument(text: &str) -> Result<Self, InvalidUnitName> {
        Self::parse(text).or_else(|_| Self::parse(&format!("{text}.service")))
    }

    /// The whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What it is.
    pub fn kind(&self) -> UnitKind {
        match self.suffix() {
            "service" => UnitKind::Service,
            "target" => UnitKind::Target,
            _ => UnitKind::Unsupported,
        }
    }

    /// The part behind the last dot.
    pub fn suffix(&self) -> &str {
        self.0.rsplit_once('.').map_or("", |(_, suffix)| suffix)
    }

    /// The name without its suffix.
    pub fn stem(&self) -> &str {
        self.0.rsplit_once('.').map_or(&self.0, |(stem, _)| stem)
    }

    /// What stands before the `@`, or the stem of a plain name.
    pub fn prefix(&self) -> &str {
        self.stem().split_once('@').map_or(self.stem(), |(prefix, _)| prefix)
    }

    /// The instance of `name@instance.service`; empty for a template itself.
    pub fn instance(&self) -> Option<&str> {
        self.stem().split_once('@').map(|(_, instance)| instance)
    }

    /// Whether this is a template, which cannot run itself.
    pub fn is_template(&self) -> bool {
        self.instance() == Some("")
    }

    /// The template an instance is made from.
    pub fn template(&self) -> Option<Self> {
        self.instance().filter(|instance| !instance.is_empty()).map(|_| Self(format!("{}@.{}", self.prefix(), self.suffix())))
    }

    /// The instance of a template.
    #[must_use]
    pub fn with_instance(&self, instance: &str) -> Self {
        Self(format!("{}@{instance}.{}", self.prefix(), self.suffix()))
    }
}

impl TryFrom<String> for UnitName {
    type Error = InvalidUnitName;

    fn try_from(text: String) -> Result<Self, InvalidUnitName> {
        Self::parse(&text)
    }
}

impl From<UnitName> for String {
    fn from(name: UnitName) -> Self {
        name.0
    }
}

impl fmt::Display for UnitName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_suffix_is_a_service() {
        assert_eq!(UnitName::from_argument("kubelet").unwrap().as_str(), "kubelet.service");
        assert_eq!(UnitName::from_argument("multi-user.target").unwrap().kind(), UnitKind::Target);
        assert_eq!(UnitName::from_argument("a.b").unwrap().as_str(), "a.b.service");
    }

    #[test]
    fn an_instance_knows_its_template() {
        let name = UnitName::parse("pull@etcd.service").unwrap();
        assert_eq!((name.prefix(), name.instance()), ("pull", Some("etcd")));
        assert_eq!(name.template().unwrap().as_str(), "pull@.service");
        assert!(name.template().unwrap().is_template());
        assert_eq!(name.template().unwrap().with_instance("x").as_str(), "pull@x.service");
    }

    #[test]
    fn names_that_could_leave_a_directory_are_refused() {
        for bad in ["", ".service", "../x.service", "a b.service", "kubelet", "@x.service"] {
            assert!(UnitName::parse(bad).is_err(), "{bad}");
        }
    }
}
