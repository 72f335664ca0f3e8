//! The three levels of a lab, each usable alone. Chosen by `lab up --level` and by tests.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{LabError, own_process};

/// How much of a data centre a lab holds; each level contains the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// etcd and kube-apiserver.
    Api,
    /// Plus the Cluster API managers with their webhooks.
    Capi,
    /// Plus scheduler, nodes that run pods, and machines. Needs root: everything lives in namespaces of its own.
    Nodes,
}

impl Level {
    /// The highest level this process may start, and the reason to tell the person who did not choose one.
    pub fn highest_here() -> (Self, &'static str) {
        match Self::check_rights() {
            Ok(()) => (Self::Nodes, "you are root, so nodes and machines can run"),
            Err(LabError::NeedsRights) => {
                (Self::Capi, "you are root without CAP_SYS_ADMIN, which nodes and machines need; a container has it with --privileged")
            }
            Err(_) => (Self::Capi, "nodes and machines need root; run with sudo for level nodes"),
        }
    }

    /// Whether this process may start level nodes.
    pub(crate) fn check_rights() -> Result<(), LabError> {
        if !rustix::process::geteuid().is_root() {
            return Err(LabError::NeedsRoot);
        }
        if own_process::may_make_namespaces() { Ok(()) } else { Err(LabError::NeedsRights) }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Api => "api",
            Self::Capi => "capi",
            Self::Nodes => "nodes",
        })
    }
}

impl FromStr for Level {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        match text {
            "api" => Ok(Self::Api),
            "capi" => Ok(Self::Capi),
            "nodes" => Ok(Self::Nodes),
            other => Err(LabError::UnknownLevel { given: other.to_owned() }),
        }
    }
}
