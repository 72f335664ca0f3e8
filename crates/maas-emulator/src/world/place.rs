//! Where machines stand and whom they are for: zones, resource pools, tags.

use serde::{Deserialize, Serialize};

use super::id::Id;

/// An availability zone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Zone {
    /// Its id.
    pub id: Id<Zone>,
    /// Its name.
    pub name: String,
    /// What it says of itself.
    pub description: String,
}

/// A resource pool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pool {
    /// Its id; 0 is the default pool.
    pub id: Id<Pool>,
    /// Its name.
    pub name: String,
    /// What it says of itself.
    pub description: String,
}

/// A tag.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tag {
    /// Its id.
    pub id: Id<Tag>,
    /// Its name.
    pub name: String,
    /// A remark.
    pub comment: String,
    /// An `XPath` over the hardware; kept, not evaluated.
    pub definition: String,
    /// Kernel options of machines that carry it.
    pub kernel_opts: String,
}
