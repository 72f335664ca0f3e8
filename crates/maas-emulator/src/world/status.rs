//! The 23 states of a machine.

use serde::{Deserialize, Serialize};

/// A machine's state, numbered as MAAS numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
#[expect(missing_docs, reason = "the names say it, and `name` gives MAAS's words")]
pub enum Status {
    New = 0,
    Commissioning = 1,
    FailedCommissioning = 2,
    Missing = 3,
    Ready = 4,
    Reserved = 5,
    Deployed = 6,
    Retired = 7,
    Broken = 8,
    Deploying = 9,
    Allocated = 10,
    FailedDeployment = 11,
    Releasing = 12,
    ReleasingFailed = 13,
    DiskErasing = 14,
    FailedDiskErasing = 15,
    RescueMode = 16,
    EnteringRescueMode = 17,
    FailedEnteringRescueMode = 18,
    ExitingRescueMode = 19,
    FailedExitingRescueMode = 20,
    Testing = 21,
    FailedTesting = 22,
}

impl Status {
    /// Whether it is part of the detour through rescue mode, which ends in the state before it.
    pub fn is_of_rescue_mode(self) -> bool {
        matches!(
            self,
            Status::EnteringRescueMode
                | Status::FailedEnteringRescueMode
                | Status::RescueMode
                | Status::ExitingRescueMode
                | Status::FailedExitingRescueMode
        )
    }

    /// All of them, in MAAS's order.
    pub const ALL: [Status; 23] = [
        Status::New,
        Status::Commissioning,
        Status::FailedCommissioning,
        Status::Missing,
        Status::Ready,
        Status::Reserved,
        Status::Deployed,
        Status::Retired,
        Status::Broken,
        Status::Deploying,
        Status::Allocated,
        Status::FailedDeployment,
        Status::Releasing,
        Status::ReleasingFailed,
        Status::DiskErasing,
        Status::FailedDiskErasing,
        Status::RescueMode,
        Status::EnteringRescueMode,
        Status::FailedEnteringRescueMode,
        Status::ExitingRescueMode,
        Status::FailedExitingRescueMode,
        Status::Testing,
        Status::FailedTesting,
    ];

    /// MAAS's number.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// MAAS's words.
    pub fn name(self) -> &'static str {
        match self {
            Status::New => "New",
            Status::Commissioning => "Commissioning",
            Status::FailedCommissioning => "Failed commissioning",
            Status::Missing => "Missing",
            Status::Ready => "Ready",
            Status::Reserved => "Reserved",
            Status::Deployed => "Deployed",
            Status::Retired => "Retired",
            Status::Broken => "Broken",
            Status::Deploying => "Deploying",
            Status::Allocated => "Allocated",
            Status::FailedDeployment => "Failed deployment",
            Status::Releasing => "Releasing",
            Status::ReleasingFailed => "Releasing failed",
            Status::DiskErasing => "Disk erasing",
            Status::FailedDiskErasing => "Failed disk erasing",
            Status::RescueMode => "Rescue mode",
            Status::EnteringRescueMode => "Entering rescue mode",
            Status::FailedEnteringRescueMode => "Failed to enter rescue mode",
            Status::ExitingRescueMode => "Exiting rescue mode",
            Status::FailedExitingRescueMode => "Failed to exit rescue mode",
            Status::Testing => "Testing",
            Status::FailedTesting => "Failed testing",
        }
    }

    /// The word the `status` filter of the machine list takes.
    pub fn filter(self) -> &'static str {
        match self {
            Status::New => "new",
            Status::Commissioning => "commissioning",
            Status::FailedCommissioning => "failed_commissioning",
            Status::Missing => "missing",
            Status::Ready => "ready",
            Status::Reserved => "reserved",
            Status::Deployed => "deployed",
            Status::Retired => "retired",
            Status::Broken => "broken",
            Status::Deploying => "deploying",
            Status::Allocated => "allocated",
            Status::FailedDeployment => "failed_deployment",
            Status::Releasing => "releasing",
            Status::ReleasingFailed => "failed_releasing",
            Status::DiskErasing => "disk_erasing",
            Status::FailedDiskErasing => "failed_disk_erasing",
            Status::RescueMode => "rescue_mode",
            Status::EnteringRescueMode => "entering_rescue_mode",
            Status::FailedEnteringRescueMode => "failed_entering_rescue_mode",
            Status::ExitingRescueMode => "exiting_rescue_mode",
            Status::FailedExitingRescueMode => "failed_exiting_rescue_mode",
            Status::Testing => "testing",
            Status::FailedTesting => "failed_testing",
        }
    }

    /// The word the `simple_status` filter takes for it and its like.
    pub fn simple_filter(self) -> &'static str {
        match self {
            Status::FailedCommissioning
            | Status::FailedDeployment
            | Status::FailedDiskErasing
            | Status::FailedEnteringRescueMode
            | Status::FailedExitingRescueMode
            | Status::ReleasingFailed
            | Status::FailedTesting => "failed",
            Status::DiskErasing => Status::Releasing.filter(),
            Status::EnteringRescueMode | Status::ExitingRescueMode => Status::RescueMode.filter(),
            Status::Missing | Status::Reserved | Status::Retired => "other",
            status => status.filter(),
        }
    }
}

impl Status {
    /// Whether a machine in this state counts as somebody's, so that only file systems taken over at acquisition are shown.
    pub fn is_allocated(self) -> bool {
        match self {
            Status::Allocated
            | Status::Deploying
            | Status::Deployed
            | Status::FailedDeployment
            | Status::Releasing
            | Status::ReleasingFailed
            | Status::DiskErasing
            | Status::FailedDiskErasing
            | Status::RescueMode
            | Status::EnteringRescueMode
            | Status::FailedEnteringRescueMode
            | Status::ExitingRescueMode
            | Status::FailedExitingRescueMode
            | Status::Testing
            | Status::FailedTesting => true,
            Status::New
            | Status::Commissioning
            | Status::FailedCommissioning
            | Status::Missing
            | Status::Ready
            | Status::Reserved
            | Status::Retired
            | Status::Broken => false,
        }
    }
}
