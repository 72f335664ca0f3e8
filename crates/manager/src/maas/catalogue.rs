//! What a MAAS offers that changes rarely: zones, pools, tags, images. Read at most once a minute per account, by one reader at a time.

use maas_client::{BootResource, Client, Error, ResourcePool, Tag, Zone};
use std::{sync::Arc, time::Duration};

use super::fresh::Fresh;

const LONGEST_AGE: Duration = Duration::from_mins(1);

type List<T> = Fresh<Arc<Vec<T>>, Error>;

/// The lists of one account.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    zones: List<Zone>,
    pools: List<ResourcePool>,
    tags: List<Tag>,
    images: List<BootResource>,
}

impl Catalogue {
    pub async fn zones(&self, client: &Client) -> Result<Arc<Vec<Zone>>, Error> {
        self.zones.get(LONGEST_AGE, async { client.zones().list().await.map(Arc::new) }).await
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
