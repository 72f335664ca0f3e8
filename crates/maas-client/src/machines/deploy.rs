//! How to deploy a machine: every parameter MAAS knows.

use secrecy::{ExposeSecret, SecretString};

use super::allocate::BridgeType;
use crate::{call::Form, secret::UserData};

/// How to deploy a machine. What is not given is MAAS's default.
///
/// Deploying a Ready machine allocates it first, silently: give the agent name again and look whose it is afterwards.
#[derive(Clone, Debug, Default)]
pub struct Deploy {
    /// What to install, such as `jammy`, `ubuntu/noble` or `custom/edge-node`.
    pub distro_series: Option<String>,
    /// What the machine runs at its first boot. MAAS does not look into it.
    pub user_data: Option<UserData>,
    /// The kernel, such as `ga-22.04`.
    pub hwe_kernel: Option<String>,
    /// A name to find the machine by; only used if the machine is allocated with this call.
    pub agent_name: Option<String>,
    /// Why, for the event log.
    pub comment: Option<String>,
    /// Makes a bridge over every interface; only used if the machine is allocated with this call.
    pub bridge_all: Option<bool>,
    /// What bridges those are.
    pub bridge_type: Option<BridgeType>,
    /// Whether those bridges speak the spanning tree protocol.
    pub bridge_stp: Option<bool>,
    /// Seconds until those bridges forward.
    pub bridge_fd: Option<u32>,
    /// Makes it a VM host with libvirt. For administrators.
    pub install_kvm: Option<bool>,
    /// Makes it a VM host with LXD. For administrators.
    pub register_vmhost: Option<bool>,
    /// Makes it a rack controller as well. For administrators. Refused since MAAS 3.4.
    pub install_rackd: Option<bool>,
    /// Runs it in memory.
    pub ephemeral_deploy: Option<bool>,
    /// Has it report changes of its hardware. Since MAAS 3.2.
    pub enable_hw_sync: Option<bool>,
    /// Keeps its kernel's crashes. Since MAAS 3.6.
    pub enable_kernel_crash_dump: Option<bool>,
    /// The licence key of systems that want one.
    pub license_key: Option<SecretString>,
    /// Registers `ESXi` with the vCenter MAAS knows.
    pub vcenter_registration: Option<bool>,
}

impl Deploy {
    pub(super) fn form(&self) -> Form {
        Form::new()
            .maybe("distro_series", self.distro_series.as_ref())
            .maybe_secret("user_data", self.user_data.as_ref().map(UserData::encoded))
            .maybe("hwe_kernel", self.hwe_kernel.as_ref())
            .maybe("agent_name", self.agent_name.as_ref())
            .maybe("comment", self.comment.as_ref())
            .maybe("bridge_all", self.bridge_all)
            .maybe("bridge_type", self.bridge_type)
            .maybe("bridge_stp", self.bridge_stp)
            .maybe("bridge_fd", self.bridge_fd)
            .maybe("install_kvm", self.install_kvm)
            .maybe("register_vmhost", self.register_vmhost)
            .maybe("install_rackd", self.install_rackd)
            .maybe("ephemeral_deploy", self.ephemeral_deploy)
            .maybe("enable_hw_sync", self.enable_hw_sync)
            .maybe("enable_kernel_crash_dump", self.enable_kernel_crash_dump)
            .maybe_secret("license_key", self.license_key.as_ref().map(ExposeSecret::expose_secret))
            .maybe("vcenter_registration", self.vcenter_registration)
    }
}
