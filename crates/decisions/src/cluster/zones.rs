//! The zones of MAAS that machines are spread over: those of the spec that MAAS has, or all of MAAS that have machines.

use std::collections::BTreeSet;

use api::FailureDomains;

use super::{
    draft::{Draft, FAILURE_DOMAINS_READY},
    reason,
};
use crate::Lookup;

/// How many zones a message names.
const ZONES_NAMED: usize = 20;

impl Draft<'_> {
    /// Shows the zones, as far as MAAS told them; what was known stays otherwise.
    pub(super) fn shows_zones(&mut self) {
        let wanted = &self.facts.object.spec.failure_domains;
        let zones = match &self.facts.zones {
            Lookup::Found(zones) => zones,
            Lookup::Failed(failure) => {
                let words = failure.words.clone();
                return self.zones_are_unknown(words);
            }
            Lookup::Missing | Lookup::Forbidden | Lookup::Outdated => return self.zones_are_unknown("MAAS was not asked".to_owned()),
        };
        if wanted.is_empty() {
            let discovered = zones.iter().filter(|zone| zone.has_machines).map(|zone| zone.name.clone());
            self.status.failure_domains = FailureDomains::list(discovered);
            self.condition(FAILURE_DOMAINS_READY, Some(true), reason::ZONES_READY, "");
            return;
        }
        let existing: BTreeSet<&str> = zones.iter().map(|zone| zone.name.as_str()).collect();
        let (known, unknown): (Vec<&String>, Vec<&String>) = wanted.iter().partition(|zone| existing.contains(zone.as_str()));
        self.status.failure_domains = FailureDomains::list(known.into_iter().cloned());
        if unknown.is_empty() {
            self.condition(FAILURE_DOMAINS_READY, Some(true), reason::ZONES_READY, "");
            return;
        }
        let unknown = unknown.into_iter().map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ");
        let existing = existing.into_iter().take(ZONES_NAMED).collect::<Vec<_>>().join(", ");
        let message = format!("MAAS does not have the zones {unknown}; it has {existing}. {}", reason::ZONE_NOT_FOUND.remedy);
        self.condition(FAILURE_DOMAINS_READY, Some(false), reason::ZONE_NOT_FOUND, message);
    }

    fn zones_are_unknown(&mut self, words: String) {
        let known = api::condition::find(&self.status.conditions, FAILURE_DOMAINS_READY).is_some_and(|known| known.status == "True");
        if !known {
            self.condition(FAILURE_DOMAINS_READY, None, reason::ZONES_UNKNOWN, words);
        }
    }

    /// Whether MAAS told its zones at least once, so that Cluster API never sees a cluster without those it is going to have.
    pub(super) fn zones_were_read(&self) -> bool {
        self.facts.zones.found().is_some() || self.facts.is_provisioned()
    }
}
