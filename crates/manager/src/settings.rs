//! What a run of the manager is told: scope, times, election, randomness. The program fills it from flags and environment, tests by hand.

use crate::{clock::Clock, jitter::Jitter, lease::LeaseSettings};
use std::{collections::BTreeSet, fmt, str::FromStr, time::Duration};

/// The label whose value `--watch-filter` names; the same for all providers of Cluster API.
pub const WATCH_FILTER_LABEL: &str = "cluster.x-k8s.io/watch-filter";

/// How one manager runs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it looks.
    pub namespaces: Namespaces,
    /// Only objects of the primary kinds whose watch-filter label has this value.
    pub watch_filter: Option<String>,
    /// The longest an object goes without a reconcile; zero means that only changes lead to one.
    pub sync_period: Duration,
    /// How long reconciles in flight may take to end when the process is asked to stop.
    pub grace_period: Duration,
    /// The election, unless this process is alone by arrangement.
    pub lease: Option<LeaseSettings>,
    /// The time of day.
    pub clock: Clock,
    /// Randomness.
    pub jitter: Jitter,
}

impl Settings {
    /// Everything in all namespaces, without an election.
    pub fn new(clock: Clock, jitter: Jitter) -> Self {
        Self {
            namespaces: Namespaces::All,
            watch_filter: None,
            sync_period: Duration::from_hours(2),
            // The deployment of the Go provider gives a pod 10 s to end; the release of the lease must fit in as well.
            grace_period: Duration::from_secs(8),
            lease: None,
            clock,
            jitter,
        }
    }
}

/// The namespaces a manager looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespaces {
    /// All of them.
    All,
    /// Only these, at least one.
    Only(BTreeSet<String>),
}

/// A namespace that cannot exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not the name of a namespace{hint}")]
pub struct InvalidNamespace {
    name: String,
    hint: &'static str,
}

impl Namespaces {
    /// All the names of several lists; if none of them has a name, all namespaces.
    pub fn union(lists: impl IntoIterator<Item = Self>) -> Self {
        let names: BTreeSet<String> = lists
            .into_iter()
            .flat_map(|list| match list {
                Self::All => BTreeSet::new(),
                Self::Only(names) => names,
            })
            .collect();
        if names.is_empty() { Self::All } else { Self::Only(names) }
    }

    /// One value per watch that is needed: no namespace for everything, or each namespace.
    pub(crate) fn each(&self) -> Vec<Option<String>> {
        match self {
            Self::All => vec![None],
            Self::Only(names) => names.iter().cloned().map(Some).collect(),
        }
    }
}

impl FromStr for Namespaces {
    type Err = InvalidNamespace;

    /// A comma-separated list; no name at all means all namespaces.
    fn from_str(list: &str) -> Result<Self, Self::Err> {
        let mut names = BTreeSet::new();
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            if !is_dns_label(name) {
                let hint = if name.starts_with("$(") { ": the variable it names is not set in the container's environment" } else { "" };
                return Err(InvalidNamespace { name: name.to_owned(), hint });
            }
            names.insert(name.to_owned());
        }
        Ok(if names.is_empty() { Self::All } else { Self::Only(names) })
    }
}

impl fmt::Display for Namespaces {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => formatter.write_str("all"),
            Self::Only(names) => formatter.write_str(&names.iter().map(String::as_str).collect::<Vec<_>>().join(",")),
        }
    }
}

fn is_dns_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.len() <= 63 && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_repeats_and_blanks_become_one_set() {
        let namespaces = Namespaces::union(["b, a", "", "a"].map(|list| list.parse().unwrap()));
        assert_eq!(namespaces, Namespaces::Only(BTreeSet::from(["a".into(), "b".into()])));
        assert_eq!(namespaces.to_string(), "a,b");
    }

    #[test]
    fn an_empty_value_means_all_namespaces() {
        assert_eq!("".parse(), Ok(Namespaces::All));
        assert_eq!(Namespaces::union([]), Namespaces::All);
    }

    #[test]
    fn a_variable_that_was_not_expanded_is_named_as_the_cause() {
        let error = "$(NAMESPACE)".parse::<Namespaces>().unwrap_err().to_string();
        assert!(error.contains("`$(NAMESPACE)`") && error.contains("not set"), "{error}");
        assert!("Not_A_Name".parse::<Namespaces>().is_err());
    }
}
