//! Every rule of the product, as pure functions from facts and a time to a plan: no clock, no randomness, no input or output.
//!
//! The manager observes the facts and carries the plans out; `plan` and `why` on the command line and the crash explorer call the same
//! functions. One folder a kind ([`machine`], [`cluster`], [`remediation`]), and what several of them rest on: whose a server is ([`ownership`]), which node it is ([`node`]), what MAAS tells
//! of it ([`Server`]), what came of a call ([`Failure`]), and what a decision comes to ([`Plan`]).

pub mod address;
pub mod cluster;
mod failure;
pub mod leftover_webhooks;
mod lookup;
pub mod machine;
mod marks;
pub mod node;
pub mod ownership;
mod plan;
pub mod remediation;
mod server;
pub mod template;

pub use failure::{FailedStep, Failure, FailureKind};
pub use lookup::Lookup;
pub use marks::Marks;
pub use plan::{LookAgain, Note, Plan};
pub use server::{Link, LinkMode, NetworkInterface, Power, Server, ServerStatus, Stage, SubnetName};
