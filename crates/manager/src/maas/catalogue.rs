//! What a MAAS offers that changes rarely: zones, pools, tags, images. Read at most once a minute per account, by one reader at a time. Which
//! zones have machines is told only by a list of all machines, which is long: it is read once an hour, or when zones came or went.

use maas_client::{BootResource, Client, Error, MachineFilter, ResourcePool, Tag, Zone};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

use super::fresh::Fresh;

const LONGEST_AGE: Duration = Duration::from_mins(1);
const LONGEST_AGE_OF_OCCUPIED: Duration = Duration::from_hours(1);

type List<T> = Fresh<Arc<Vec<T>>, Error>;

/// Zones, as they were when it was read which of them have machines.
#[derive(Debug)]
struct Occupied {
    zones: Arc<Vec<Zone>>,
    with_machines: BTreeSet<String>,
}

/// The lists of one account.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    zones: List<Zone>,
    occupied: Fresh<Arc<Occupied>, Error>,
    pools: List<ResourcePool>,
    tags: List<Tag>,
    images: List<BootResource>,
}

impl Catalogue {
    pub async fn zones(&self, client: &Client) -> Result<Arc<Vec<Zone>>, Error> {
        self.zones.get(LONGEST_AGE, async { client.zones().list().await.map(Arc::new) }).await
    }

    /// The zones there are, each with whether it has machines.
    pub async fn occupied_zones(&self, client: &Client) -> Result<Vec<(String, bool)>, Error> {
        let zones = self.zones(client).await?;
        let mut occupied = self.read_occupied(client, &zones).await?;
        if !occupied.zones.iter().map(|zone| &zone.name).eq(zones.iter().map(|zone| &zone.name)) {
            self.occupied.forget();
            occupied = self.read_occupied(client, &zones).await?;
        }
        Ok(zones.iter().map(|zone| (zone.name.clone(), occupied.with_machines.contains(&zone.name))).collect())
    }

    async fn read_occupied(&self, client: &Client, zones: &Arc<Vec<Zone>>) -> Result<Arc<Occupied>, Error> {
        let read = async {
            let machines = client.machines().list(&MachineFilter::new()).await?;
            let with_machines = machines.into_iter().map(|machine| machine.zone.name).collect();
            Ok(Arc::new(Occupied { zones: Arc::clone(zones), with_machines }))
        };
        self.occupied.get(LONGEST_AGE_OF_OCCUPIED, read).await
    }

    pub async fn pools(&self, client: &Client) -> Result<Arc<Vec<ResourcePool>>, Error> {
        self.pools.get(LONGEST_AGE, async { client.resource_pools().list().await.map(Arc::new) }).await
    }

    pub async fn tags(&self, client: &Client) -> Result<Arc<Vec<Tag>>, Error> {
        self.tags.get(LONGEST_AGE, async { client.tags().list().await.map(Arc::new) }).await
    }

    pub async fn images(&self, client: &Client) -> Result<Arc<Vec<BootResource>>, Error> {
        self.images.get(LONGEST_AGE, async { client.boot_resources().list(None).await.map(Arc::new) }).await
    }

    pub fn forget(&self) {
        self.zones.forget();
        self.pools.forget();
        self.tags.forget();
        self.images.forget();
    }
}
