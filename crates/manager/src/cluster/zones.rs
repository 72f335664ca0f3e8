//! Which zones have machines. MAAS tells that only in a list of all machines, which is long, so it is asked rarely: when zones came or
//! went, or after an hour.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use decisions::{Lookup, cluster::Zone};
use maas_client::MachineFilter;
use tokio::time::Instant;

use crate::{ObjectKey, failure, maas::Account};

const LONGEST_AGE: Duration = Duration::from_hours(1);

/// What was found for each object.
#[derive(Debug, Default)]
pub struct Occupied {
    objects: Mutex<BTreeMap<ObjectKey, Found>>,
}

#[derive(Debug, Clone)]
struct Found {
    at: Instant,
    zones: Vec<Zone>,
}

impl Occupied {
    /// The zones of MAAS; which of them have machines only if somebody wants to know.
    pub async fn zones(&self, account: &Account, key: &ObjectKey, with_machines: bool) -> Lookup<Vec<Zone>> {
        let names: Vec<String> = match account.zones().await {
            Ok(zones) => zones.iter().map(|zone| zone.name.clone()).collect(),
            Err(error) => return Lookup::Failed(failure::of_maas(&error)),
        };
        if !with_machines {
            return Lookup::Found(names.into_iter().map(|name| Zone { name, has_machines: true }).collect());
        }
        let known = self.objects.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
        if let Some(known) = known
            && known.at.elapsed() < LONGEST_AGE
            && known.zones.iter().map(|zone| &zone.name).eq(&names)
        {
            return Lookup::Found(known.zones);
        }
        let occupied: BTreeSet<String> = match account.client.machines().list(&MachineFilter::new()).await {
            Ok(machines) => machines.into_iter().map(|machine| machine.zone.name).collect(),
            Err(error) => return Lookup::Failed(failure::of_maas(&error)),
        };
        let zones: Vec<Zone> = names.into_iter().map(|name| Zone { has_machines: occupied.contains(&name), name }).collect();
        let found = Found { at: Instant::now(), zones: zones.clone() };
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), found);
        Lookup::Found(zones)
    }

    /// The object is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}
