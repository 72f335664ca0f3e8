//! A typed asynchronous client of the MAAS 2.0 API.
//!
//! A [`Client`] speaks to one MAAS on behalf of one user. Endpoints hang off it: [`Client::machines`] finds and allocates,
//! [`Client::machine`] acts on one machine, [`Client::zones`], [`Client::tags`], [`Client::dns_resources`], [`Client::vm_hosts`],
//! [`Client::events`] and others do what their names say.
//!
//! ```
//! use maas_client::{Allocate, BoxError, Client, Error, MebiBytes, Transport};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A wire within this process; `build()` instead of `build_on()` takes the network.
//! let wire = Transport::new(tower::service_fn(|request: http::Request<bytes::Bytes>| async move {
//!     let taken = request.uri().query() != Some("op=allocate");
//!     let (status, kind, body) = match taken {
//!         false => (200, "application/json", r#"{"system_id": "abc123", "status": 10, "zone": {"name": "az1"}}"#),
//!         true => (409, "text/plain", "Can't deploy a machine that is in the 'Broken' state"),
//!     };
//!     // What refuses something is believed to be a MAAS by this header.
//!     let answer = http::Response::builder().status(status).header("content-type", kind).header("x-frame-options", "DENY");
//!     Ok::<_, BoxError>(answer.body(body.into())?)
//! }));
//! let client = Client::builder("http://maas.example:5240/MAAS", "consumer:token:secret")?.build_on(wire);
//!
//! let wanted = Allocate::new().zone("az1").memory(MebiBytes(8192)).agent_name("my-claim");
//! let machine = client.machines().allocate(&wanted).await?;
//! assert_eq!(machine.zone.name, "az1");
//!
//! match client.machine(&machine.system_id).deploy(&Default::default()).await {
//!     Ok(machine) => println!("{} is {}", machine.fqdn, machine.status),
//!     Err(Error::Conflict { words, retry_after: None, .. }) => assert!(words.contains("'Broken'")),
//!     // It may have been done, or may still be: look before doing it again.
//!     Err(error) if error.may_have_changed_something() => panic!("nobody knows: {error}"),
//!     Err(error) => return Err(error.into()),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What is repeated
//!
//! Reads, changes of settings, and removals of what has a number (MAAS gives no number twice) are the same twice: they are tried again with
//! growing waits until their deadline ([`Limits`]). What acts on a machine, makes something, destroys VMs, or removes something by its name
//! or address is sent once: between two attempts it may have become somebody else's. When a call that changes something may have reached
//! MAAS and was not answered in the end, the error is [`Error::OutcomeUnknown`]: looking comes before doing it again. What was decided on
//! evidence that has an end goes through [`Client::not_after`], and is sent before that end or never. No more calls are under way at a time
//! than the [`Budget`] allows.
//!
//! # Answers
//!
//! Answers of other versions are read too: what is missing or null is the default of its type (-1 for an [`Id`], `Other` or unknown for a
//! state). A new value of a state is kept as the text or number it is, a new key is dropped. Only an answer that does not say which object
//! it is about is refused: an object made of defaults would be a machine without an owner.
//!
//! # Secrets
//!
//! No part of the API key is in any `Debug`, error or log, nor is the answer to a bad key. Passwords, private keys, licence keys and
//! user-data are not shown by the types that hold them, and are taken out of what MAAS or a proxy says of the call they were given with,
//! whole or by line. Secrets of less than four letters are not found there.
//!
//! # What it rests on
//!
//! Requests and answers were compared with recorded exchanges of a real MAAS 3.7.3. What no recording holds was read in MAAS's source
//! instead, and is marked so where it is documented.
//!
//! # Simulations
//!
//! A [`Transport`] is any tower service. All waiting is tokio's, so it can be paused; [`ClientBuilder::clock`] and
//! [`ClientBuilder::randomness`] replace what else would differ from run to run.

mod account;
mod address;
mod answer;
mod boot_resources;
mod call;
mod client;
mod compose;
mod dns_records;
mod dns_resources;
mod domains;
mod error;
mod events;
mod follow;
mod ids;
mod interfaces;
mod ip_addresses;
mod ip_ranges;
mod key;
mod limits;
mod machines;
mod named;
mod network;
mod pools;
mod scrub;
mod secret;
mod spaces;
mod ssh_keys;
mod subnets;
mod tags;
mod tolerant;
mod transport;
mod units;
mod upload;
mod users;
mod version;
mod vlans;
mod vm_clusters;
mod vm_hosts;
mod zones;

pub use account::{Account, AuthorisationToken};
pub use address::{Address, MalformedAddress};
pub use boot_resources::{BootResource, BootResourceFile, BootResourceSet, BootResourceType, BootResources};
pub use client::{Client, ClientBuilder, SetupError};
pub use compose::{Compose, Composed};
pub use dns_records::{DnsRecord, DnsRecords, NewDnsRecord};
pub use dns_resources::{DnsFilter, DnsResource, DnsResources, ResourceRecord};
pub use domains::{Domain, DomainSettings, Domains};
pub use error::{CallName, Error, Refusal};
pub use events::{Event, EventFilter, EventLevel, EventPage, EventPlace, Events, MOST_EVENTS};
pub use follow::{Batch, EventFollower, FollowSettings};
pub use ids::{Id, SystemId};
pub use interfaces::{
    CreateBond, CreateBridge, CreatePhysical, CreateVlan, Discovered, Interface, InterfaceSettings, InterfaceType, Interfaces, Link,
    LinkMode, LinkSubnet,
};
pub use ip_addresses::{AllocationType, IpAddress, IpAddresses, Reserve};
pub use ip_ranges::{IpRange, IpRangeType, IpRanges, NewIpRange};
pub use key::{ApiKey, MalformedKey};
pub use limits::{Budget, Limit, Limits};
pub use machines::{
    Allocate, Allocation, BlockDevice, BridgeType, Commission, ConstraintMatches, Constraints, DefaultGateways, Deploy, Filesystem,
    Gateway, Host, Listing, Machine, MachineFilter, MachineSettings, MachineStatus, Machines, NewMachine, NumaNode, OneMachine, Parent,
    Partition, PowerOff, PowerState, Release, ScriptStatus, Test,
};
pub use network::{NetworkError, network_transport};
pub use pools::{ResourcePool, ResourcePools};
pub use secrecy::{ExposeSecret, SecretString};
pub use secret::{SecretParameters, UserData};
pub use spaces::{Space, Spaces};
pub use ssh_keys::{SshKey, SshKeys};
pub use subnets::{AddressInUse, AddressRun, NodeSummary, Subnet, SubnetName, SubnetSettings, SubnetStatistics, Subnets};
pub use tags::{Tag, TagChange, TagSettings, Tags};
pub use transport::{BoxError, HeldBack, NotSent, Transport};
pub use units::{ByteCount, MebiBytes, MegaBytes, TimeToLive};
pub use upload::{Upload, UploadError};
pub use users::{NewUser, User, Users};
pub use version::Version;
pub use vlans::{Fabric, Vlan, VlanSettings, Vlans};
pub use vm_clusters::{ClusterStoragePool, VmCluster, VmClusterSettings, VmClusters};
pub use vm_hosts::{HostMachine, StoragePool, VmHost, VmHostResources, VmHostSettings, VmHosts};
pub use zones::{Zone, Zones};

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
