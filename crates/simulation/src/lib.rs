//! An in-process world for tests: an API server without sockets, under paused tokio time, with seeded faults and a trace of every call.
//!
//! Test code only. [`ApiServer`] answers a real `kube::Client`, so the real controllers run on it unchanged; two runs with the same
//! seed have the same [`Trace`], to the byte. It serves the simulation alone: it is no oracle, the real kube-apiserver is.
//!
//! # Known differences from the real server
//! - Any group, version and resource exists; nothing is validated, defaulted, pruned or converted, and there is no discovery.
//! - Namespaces need not exist and deleting one deletes nothing in it. There is no garbage collection: propagation policies and owner
//!   references have no effect. No authentication, authorization or admission.
//! - Every resource has a `status` subresource, so a write of the object never changes the status and a write of the status nothing else.
//! - A list is never cut into pages (`limit` is ignored) and never served from an older state; `resourceVersionMatch` is ignored.
//! - Watches know label selectors of the forms `a=b`, `a==b`, `a!=b`, `a`, `!a`, and the field selectors `metadata.name` and
//!   `metadata.namespace`. No initial events (streaming lists). History is kept for ever unless a test forgets it.
//! - Strategic merge patches are treated as merge patches.
//! - Server-side apply knows lists of maps only by well-known names (`conditions` by type, `ownerReferences` by uid; `finalizers` is a
//!   set); all other lists are atomic. Only apply owns fields: other writes neither gain nor lose ownership. `managedFields` is not shown.
//! - Deleting ignores grace periods. A collection cannot be deleted.

mod api_server;
mod apply;
mod call;
pub mod explorer;
mod faults;
mod patch;
mod refusal;
mod selector;
mod store;
mod target;
mod trace;
mod watching;

pub use api_server::ApiServer;
pub use faults::Faults;
pub use trace::{Entry, Trace};
