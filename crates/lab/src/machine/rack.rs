//! All machines of a lab and their power switches.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write as _,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    process::{Child, Command},
    sync::watch,
    time::{Instant, timeout, timeout_at},
};

use super::{
    DiskSpace, MachineFile, MachineImage, Wiring,
    power::{Next, Power, Slot},
};
use crate::{
    LabDirectory, LabError, MachineState, MachineStatus,
    control_groups::ControlGroup,
    init::{boot::report::BootReport, layout::Layout},
    names::{self, Names},
    network::{self, Place},
    process::MARK,
};

/// How long a machine may take to stop its services before its power is cut.
const ORDERLY_STOP: Duration = Duration::from_secs(20);
/// How long a machine may take to be gone once its power is cut.
const GONE_WITHIN: Duration = Duration::from_secs(30);
/// How long `unshare` may take to end after the machine's first process has.
const BURIED_WITHIN: Duration = Duration::from_secs(5);

/// The machines of one lab.
pub(crate) struct Rack {
    directory: LabDirectory,
    executable: PathBuf,
    image: MachineImage,
    pub(super) disks: DiskSpace,
    names: Arc<Names>,
    machines: Mutex<BTreeMap<String, Slot>>,
}

impl Rack {
    pub fn new(directory: &LabDirectory, executable: &Path, image: MachineImage, disks: DiskSpace, names: Arc<Names>) -> Self {
        Self { directory: directory.clone(), executable: executable.to_owned(), image, disks, names, machines: Mutex::default() }
    }

    /// Puts a machine into the rack, without power and with an empty disk. Nothing happens when it is there already.
    pub fn add(&self, name: &str, tag: Option<String>) -> Result<(), LabError> {
        if !is_host_name(name) {
            return Err(LabError::MachineState {
                machine: name.to_owned(),
                reason: "has no name a host can have: use up to 40 lower-case letters, digits and dashes".to_owned(),
            });
        }
        if names::is_of_the_lab(name) {
            return Err(LabError::MachineState {
                machine: name.to_owned(),
                reason: "cannot be called so, because a part of the lab itself has that name: choose another".to_owned(),
            });
        }
        let place = {
            let mut machines = self.lock();
            if machines.contains_key(name) {
                return Ok(());
            }
            let taken: Vec<u16> = machines.values().map(|slot| slot.place.0).collect();
            let free = (0..network::MOST_MACHINES).find(|number| !taken.contains(number));
            let place = Place(free.ok_or_else(|| LabError::MachineState {
                machine: name.to_owned(),
                reason: format!("is one too many: the networks of a lab have room for {} machines", network::MOST_MACHINES),
            })?);
            let wiring = Wiring::of_place(name, place);
            machines.insert(name.to_owned(), Slot::new(place, tag, wiring));
            place
        };
        let files = self.files(name);
        fs::create_dir_all(&files).map_err(LabError::io("create", &files))?;
        self.name(name, &[place.address()])
    }

    /// Takes a machine out of the rack, disk and all.
    pub async fn remove(&self, name: &str) -> Result<(), LabError> {
        self.power_off(name, false).await?;
        self.disks.wipe(name)?;
        self.lock().remove(name);
        let _ = fs::remove_dir_all(self.files(name));
        self.name(name, &[])
    }

    /// Gives power. With a user-data the machine boots as a new instance on the disk it has; without one it boots what it has, or
    /// what it always begins with if its disk is memory.
    pub fn power_on(self: &Arc<Self>, name: &str, user_data: Option<&[u8]>) -> Result<(), LabError> {
        let (place, wiring) = self.known(name)?;
        if self.is_on(name) {
            return Err(LabError::MachineState { machine: name.to_owned(), reason: "has power already".to_owned() });
        }
        let in_memory = self.lock().get(name).and_then(|slot| slot.in_memory.clone());
        let user_data = user_data.or(in_memory.as_ref().map(|installation| installation.user_data.as_slice()));
        let disk = self.disks.format(name)?;
        MachineImage::write_machine_files(&disk.join("upper"), &wiring, place, user_data)?;
        let file = self.files(name).join("machine.json");
        let content = MachineFile {
            lab_group: self.directory.control_group(),
            name: name.to_owned(),
            hostname: wiring.hostname.clone(),
            image: self.image.layer().to_owned(),
            disk,
            shown: self.image.shown().to_vec(),
        };
        let json =
            serde_json::to_vec_pretty(&content).map_err(|error| LabError::Manifest { path: file.clone(), reason: error.to_string() })?;
        fs::write(&file, json).map_err(LabError::io("write", &file))?;
        self.boot(name, &file)
    }

    pub(super) fn boot(self: &Arc<Self>, name: &str, file: &Path) -> Result<(), LabError> {
        let (place, wiring) = self.known(name)?;
        let console = self.console(name);
        let mut log = File::options().append(true).create(true).open(&console).map_err(LabError::io("open", &console))?;
        let _ = writeln!(log, "---- power on {} ----", Timestamp::now().strftime("%Y-%m-%d %H:%M:%S"));
        // The report of the boot before must not be taken for the one of this boot.
        BootReport::forget(&self.root_of_changes(name));
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(&self.executable)
            .args(["lab", "machine-start"])
            .arg(file)
            .env(MARK, self.directory.path())
            .stdin(Stdio::piped())
            .stdout(log.try_clone().map_err(LabError::io("open", &console))?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(LabError::io("start machine", name))?;
        let process = child.id().unwrap_or_default();
        if let Err(error) = network::plug_in(place, &wiring, process) {
            let _ = child.start_kill();
            network::unplug(place, &wiring);
            return Err(error);
        }
        // Closing its input tells the machine that its network is there.
        drop(child.stdin.take());
        let (ended, off) = watch::channel(false);
        if let Some(slot) = self.lock().get_mut(name) {
            slot.turned_on(process, off);
        }
        let rack = Arc::clone(self);
        let (name, file) = (name.to_owned(), file.to_owned());
        tokio::spawn(async move { rack.watch(name, (place, wiring), file, child, ended).await });
        Ok(())
    }

    /// Waits for the end of a machine's power.
    async fn watch(
        self: Arc<Self>,
        name: String,
        (place, wiring): (Place, Wiring),
        file: PathBuf,
        mut child: Child,
        ended: watch::Sender<bool>,
    ) {
        let status = child.wait().await;
        network::unplug(place, &wiring);
        let group = ControlGroup::of(&self.directory.control_group(), &name);
        let deadline = Instant::now() + GONE_WITHIN;
        // Killed processes count in their group until the kernel has buried them. What was run on the machine from outside (`lab exec`)
        // may have been stopped, and ends only so.
        while group.as_ref().is_ok_and(|group| group.remove().is_err()) && Instant::now() < deadline {
            if let Ok(group) = &group {
                group.kill_processes();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // From here to the end nothing is waited for, so nobody sees a machine off that is about to boot again.
        let next = self.lock().get_mut(&name).map_or(Next::StayOff, |slot| slot.ended(&status));
        if let Err(error) = self.after_power(&name, &file, next) {
            tracing::warn!(machine = name, %error, "the machine did not come back from its reboot");
            if let Some(slot) = self.lock().get_mut(&name) {
                slot.death = Some(format!("a reboot that failed: {error}"));
            }
        }
        let _ = ended.send(true);
    }

    /// Takes power away, after its services have stopped or at once, and waits until it is gone. Whoever goes on without waiting for
    /// anything else finds the machine off.
    pub async fn power_off(&self, name: &str, orderly: bool) -> Result<(), LabError> {
        self.known(name)?;
        let deadline = Instant::now() + GONE_WITHIN + if orderly { ORDERLY_STOP } else { Duration::ZERO };
        let mut orderly = orderly;
        // Who waits wakes up later than it is called: somebody else may have given power in between.
        while let Some((process, off)) = self.cut(name) {
            if Instant::now() > deadline {
                return Err(LabError::MachineState {
                    machine: name.to_owned(),
                    reason: format!("still runs {} s after its power was cut", GONE_WITHIN.as_secs()),
                });
            }
            end(process, off, orderly, deadline).await;
            orderly = false;
        }
        Ok(())
    }

    fn cut(&self, name: &str) -> Option<(u32, watch::Receiver<bool>)> {
        self.lock().get_mut(name).and_then(Slot::cut)
    }

    /// Empties the disk of a machine without power.
    pub fn wipe(&self, name: &str) -> Result<(), LabError> {
        self.known(name)?;
        if self.is_on(name) {
            return Err(LabError::MachineState {
                machine: name.to_owned(),
                reason: "has power: cut it before its disk is wiped".to_owned(),
            });
        }
        self.disks.wipe(name)
    }

    /// Cuts the power of all machines.
    pub async fn stop(&self) {
        let names: Vec<String> = self.lock().keys().cloned().collect();
        for name in names {
            if let Err(error) = self.power_off(&name, false).await {
                tracing::warn!(machine = name, %error, "the machine did not stop");
            }
        }
    }

    pub fn statuses(&self) -> Vec<MachineStatus> {
        let machines = self.lock();
        machines.iter().map(|(name, slot)| self.status(name, slot)).collect()
    }

    pub(super) fn status(&self, name: &str, slot: &Slot) -> MachineStatus {
        let (state, detail) = self.state(name, slot);
        let process_id = match &slot.power {
            Power::Off => None,
            Power::On { process, .. } => first_process(*process).and_then(|init| u32::try_from(init.as_raw_nonzero().get()).ok()),
        };
        MachineStatus {
            name: name.to_owned(),
            state,
            tag: slot.tag.clone(),
            address: slot.wiring.addresses().first().copied().unwrap_or_else(|| slot.place.address()),
            process_id,
            memory_bytes: ControlGroup::of(&self.directory.control_group(), name).ok().and_then(|group| group.resident_memory()),
            since: slot.since,
            detail,
        }
    }

    /// Its state, with the words of a failed boot or of its death.
    pub(super) fn state(&self, name: &str, slot: &Slot) -> (MachineState, Option<String>) {
        if matches!(slot.power, Power::Off) {
            return (MachineState::Off, slot.death.clone());
        }
        match BootReport::read(&self.root_of_changes(name)) {
            None => (MachineState::Booting, None),
            Some(report) if report.succeeded => (MachineState::Running, None),
            Some(report) => (MachineState::Failed, Some(report.errors.join("; "))),
        }
    }

    /// Everything the machine has printed.
    pub fn console(&self, name: &str) -> PathBuf {
        self.directory.logs().join(format!("{name}.log"))
    }

    fn files(&self, name: &str) -> PathBuf {
        self.directory.machines().join(name)
    }

    /// Where the machine's own files appear to the lab: what it wrote lies over the image and the host's root.
    fn root_of_changes(&self, name: &str) -> Layout {
        Layout::at(self.disks.of_machine(name).join("upper"))
    }

    /// A machine is known by its name and in the lab's domain.
    pub(super) fn name(&self, name: &str, addresses: &[Ipv4Addr]) -> Result<(), LabError> {
        self.names.set(name, addresses)?;
        self.names.set(&format!("{name}.lab"), addresses)
    }

    pub(super) fn known(&self, name: &str) -> Result<(Place, Wiring), LabError> {
        let machines = self.lock();
        machines.get(name).map(|slot| (slot.place, slot.wiring.clone())).ok_or_else(|| LabError::UnknownMachine {
            lab: self.directory.name().to_string(),
            machine: name.to_owned(),
            known: if machines.is_empty() { "none".to_owned() } else { machines.keys().cloned().collect::<Vec<_>>().join(", ") },
        })
    }

    fn is_on(&self, name: &str) -> bool {
        matches!(self.lock().get(name), Some(Slot { power: Power::On { .. }, .. }))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Slot>> {
        self.machines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the processes of a machine and waits until its power is gone, or until the deadline.
async fn end(process: u32, mut off: watch::Receiver<bool>, orderly: bool, deadline: Instant) {
    if orderly {
        if let Some(init) = first_process(process) {
            let _ = kill_process(init, Signal::TERM);
        }
        if timeout(ORDERLY_STOP, off.wait_for(|off| *off)).await.is_ok() {
            return;
        }
    }
    let unshare = || i32::try_from(process).ok().and_then(Pid::from_raw).filter(|_| is_own_child(process));
    // The first process takes everything on the machine with it. `unshare` is left to bury it: its orphans would be ours, and we bury
    // only whom we have started.
    if let Some(victim) = first_process(process).or_else(unshare) {
        let _ = kill_process(victim, Signal::KILL);
    }
    if timeout(BURIED_WITHIN, off.wait_for(|off| *off)).await.is_ok() {
        return;
    }
    for victim in first_process(process).into_iter().chain(unshare()) {
        let _ = kill_process(victim, Signal::KILL);
    }
    let _ = timeout_at(deadline, off.wait_for(|off| *off)).await;
}

/// Whether the process lives and is our child: after its end its number may be somebody else's.
fn is_own_child(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    parent.is_some_and(|parent| parent.trim() == std::process::id().to_string())
}

/// The first process of the machine that `unshare` runs; none until it has come so far.
fn first_process(unshare: u32) -> Option<Pid> {
    let children = fs::read_to_string(format!("/proc/{unshare}/task/{unshare}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok().and_then(Pid::from_raw)
}

fn is_host_name(name: &str) -> bool {
    let plain = name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-');
    plain && (1..=40).contains(&name.len()) && !name.starts_with('-') && !name.ends_with('-')
}
