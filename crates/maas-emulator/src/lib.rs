//! A MAAS in one process: the 2.0 API, the life of machines, VM hosts, names and addresses, events, and what goes wrong with them.
//! It is held to recordings of the real one (`cargo xtask replay`); what differs is in this crate's README.
//!
//! ```
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use maas_emulator::{Emulator, Fleet, Options};
//!
//! let emulator = Emulator::new(Fleet::default(), Options::default())?;
//! let request = http::Request::get("/MAAS/api/2.0/version/").body(bytes::Bytes::new())?;
//! let answer = emulator.answer(request).await?;
//! assert_eq!(answer.status(), 200);
//! # Ok(())
//! # }
//! ```

pub mod clock;
mod control;
pub mod dns_server;
mod emulator;
mod endpoints;
pub mod faults;
pub mod fleet;
pub mod hardware;
mod http;
pub mod journal;
mod lifecycle;
mod load;
pub mod random;
mod render;
mod schedule;
mod server;
pub mod state_file;
pub mod timings;
pub mod version;
pub mod world;

pub use clock::Clock;
pub use emulator::{ConnectionReset, Emulator, Options};
pub use faults::Fault;
pub use fleet::Fleet;
pub use load::FleetError;
pub use server::serve;
pub use version::Version;

/// Every operation of the API: path below `api/2.0/` with `{}` for arguments, method, and name if it has one.
pub fn operations() -> impl Iterator<Item = (&'static str, &'static str, Option<&'static str>)> {
    let endpoints = endpoints::ALL.iter().copied().flatten();
    endpoints.flat_map(|endpoint| endpoint.operations.iter().map(|operation| (endpoint.path, operation.method, operation.name)))
}
