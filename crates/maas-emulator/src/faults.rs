//! What goes wrong, by call, by machine and by time. Faults are data: a fleet file lists them, a test injects them, a person posts
//! them to a running emulator.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::later;
use crate::http::call::Call;
use crate::schedule::Due;
use crate::world::World;
use crate::world::id::Id;
use crate::world::machine::Machine;

/// A fault that can never strike, because what it is about does not exist.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum UnknownTarget {
    /// No such machine.
    #[error("there is no machine \"{0}\": faults name machines by system id or host name")]
    Machine(String),
    /// No such user.
    #[error("there is no user \"{0}\"")]
    User(String),
    /// No such subnet.
    #[error("there is no subnet {0}: faults name subnets by CIDR")]
    Subnet(ipnet::IpNet),
    /// No such VM host.
    #[error("there is no VM host \"{0}\"")]
    VmHost(String),
    /// No such operation.
    #[error("no call has the operation \"{0}\"")]
    Operation(String),
    /// No such method.
    #[error("no call has the method \"{0}\"")]
    Method(String),
    /// No such path.
    #[error("no call has a path that begins with \"{0}\": faults name paths below api/2.0/, such as machines/")]
    Path(String),
    /// No such time.
    #[error("{0} is not a time in seconds from now on")]
    Seconds(f64),
}

/// Something that goes wrong.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// A call is answered badly.
    Call(CallFault),
    /// A machine's hardware misbehaves.
    Machine(MachineFault),
    /// Something happens to a machine at a time.
    Incident(Incident),
    /// A subnet has no free addresses, whatever its size.
    ExhaustedAddresses {
        /// The subnet by CIDR.
        subnet: ipnet::IpNet,
    },
    /// The storage pools of a VM host have no room, whatever their size.
    FullStorage {
        /// The VM host by name.
        vm_host: String,
    },
    /// No rack controller answers the region.
    NoRack,
}

/// A call that is answered badly.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallFault {
    /// Which calls.
    #[serde(default)]
    pub matching: CallPattern,
    /// How many such calls go well first.
    #[serde(default)]
    pub skip: u32,
    /// How many then go wrong; all of them when absent.
    #[serde(default)]
    pub times: Option<u32>,
    /// What goes wrong.
    pub harm: CallHarm,
}

/// Which calls; what is absent matches any.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallPattern {
    /// The HTTP method.
    pub method: Option<String>,
    /// The beginning of the path below `api/2.0/`, such as `machines/`.
    pub path: Option<String>,
    /// The operation, such as `allocate`.
    pub operation: Option<String>,
    /// The system id in the path, or the host name of now: a machine that is renamed stays the same.
    pub machine: Option<String>,
    /// The user name.
    pub user: Option<String>,
}

/// What goes wrong with a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallHarm {
    /// Takes this much longer.
    Slow {
        /// How much longer, in seconds.
        seconds: f64,
    },
    /// Is answered so, without effect.
    Status {
        /// 500, 503, 504 or another.
        #[serde(deserialize_with = "final_status")]
        status: u16,
        /// The words.
        #[serde(default)]
        body: String,
        /// Seconds until a retry makes sense.
        #[serde(default)]
        retry_after: Option<u32>,
    },
    /// A conflict in the database after MAAS's own retries: 409 with `Retry-After`, without effect.
    Conflict,
    /// The connection ends before the work is done.
    ResetBefore,
    /// The work is done and the connection ends before the answer.
    ResetAfter,
    /// The connection ends, and the work is done later all the same.
    LateCommit {
        /// How much later, in seconds.
        seconds: f64,
    },
    /// Goes on only when as many such calls have begun, none of which sees what the others do: a race, whenever they come.
    Together {
        /// How many.
        calls: u32,
    },
}

/// What goes wrong with a call, and the number of the fault that says so.
#[derive(Debug, Clone)]
pub struct Strike {
    /// The fault's place among all.
    pub fault: usize,
    /// What goes wrong.
    pub harm: CallHarm,
}

/// A machine whose hardware misbehaves.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineFault {
    /// Its system id, or its host name of now; any machine when absent.
    #[serde(default)]
    pub machine: Option<String>,
    /// How often; for good when absent.
    #[serde(default)]
    pub times: Option<u32>,
    /// What goes wrong.
    pub harm: MachineHarm,
}

/// What goes wrong with a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MachineHarm {
    /// The installation fails, with these words.
    FailDeploy(String),
    /// The installation never ends.
    HangDeploy,
    /// Commissioning fails.
    FailCommission,
    /// Tests fail.
    FailTest,
    /// Erasing fails.
    FailErase,
    /// The BMC does not answer, with these words.
    BmcError(String),
}

/// Something that happens to a machine from outside.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Incident {
    /// When, in seconds after the emulator or the injection began.
    #[serde(default)]
    pub after_seconds: f64,
    /// The system id, or the host name of now.
    pub machine: String,
    /// What happens.
    pub what: Happening,
}

/// What happens to a machine from outside.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Happening {
    /// Its power goes.
    PowerLoss,
    /// Somebody releases it.
    Released,
    /// Somebody deletes it.
    Deleted,
    /// Somebody locks it.
    Locked,
    /// Another user has it, deployed.
    DeployedBy(String),
}

/// All faults at work.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Faults {
    calls: Vec<CallFault>,
    machines: Vec<MachineFault>,
    exhausted: Vec<ipnet::IpNet>,
    #[serde(default)]
    full: Vec<String>,
    /// No rack controller answers.
    pub no_rack: bool,
}

impl Faults {
    /// Adds a fault; an incident is for the schedule and comes back.
    pub fn add(&mut self, fault: Fault) -> Option<Incident> {
        match fault {
            Fault::Call(fault) => self.calls.push(fault),
            Fault::Machine(fault) => self.machines.push(fault),
            Fault::ExhaustedAddresses { subnet } => self.exhausted.push(subnet),
            Fault::FullStorage { vm_host } => self.full.push(vm_host),
            Fault::NoRack => self.no_rack = true,
            Fault::Incident(incident) => return Some(incident),
        }
        None
    }

    /// Ends all faults.
    pub fn clear(&mut self) {
        *self = Faults::default();
    }

    /// What goes wrong with this call, counting it.
    pub fn strike_call(&mut self, call: &Call, user: Option<&str>) -> Option<Strike> {
        for (index, fault) in self.calls.iter_mut().enumerate() {
            if !fault.matching.matches(call, user) || fault.times == Some(0) {
                continue;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
                continue;
            }
            if let Some(times) = &mut fault.times {
                *times -= 1;
            }
            return Some(Strike { fault: index, harm: fault.harm.clone() });
        }
        None
    }

    /// The first fault of a machine that `pick` knows, counting it.
    pub fn strike_machine<T>(&mut self, system_id: &str, pick: impl Fn(&MachineHarm) -> Option<T>) -> Option<T> {
        for fault in &mut self.machines {
            let concerns = fault.machine.as_deref().is_none_or(|machine| machine == system_id);
            if !concerns || fault.times == Some(0) {
                continue;
            }
            if let Some(picked) = pick(&fault.harm) {
                if let Some(times) = &mut fault.times {
                    *times -= 1;
                }
                return Some(picked);
            }
        }
        None
    }

    /// Whether a subnet is said to be full.
    pub fn is_exhausted(&self, subnet: ipnet::IpNet) -> bool {
        self.exhausted.contains(&subnet)
    }

    /// Whether the storage pools of a VM host have no room.
    pub fn is_full(&self, vm_host: &str) -> bool {
        self.full.iter().any(|name| name == vm_host)
    }
}

impl CallPattern {
    fn matches(&self, call: &Call, user: Option<&str>) -> bool {
        let same = |wished: &Option<String>, given: Option<&str>| wished.as_deref().is_none_or(|wished| given == Some(wished));
        self.method.as_deref().is_none_or(|method| call.method.as_str().eq_ignore_ascii_case(method))
            && self.path.as_deref().is_none_or(|prefix| call.path.starts_with(prefix))
            && same(&self.operation, call.operation.as_deref())
            && same(&self.machine, call.arguments.first().map(String::as_str))
            && same(&self.user, user)
    }
}

impl World {
    /// The fault, if what it is about exists. It names machines by system id, since host names change.
    pub fn aimed(&self, mut fault: Fault) -> Result<Fault, UnknownTarget> {
        let machine = |name: &str| {
            let with = |wanted: fn(&Machine) -> &String| self.all_machines().find(|machine| wanted(machine) == name);
            let found = with(|machine| &machine.system_id).or_else(|| with(|machine| &machine.hostname));
            found.map(|machine| machine.system_id.clone()).ok_or_else(|| UnknownTarget::Machine(name.to_owned()))
        };
        let user = |name: &str| self.user_named(name).map(drop).ok_or_else(|| UnknownTarget::User(name.to_owned()));
        match &mut fault {
            Fault::Call(CallFault { matching, harm, .. }) => {
                if let CallHarm::Slow { seconds } | CallHarm::LateCommit { seconds } = harm {
                    possible(*seconds)?;
                }
                if let Some(name) = matching.method.as_ref().filter(|name| !is_method(name)) {
                    return Err(UnknownTarget::Method(name.clone()));
                }
                if let Some(path) = matching.path.as_ref().filter(|path| !crate::operations().any(|(known, ..)| begins(known, path))) {
                    return Err(UnknownTarget::Path(path.clone()));
                }
                if let Some(name) = &mut matching.machine {
                    *name = machine(name)?;
                }
                matching.user.as_deref().map_or(Ok(()), user)?;
                if let Some(name) = &matching.operation
                    && !crate::operations().any(|(_, _, operation)| operation == Some(name))
                {
                    return Err(UnknownTarget::Operation(name.clone()));
                }
            }
            Fault::Machine(MachineFault { machine: name, .. }) => {
                if let Some(name) = name {
                    *name = machine(name)?;
                }
            }
            Fault::Incident(incident) => {
                possible(incident.after_seconds)?;
                incident.machine = machine(&incident.machine)?;
                if let Happening::DeployedBy(name) = &incident.what {
                    user(name)?;
                }
            }
            Fault::ExhaustedAddresses { subnet } => {
                if !self.subnets.values().any(|known| known.cidr == *subnet) {
                    return Err(UnknownTarget::Subnet(*subnet));
                }
            }
            Fault::FullStorage { vm_host } => {
                if !self.vm_hosts.values().any(|host| host.name == *vm_host) {
                    return Err(UnknownTarget::VmHost(vm_host.clone()));
                }
            }
            Fault::NoRack => {}
        }
        Ok(fault)
    }

    /// Lets something go wrong from now on.
    pub fn inject(&mut self, fault: Fault) {
        if let Some(incident) = self.faults.add(fault) {
            let at = later(self.now, seconds(incident.after_seconds));
            self.schedule.add(at, Due::Incident(incident));
        }
    }

    /// The fault of a machine by row.
    pub fn strike<T>(&mut self, machine: Id<Machine>, pick: impl Fn(&MachineHarm) -> Option<T>) -> Option<T> {
        let row = self.machines.get(machine)?;
        self.faults.strike_machine(&row.system_id, pick)
    }

    /// What the BMC says instead of obeying, if it does.
    pub fn bmc_error(&mut self, machine: Id<Machine>) -> Option<String> {
        self.strike(machine, |harm| match harm {
            MachineHarm::BmcError(words) => Some(words.clone()),
            _ => None,
        })
    }
}

/// A status that can end a call.
fn final_status<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    let status = u16::deserialize(deserializer)?;
    if (200..=599).contains(&status) {
        Ok(status)
    } else {
        Err(serde::de::Error::custom(format!("{status} is not a status from 200 to 599")))
    }
}

/// Refuses what is no time to come.
fn possible(seconds: f64) -> Result<(), UnknownTarget> {
    if is_time(seconds) { Ok(()) } else { Err(UnknownTarget::Seconds(seconds)) }
}

/// Whether a number of seconds can pass.
pub fn is_time(seconds: f64) -> bool {
    Duration::try_from_secs_f64(seconds).is_ok()
}

fn is_method(name: &str) -> bool {
    ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"].iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether a path of this pattern may begin so.
fn begins(pattern: &str, beginning: &str) -> bool {
    // A subnet may be named by its CIDR, which has a slash of its own.
    if pattern == "subnets/{}/" && beginning.starts_with("subnets/") {
        return true;
    }
    let mut known = pattern.split('/');
    let mut given = beginning.split('/').peekable();
    while let Some(part) = given.next() {
        let Some(known) = known.next() else { return false };
        let fits = if given.peek().is_some() { known == part } else { known.starts_with(part) };
        let named = known == "{}" && !part.is_empty();
        if !fits && !named {
            return false;
        }
    }
    true
}

/// Seconds as a duration; nonsense, which [`World::aimed`] lets nobody bring in, counts as none.
pub fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
}
