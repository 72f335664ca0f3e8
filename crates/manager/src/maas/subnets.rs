//! The subnet that a person means. Used where objects name one.

use decisions::{Failure, FailureKind};
use maas_client::{Client, Subnet};

use crate::failure;

/// The subnet of this range or name.
pub async fn subnet_called(client: &Client, name: &str) -> Result<Subnet, Failure> {
    let subnets = client.subnets().list().await.map_err(|error| failure::of_maas(&error))?;
    let mut called = subnets.into_iter().filter(|subnet| subnet.cidr == name || subnet.name == name);
    match (called.next(), called.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(Failure { kind: FailureKind::NotFound, words: format!("MAAS has no subnet {name}") }),
        // Names are unique within a VLAN only.
        (Some(one), Some(other)) => {
            let words = format!("MAAS has several subnets {name}, such as {} and {}: give the range of one", one.cidr, other.cidr);
            Err(Failure { kind: FailureKind::Refused, words })
        }
    }
}
