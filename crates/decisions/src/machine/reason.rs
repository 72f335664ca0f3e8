//! Why a MaasMachine is as it is: the reasons of its conditions. They are stable, because people and programs look for them;
//! docs/troubleshooting.md is made from this table. Where the Go provider has a reason for the same thing, it is that word: its objects are
//! taken over with what it wrote.

use crate::{Failure, FailureKind};

/// A reason, with what it means and what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reason {
    /// The word in the condition.
    pub name: &'static str,
    /// Whether somebody should be told.
    pub trouble: bool,
    /// What it means.
    pub meaning: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
}

/// A reason that passes by itself.
pub(crate) const fn calm(name: &'static str, meaning: &'static str) -> Reason {
    Reason { name, trouble: false, meaning, remedy: "Nothing: it passes by itself." }
}

/// A reason that passes by itself, unless somebody else does not do their part.
pub(crate) const fn waits_for(name: &'static str, meaning: &'static str, remedy: &'static str) -> Reason {
    Reason { name, trouble: false, meaning, remedy }
}

/// A reason that somebody should be told.
pub(crate) const fn trouble(name: &'static str, meaning: &'static str, remedy: &'static str) -> Reason {
    Reason { name, trouble: true, meaning, remedy }
}

#[expect(missing_docs, reason = "the table says what each means")]
impl Reason {
    pub const WAITING_FOR_CLUSTER: Self = calm("WaitingForClusterInfrastructure", "The cluster's own infrastructure is not ready yet.");
    pub const WAITING_FOR_BOOTSTRAP: Self =
        calm("WaitingForBootstrapData", "The bootstrap provider has not written what the machine shall run yet.");
    pub const WAITING_FOR_STATIC_IP: Self = waits_for(
        "WaitingForStaticIP",
        "spec.staticIP has no address yet: a pool or another program is to give it.",
        "Nothing, if that takes its time. If it does not pass, look at the IPAddressClaim of the machine's name and at the log of the pool's provider, or write spec.staticIP.ip.",
    );
    pub const ADDRESS_NOT_CLAIMED: Self = trouble(
        "AddressNotClaimed",
        "The pool that spec.staticIP.poolRef names gives no address to this machine, and not because that takes time.",
        "The message says what is in the way; it is tried again by itself.",
    );
    pub const ALLOCATING: Self = calm("MachineAllocating", "MAAS is being asked for a machine.");
    pub const UNANSWERED: Self = calm(
        "MaasAnswerOutstanding",
        "MAAS was told to do something, and nobody saw its answer. It may still do it, so it is looked at and nothing else is begun until two minutes have passed.",
    );
    pub const DEPLOY_STARTED: Self = calm("MachineDeployStartedReason", "A machine is held and its deployment is about to start.");
    pub const DEPLOYING: Self = calm("MachineDeploying", "MAAS installs the machine.");
    pub const DEPLOYED: Self = calm("MachineDeployed", "The machine runs.");
    pub const TRYING_ANOTHER: Self = calm("TryingAnotherMachine", "A machine failed; it is given back and another one will be tried.");
    pub const RELEASING: Self = calm("MachineReleasing", "The machine is on its way back to MAAS's pool.");
    pub const RELEASED: Self = calm("Deleted", "The machine is back in MAAS's pool, and the object goes.");
    pub const WAITING_FOR_DNS: Self = calm("DNSDetachPending", "The machine's address has to leave the cluster's DNS record first.");
    pub const LOOKING: Self = calm("MachineStateUnclear", "MAAS is being asked about the machine again.");
    pub const MAAS_AVAILABLE: Self = calm("MaasAvailable", "MAAS answers and accepts our key.");
    pub const PREPARED: Self = calm("MachinePrepared", "The machine was prepared as asked.");
    pub const NO_RIGHTS: Self = trouble(
        "RightsMissing",
        "Our MAAS user may not prepare machines as asked. Swap is left as MAAS sets it up; a machine with spec.staticIP or spec.networkInterfaces is not asked for at all.",
        "Give an administrator's key, or do without the setting.",
    );
    pub const ATTACHED: Self = calm("DNSAttached", "The cluster's endpoint leads to the machine.");
    pub const ATTACH_PENDING: Self = calm("DNSAttachPending", "The cluster's endpoint does not lead to the machine yet.");
    pub const POWERING_ON: Self = calm("MachinePoweringOn", "The machine was found without power and is being switched on.");

    pub const NO_ACCESS: Self = trouble(
        "MaasAccessMissing",
        "There is no usable address or key of a MAAS for this object.",
        "Give MAAS_ENDPOINT and MAAS_API_KEY in the Secret of spec.identityRef, in the namespace's Secret capmaas-manager-bootstrap-credentials, or in the controller's environment.",
    );
    pub const KEY_REFUSED: Self = trouble(
        "MaasKeyRefused",
        "MAAS does not accept the API key.",
        "Make a new key in MAAS and put it into the Secret, where it is picked up without a restart; one in the controller's environment needs it.",
    );
    pub const MAAS_UNAVAILABLE: Self = trouble(
        "MaasUnavailable",
        "MAAS does not answer. Nothing is deleted and nothing changes until it does.",
        "Check that MAAS is up and that the controller reaches its address.",
    );
    pub const NOT_MAAS: Self = trouble(
        "NotMaas",
        "What answers at the address is not a MAAS.",
        "Check the address, which usually ends in :5240/MAAS, and the proxy settings.",
    );
    pub const OTHER_MAAS: Self = trouble(
        "OtherMaas",
        "The credentials lead to another MAAS, or are another user's, than those with which the machine was allocated or the cluster's address made. Nothing is concluded from what they show.",
        "Put the first credentials back; if MAAS or its user only got another name, write that name into `maas` or `user` in the annotation metalshift.io/claim, of a MaasCluster metalshift.io/endpoint.",
    );
    pub const CLAIM_UNREADABLE: Self = trouble(
        "ClaimUnreadable",
        "The annotation metalshift.io/claim was changed by somebody, so it cannot be told which machine is this object's.",
        "Put back what it said, or remove the annotation if you are sure that no machine was allocated for this object.",
    );
    pub const LXD_NOT_SUPPORTED: Self = trouble(
        "LXDNotSupported",
        "The object asks for a virtual machine, or for hosts of them, which this version cannot make yet.",
        "Ask for a bare-metal machine: remove lxd, lxdConfig and provisioningMode.",
    );
    pub const BOOTSTRAP_UNREADABLE: Self = trouble(
        "BootstrapDataUnreadable",
        "The Secret with the bootstrap data cannot be read.",
        "Check the Secret that the Machine names and its key `value`.",
    );
    pub const BOOTSTRAP_TOO_LARGE: Self = trouble(
        "BootstrapDataTooLarge",
        "The bootstrap data is larger than MAAS takes.",
        "Make it smaller: let the machine fetch large files at its first boot instead of carrying them.",
    );
    // Templates cannot be changed, and Cluster API does not replace the first machine of a control plane while that has never been up.
    pub const IMAGE_NOT_FOUND: Self = trouble(
        "ImageNotFound",
        "MAAS does not have the image.",
        "Import or upload it in MAAS; or refer to a new template with another spec.image and delete this Machine.",
    );
    pub const NO_MATCHING_MACHINE: Self = trouble(
        "NoMatchingMachine",
        "MAAS has no free machine that fits.",
        "Add machines, release some, or ask for less; it is tried again by itself.",
    );
    pub const ALLOCATE_TIMEOUT: Self = trouble(
        "NoMachineInTime",
        "No free machine that fits turned up within spec.provisioning.allocateTimeout.",
        "Add machines, release some, or ask for less; it is tried again by itself.",
    );
    pub const ALLOCATE_REFUSED: Self = trouble(
        "AllocationRefused",
        "MAAS found fault with what was asked for, such as a zone, pool or tag that does not exist.",
        "Create what is missing in MAAS, and it is tried again by itself; or refer to a new template without the mistake and delete this Machine.",
    );
    pub const PREPARE_FAILED: Self = trouble(
        "MachinePreparationFailed",
        "The machine could not be prepared as asked, such as its network links.",
        "MAAS's words in the message say what is wrong; changing links needs an administrator's key.",
    );
    pub const DEPLOY_FAILED: Self = trouble(
        "MachineDeployFailed",
        "The deployment failed and no further machine will be tried.",
        "Look at the machine in MAAS. Delete the Machine to start over, or let a MachineHealthCheck do it.",
    );
    pub const DEPLOY_REFUSED: Self =
        trouble("DeploymentRefused", "MAAS found fault with the deployment.", "MAAS's words in the message say which setting is wrong.");
    pub const MARK_FAILED: Self = trouble(
        "MachineMarkFailed",
        "The machine could not be marked as this object's.",
        "MAAS's words in the message say why; it is tried again by itself.",
    );
    pub const LOCKED: Self =
        trouble("MachineLocked", "Somebody locked the machine in MAAS, so that nothing can be done to it.", "Unlock it in MAAS.");
    pub const FOREIGN: Self = trouble(
        "MachineForeign",
        "The machine this object names is held for another object. It is not touched.",
        "Find out who shares the MAAS user; delete the Machine to get another machine.",
    );
    pub const NOT_FOUND: Self =
        trouble("MachineNotFound", "The machine was deleted from MAAS.", "Delete the Machine, or let a MachineHealthCheck do it.");
    pub const TAKEN_AWAY: Self = trouble(
        "MachineTakenAway",
        "The machine was released in MAAS, or belongs to somebody else now. It is never deployed again under the same object.",
        "Delete the Machine, or let a MachineHealthCheck do it.",
    );
    pub const HIDDEN: Self = trouble(
        "MachineHidden",
        "MAAS does not show the machine to our user: it belongs to somebody else now, or rights were taken away.",
        "Check the machine's owner and our user's rights in MAAS; delete the Machine if the machine is lost.",
    );
    pub const TERMINATED: Self = trouble(
        "MachineTerminatedReason",
        "Somebody is releasing the machine in MAAS although it is in use here.",
        "Delete the Machine, or let a MachineHealthCheck do it.",
    );
    pub const STATE_UNDEFINED: Self = trouble(
        "MachineStateUndefined",
        "The machine is in a state of MAAS in which nothing can be done, such as rescue mode or testing.",
        "Finish in MAAS what somebody began there.",
    );
    pub const POWERED_OFF: Self = trouble(
        "MachinePoweredOff",
        "The machine has no power.",
        "Find out who switched it off; the message says whether it will be switched on.",
    );
    pub const POWER_UNCLEAR: Self = trouble(
        "MachinePowerUnclear",
        "MAAS cannot tell whether the machine has power, so it is left alone.",
        "Check its power controller in MAAS.",
    );
    pub const RELEASE_FAILED: Self = trouble(
        "MachineReleaseFailed",
        "MAAS could not take the machine back. The object stays until it is back: nothing is leaked.",
        "MAAS's words in the message say why; correct it, or release the machine by hand in MAAS.",
    );
    pub const RELEASE_SLOW: Self = trouble(
        "MachineReleaseSlow",
        "The machine takes longer to come back than spec.provisioning.releaseTimeout.",
        "Look at the machine in MAAS.",
    );
    pub const KUBERNETES_FAILED: Self = trouble(
        "KubernetesWriteFailed",
        "A change that this object needs was refused by the API server.",
        "The message says why; it is tried again by itself.",
    );
    pub const NODE_MISMATCH: Self = trouble(
        "NodeHasOtherProviderID",
        "The node of this machine says that it is another machine.",
        "Correct --provider-id in the bootstrap configuration, or leave it out. If the Node is left from before the machine was enlisted in MAAS again, delete that Node: the kubelet registers it anew.",
    );

    pub const NODE_NOT_NAMED: Self = trouble(
        "NodeProviderUpdateFailed",
        "The node of this machine could not be told which machine it is, so that Cluster API does not find it.",
        "The message says why; it is tried again by itself.",
    );
    pub const ID_UNREADABLE: Self = trouble(
        "ProviderIDUnreadable",
        "spec.providerID names no machine of a MAAS, so nobody knows which machine this object has. Nothing is asked of MAAS and nothing is let go.",
        "Correct spec.providerID to maas:///<zone>/<system id>, or look in MAAS that nothing is held and remove the finalizer.",
    );
    pub const LEFT_ALONE: Self = trouble(
        "MachineLeftAlone",
        "The object goes, and by what MAAS shows its machine is not ours to release.",
        "Look at the machine in MAAS and release it there if nobody needs it.",
    );

    pub const OWNERSHIP_UNCLEAR: Self = trouble(
        "MachineOwnershipUnclear",
        "The object goes, and its machine, which another provider allocated, lost its marks. Nobody can tell whether it is still this object's, so it is neither released nor let go.",
        "Release it in MAAS if it is this object's; if it is not, remove the finalizer of this object.",
    );
    pub const ADDRESS_LEFT: Self = trouble(
        "FixedAddressLeft",
        "A machine that went back keeps its fixed address: MAAS did not let us take it off, or somebody else got the machine before we could.",
        "Unlink the address from the machine in MAAS, or nobody else can have it; if somebody has the machine, ask them to, or wait until it is free.",
    );

    pub const ADDRESS_FREED: Self = calm("FixedAddressesFreed", "The fixed addresses of machines that went back are free again.");
    pub const ADDRESS_HELD: Self =
        calm("PooledAddressHeld", "The address that the machine has from a pool is held for it, after that failed for a while.");

    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::WAITING_FOR_CLUSTER,
        Self::WAITING_FOR_BOOTSTRAP,
        Self::WAITING_FOR_STATIC_IP,
        Self::ADDRESS_NOT_CLAIMED,
        Self::ALLOCATING,
        Self::UNANSWERED,
        Self::DEPLOY_STARTED,
        Self::DEPLOYING,
        Self::DEPLOYED,
        Self::TRYING_ANOTHER,
        Self::RELEASING,
        Self::RELEASED,
        Self::WAITING_FOR_DNS,
        Self::LOOKING,
        Self::MAAS_AVAILABLE,
        Self::PREPARED,
        Self::NO_RIGHTS,
        Self::ATTACHED,
        Self::ATTACH_PENDING,
        Self::POWERING_ON,
        Self::NO_ACCESS,
        Self::KEY_REFUSED,
        Self::MAAS_UNAVAILABLE,
        Self::NOT_MAAS,
        Self::OTHER_MAAS,
        Self::CLAIM_UNREADABLE,
        Self::LXD_NOT_SUPPORTED,
        Self::BOOTSTRAP_UNREADABLE,
        Self::BOOTSTRAP_TOO_LARGE,
        Self::IMAGE_NOT_FOUND,
        Self::NO_MATCHING_MACHINE,
        Self::ALLOCATE_TIMEOUT,
        Self::ALLOCATE_REFUSED,
        Self::PREPARE_FAILED,
        Self::DEPLOY_FAILED,
        Self::DEPLOY_REFUSED,
        Self::MARK_FAILED,
        Self::LOCKED,
        Self::FOREIGN,
        Self::NOT_FOUND,
        Self::TAKEN_AWAY,
        Self::HIDDEN,
        Self::TERMINATED,
        Self::STATE_UNDEFINED,
        Self::POWERED_OFF,
        Self::POWER_UNCLEAR,
        Self::RELEASE_FAILED,
        Self::RELEASE_SLOW,
        Self::KUBERNETES_FAILED,
        Self::NODE_MISMATCH,
        Self::NODE_NOT_NAMED,
        Self::ID_UNREADABLE,
        Self::LEFT_ALONE,
        Self::OWNERSHIP_UNCLEAR,
        Self::ADDRESS_LEFT,
        Self::ADDRESS_FREED,
        Self::ADDRESS_HELD,
    ];
}

impl Reason {
    /// Why MAAS cannot be asked.
    pub(crate) fn no_access(failure: &Failure) -> Self {
        match failure.kind {
            FailureKind::NoAccess => Self::NO_ACCESS,
            FailureKind::Unauthenticated => Self::KEY_REFUSED,
            FailureKind::NotMaas | FailureKind::Gone => Self::NOT_MAAS,
            FailureKind::NotPermitted => Self::OTHER_MAAS,
            _ => Self::MAAS_UNAVAILABLE,
        }
    }

    /// These words, and what to do.
    pub(crate) fn message(&self, words: &str) -> String {
        format!("{}. {}", words.trim_end_matches('.'), self.remedy)
    }
}
