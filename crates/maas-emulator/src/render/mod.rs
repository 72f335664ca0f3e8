//! Rows as MAAS shows them.

mod machine;
mod network;
mod places;
mod storage;

pub use machine::{ip_addresses, machine};
pub use network::{address, fabric, interface, ip_range, space, subnet, vlan, vlans_of};
pub use places::{domain, pool, tag, user, zone};
