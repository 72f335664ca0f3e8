//! The API, one file an endpoint. [`ALL`] is the map of it; [`crate::http::route`] finds the way.

pub mod account;
pub mod boot_resources;
pub mod configuration;
pub mod dns_implicit;
pub mod dns_records;
pub mod dns_resources;
pub mod domains;
pub mod events;
pub mod fabrics;
pub mod interfaces;
pub mod ip_addresses;
pub mod ip_ranges;
pub mod machines;
pub mod pools;
pub mod subnets;
pub mod tags;
pub mod users;
pub mod version;
pub mod vm_hosts;
pub mod zones;

use crate::http::route::Endpoint;

/// Every endpoint there is.
pub const ALL: &[&[Endpoint]] = &[
    version::ENDPOINTS,
    users::ENDPOINTS,
    account::ENDPOINTS,
    zones::ENDPOINTS,
    pools::ENDPOINTS,
    tags::ENDPOINTS,
    machines::ENDPOINTS,
    interfaces::ENDPOINTS,
    events::ENDPOINTS,
    domains::ENDPOINTS,
    dns_resources::ENDPOINTS,
    dns_records::ENDPOINTS,
    ip_addresses::ENDPOINTS,
    subnets::ENDPOINTS,
    ip_ranges::ENDPOINTS,
    fabrics::ENDPOINTS,
    boot_resources::ENDPOINTS,
    vm_hosts::ENDPOINTS,
    configuration::ENDPOINTS,
];
