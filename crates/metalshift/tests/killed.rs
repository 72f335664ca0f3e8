//! Whatever moment a lab's supervisor is killed at: the next `up` works, and after `down` the host is as it was.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

#[path = "../../lab/tests/waiting/mod.rs"]
mod waiting;

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use lab::{Lab, LabDirectory, Level, Options};
use tokio::sync::RwLock;
use waiting::{is_root, until};

/// The host is compared with itself. Labs of levels api and capi change nothing that they do not name; those of level nodes make
/// namespaces, which have no names, so that test must be alone.
static HOST: RwLock<()> = RwLock::const_new(());

#[tokio::test]
async fn a_killed_lab_of_level_api_leaves_nothing() {
    let _beside = HOST.read().await;
    kill_at_many_moments("api", 10, &Person::Ourselves);
}

#[tokio::test]
async fn a_killed_lab_of_level_capi_leaves_nothing() {
    let _beside = HOST.read().await;
    kill_at_many_moments("capi", 10, &Person::Ourselves);
}

#[tokio::test]
async fn a_killed_lab_of_a_person_without_rights_leaves_nothing() {
    if !is_root("only root can become somebody else") {
        return;
    }
    let _beside = HOST.read().await;
    let labs = tempfile::tempdir().unwrap();
    fs::set_permissions(labs.path(), fs::Permissions::from_mode(0o777)).unwrap();
    kill_at_many_moments("api", 4, &Person::Nobody { labs: labs.path() });
}

#[tokio::test]
async fn a_killed_lab_of_level_nodes_leaves_nothing() {
    if !is_root("level nodes needs root") {
        return;
    }
    let _alone = HOST.write().await;
    // METALSHIFT_KILLS=20 is the thorough run.
    let kills = std::env::var("METALSHIFT_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    kill_at_many_moments("nodes", kills, &Person::Ourselves);
}

#[tokio::test]
async fn a_lab_whose_holder_is_killed_makes_way_for_the_next_of_its_name() {
    let _beside = HOST.read().await;
    let name = format!("held-{}", std::process::id());
    let lab = KilledLab::new(name, "api", &Person::Ourselves);
    let before = Host::now(&lab.name, &lab.directory);
    // On its way up, and when it is up.
    for wanted in ["logs/etcd.log", "kubeconfig"] {
        let mut holder = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_process_that_holds_a_lab", "--ignored", "--nocapture"])
            .env("METALSHIFT_HELD_LAB", &lab.name)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        until("the lab is that far", Duration::from_mins(2), async || lab.directory.join(wanted).exists()).await;
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert!(lab.up(), "the next lab did not come up ({wanted})");
        let janitor = |process: &u32| {
            let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).into_owned();
            words.contains("metalshift-lab-janitor") && words.contains(&lab.name)
        };
        until("nobody cleans up after the killed one any more", Duration::from_mins(1), async || !processes().iter().any(janitor)).await;
        assert!(lab.metalshift(&["status"]), "who cleaned up after the killed lab removed the next one ({wanted})");
        assert!(lab.metalshift(&["down"]));
        before.assert_unchanged(&format!("its holder killed at {wanted}"));
    }
}

/// No test of its own: the process that the one above kills.
#[tokio::test]
#[ignore = "is started and killed by another test"]
async fn a_process_that_holds_a_lab() {
    let Ok(name) = std::env::var("METALSHIFT_HELD_LAB") else { return };
    let _lab = Lab::up(Options { name: name.parse().unwrap(), ..Options::new(Level::Api) }).await.unwrap();
    tokio::time::sleep(Duration::from_mins(5)).await;
}

/// Whose lab is killed.
enum Person<'a> {
    Ourselves,
    /// A user who may do nothing, with a directory for labs.
    Nobody {
        labs: &'a Path,
    },
}

impl Person<'_> {
    fn directory(&self, name: &str) -> PathBuf {
        match self {
            Self::Ourselves => LabDirectory::of(&name.parse().unwrap()).path(),
            Self::Nobody { labs } => labs.join(name),
        }
    }

    fn command(&self) -> Command {
        let program = env!("CARGO_BIN_EXE_metalshift");
        match self {
            Self::Ourselves => Command::new(program),
            Self::Nobody { labs } => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--", program]).env("METALSHIFT_LABS", labs);
                command
            }
        }
    }
}

fn kill_at_many_moments(level: &str, kills: u32, person: &Person<'_>) {
    // The same test may run beside this one, from another clone.
    let name = match person {
        Person::Ourselves => format!("killed-{level}-{}", std::process::id()),
        Person::Nobody { .. } => format!("nobodys-{level}-{}", std::process::id()),
    };
    let lab = KilledLab::new(name, level, person);
    let seed = std::env::var("METALSHIFT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    eprintln!("level {level}: {kills} moments of seed {seed} (METALSHIFT_SEED chooses another)");
    let before = Host::now(&lab.name, &lab.directory);
    let start = Instant::now();
    assert!(lab.up(), "a first lab of level {level} did not come up");
    let way_up = start.elapsed();
    let start = Instant::now();
    assert!(lab.metalshift(&["down"]));
    let way_down = start.elapsed();
    before.assert_unchanged("after an orderly end");
    for number in 0..kills {
        // A quarter of the moments lie in the way down, the others in the way up; each way is cut into equal parts with a moment in each.
        let (part, parts) = if number % 4 == 3 { (number / 4, kills / 4) } else { (number - number / 4, kills - kills / 4) };
        let share = |way: Duration| way.mul_f64((f64::from(part) + fraction(seed, number)) / f64::from(parts));
        let moment = if number % 4 == 3 {
            lab.kill_on_the_way_down(share(way_down));
            format!("{:?} into its way down", share(way_down))
        } else {
            lab.kill_on_the_way_up(share(way_up));
            format!("{:?} into its way up", share(way_up))
        };
        assert!(lab.up(), "the lab did not come up after it was killed {moment}");
        assert!(lab.metalshift(&["down"]), "the lab did not go down after it was killed {moment}");
        before.assert_unchanged(&format!("killed {moment}"));
    }
}

/// A number between 0 and 1 that depends on nothing but its arguments.
fn fraction(seed: u32, number: u32) -> f64 {
    let mixed = (seed ^ number.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x85eb_ca6b);
    f64::from((mixed ^ (mixed >> 15)) % 1000) / 1000.0
}

struct KilledLab<'a> {
    name: String,
    level: &'a str,
    person: &'a Person<'a>,
    directory: PathBuf,
    /// What all its processes have in their environment.
    mark: String,
}

impl<'a> KilledLab<'a> {
    fn new(name: String, level: &'a str, person: &'a Person<'a>) -> Self {
        let directory = person.directory(&name);
        Self { mark: format!("METALSHIFT_LAB={}", directory.display()), name, level, person, directory }
    }

    fn up(&self) -> bool {
        self.metalshift(&self.words_of_up())
    }

    /// One machine is as good as many to be left behind.
    fn words_of_up(&self) -> [&str; 5] {
        ["up", "--level", self.level, "--workers", "0"]
    }

    fn metalshift(&self, words: &[&str]) -> bool {
        let output = self.command(words).output().unwrap();
        if !output.status.success() {
            eprintln!("lab {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        output.status.success()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.person.command();
        command.arg("lab").arg(words[0]).args(["--name", &self.name]).args(&words[1..]);
        command
    }

    fn kill_on_the_way_up(&self, moment: Duration) {
        let mut up = self.command(&self.words_of_up()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // The moment itself is what is tried here.
        std::thread::sleep(moment);
        let killed = self.kill_supervisor();
        let _ = up.wait();
        // One that was not there yet is killed when it is up.
        let killed_later = self.kill_supervisor();
        assert!(killed || killed_later, "there was nobody to kill {moment:?} into its way up");
    }

    /// A moment that came too late is tried again earlier.
    fn kill_on_the_way_down(&self, mut moment: Duration) {
        loop {
            assert!(self.up());
            let mut down = self.command(&["down"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(moment);
            let killed = self.kill_supervisor();
            let _ = down.wait();
            if killed {
                return;
            }
            assert!(!moment.is_zero(), "there is nobody to kill on its way down");
            moment = if moment < Duration::from_millis(20) { Duration::ZERO } else { moment / 2 };
        }
    }

    /// Kills the process that owns the lab, as a person or the kernel short of memory would. Says whether there was one.
    fn kill_supervisor(&self) -> bool {
        let mut killed = false;
        for process in processes() {
            let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            let ours = environment.split(|byte| *byte == 0).any(|variable| variable == self.mark.as_bytes());
            let first_word = words.split(|byte| *byte == 0).next().unwrap_or_default();
            if ours && first_word.ends_with(b"metalshift") && words.windows(9).any(|window| window == b"supervise") {
                killed |= Command::new("kill").args(["-9", &process.to_string()]).stderr(Stdio::null()).status().unwrap().success();
            }
        }
        killed
    }
}

/// What of the host a lab could change, a line each.
struct Host {
    lab: String,
    directory: PathBuf,
    facts: BTreeSet<String>,
}

impl Host {
    /// Fails with what there is now that was not there before.
    fn assert_unchanged(&self, when: &str) {
        // A killed process is gone as soon as its parent has heard of it, which nobody can wait for by name.
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let now = Self::now(&self.lab, &self.directory);
            let added: Vec<&String> = now.facts.difference(&self.facts).collect();
            if added.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "{when}, the lab left:\n{added:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn now(lab: &str, directory: &Path) -> Self {
        let marked = |process: &u32| {
            let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            environment.windows(15).any(|window| window == b"METALSHIFT_LAB=")
                && environment.windows(lab.len()).any(|window| window == lab.as_bytes())
        };
        let describe = |process: u32| {
            let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            format!("process {process} {}", String::from_utf8_lossy(&words).replace('\0', " "))
        };
        let namespaces = |process: u32| {
            let kinds = ["net", "mnt", "pid", "cgroup", "uts"];
            kinds.map(|kind| fs::read_link(format!("/proc/{process}/ns/{kind}")).ok()).into_iter().flatten()
        };
        let links = Command::new("ip").args(["-o", "link"]).output().map(|output| output.stdout).unwrap_or_default();
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let facts = processes().into_iter().filter(marked).map(describe);
        let facts = facts.chain(processes().into_iter().flat_map(namespaces).map(|namespace| format!("namespace {}", namespace.display())));
        let facts = facts.chain(mounts.lines().map(|line| format!("mount {line}")));
        let facts = facts.chain(String::from_utf8_lossy(&links).lines().map(|line| format!("link {line}")).collect::<Vec<_>>());
        // Labs of other tests come and go beside this one.
        let ours = |group: &PathBuf| !group.to_string_lossy().contains("/metalshift-") || group.to_string_lossy().contains(lab);
        let groups = directories(Path::new("/sys/fs/cgroup")).into_iter().filter(ours);
        let facts = facts.chain(groups.map(|group| format!("control group {}", group.display())));
        // Its directory and its locks lie side by side.
        let files = entries(directory.parent().unwrap()).filter(|path| path.file_stem() == directory.file_stem());
        // What programs make on the host that nobody told where to keep things.
        let usual = ["/opt", "/usr/libexec", "/etc/cni", "/etc/kubernetes", "/run/containerd", "/var/lib/cni", "/var/lib/kubelet"];
        let usual =
            usual.into_iter().flat_map(|place| [PathBuf::from(place)].into_iter().filter(|path| path.exists()).chain(entries(place)));
        let facts = facts.chain(files.chain(usual).map(|path| format!("file {}", path.display())));
        Self { lab: lab.to_owned(), directory: directory.to_owned(), facts: facts.collect() }
    }
}

fn processes() -> Vec<u32> {
    fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn entries(directory: impl AsRef<Path>) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn directories(root: &Path) -> BTreeSet<PathBuf> {
    let below = fs::read_dir(root).into_iter().flatten().flatten();
    let below = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).flat_map(|entry| directories(&entry.path()));
    below.chain([root.to_owned()]).collect()
}
