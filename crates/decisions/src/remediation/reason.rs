//! Why a `MaasRemediation` is as it is: the reasons of its conditions beside those it shares with machines. They are stable, because people and
//! programs look for them; docs/troubleshooting.md is made from this table.

use crate::machine::{Reason, calm, trouble};

pub const HEALTHY: Reason = calm("MachineHealthy", "The node is well again.");
pub const WAITING_FOR_HEALTH_CHECK: Reason =
    calm("WaitingForHealthCheck", "The health check does not say that the Machine is unhealthy, so nothing is done to it.");
pub const MACHINE_DELETING: Reason = calm("MachineDeleting", "The Machine is being deleted, so nothing is done to it.");
pub const NOT_DEPLOYED_YET: Reason =
    calm("WaitingForDeployment", "The machine is still being brought up. It has deadlines of its own and is not switched off meanwhile.");
pub const AFTER_PAUSE: Reason =
    calm("WaitingAfterPause", "The Cluster was paused a moment ago. Its health check is given a minute to see how the node is now.");
pub const EARLIER_ORDER: Reason = calm(
    "WaitingForEarlierOrder",
    "MAAS was told something about the machine less than two minutes ago. What comes of that is seen first.",
);
pub const MARKS_MISSING: Reason = calm(
    "WaitingForMarks",
    "The machine lacks the marks that show in MAAS whose it is. It gets them first, from the rules about machines.",
);
pub const POWER_CYCLING: Reason = calm("PowerCycling", "The machine is switched off and on.");
pub const SWITCHED_OFF: Reason = calm("SwitchedOff", "The machine was switched off and is about to be switched on.");
pub const WAITING_FOR_NODE: Reason = calm("WaitingForNode", "The machine was switched off and on, and its node is waited for.");

pub const POWER_CYCLE_FAILED: Reason = trouble(
    "PowerCycleFailed",
    "MAAS could not switch the machine off or on.",
    "MAAS's words in the message say why: look at its power controller. When the time of the attempts is up, the Machine is left to its owner.",
);
pub const EXHAUSTED: Reason = trouble(
    "AttemptsExhausted",
    "The machine was switched off and on as often as allowed, and its node did not become well. The Machine was left to its owner, which replaces it.",
    "Nothing, if a MachineSet or a control plane owns the Machine; otherwise replace it by hand. Look at the machine before it is used again.",
);
pub const MACHINE_LOST: Reason = trouble(
    "MachineLost",
    "The machine is not this Machine's any more, so it was not touched. The Machine was left to its owner, which replaces it.",
    "Find out who released, took or deleted the machine in MAAS.",
);
pub const MACHINE_FAILED: Reason = trouble(
    "MachineFailed",
    "The machine does not run what it was handed over with, so switching it off and on cannot help. The Machine was left to its owner, which replaces it.",
    "Look at the machine in MAAS.",
);
pub const RUNS_IN_MEMORY: Reason = trouble(
    "MachineRunsInMemory",
    "The machine runs in memory and would lose everything with its power. It was not touched; the Machine was left to its owner, which replaces it.",
    "Use a MachineHealthCheck without spec.remediation.templateRef for machines that run in memory.",
);
pub const NOT_SWITCHABLE: Reason = trouble(
    "PowerNotSwitchable",
    "MAAS cannot switch the machine: its power type is manual. The Machine was left to its owner, which replaces it.",
    "Give the machine a power controller in MAAS, or use a MachineHealthCheck without spec.remediation.templateRef.",
);
pub const UNDER_REPAIR: Reason = trouble(
    "MachineUnderRepair",
    "Somebody rescues or tests the machine in MAAS, so it is left alone.",
    "Finish in MAAS what somebody began there, or delete the Machine.",
);
pub const NOT_OF_MAAS: Reason = trouble(
    "NotAMaasMachine",
    "The Machine's infrastructure is not a MaasMachine, so there is nothing to switch.",
    "Let the MachineHealthCheck's selector choose Machines of MAAS only.",
);
pub const NOT_HANDED_OVER: Reason = trouble(
    "HandOverFailed",
    "It was given up, but the Machine's condition OwnerRemediated could not be written.",
    "The message says why; it is tried again by itself.",
);

/// All of them.
pub const ALL: &[Reason] = &[
    HEALTHY,
    WAITING_FOR_HEALTH_CHECK,
    MACHINE_DELETING,
    NOT_DEPLOYED_YET,
    AFTER_PAUSE,
    EARLIER_ORDER,
    MARKS_MISSING,
    POWER_CYCLING,
    SWITCHED_OFF,
    WAITING_FOR_NODE,
    POWER_CYCLE_FAILED,
    EXHAUSTED,
    MACHINE_LOST,
    MACHINE_FAILED,
    RUNS_IN_MEMORY,
    NOT_SWITCHABLE,
    UNDER_REPAIR,
    NOT_OF_MAAS,
    NOT_HANDED_OVER,
];
