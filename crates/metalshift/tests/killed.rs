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
    sync::Mutex,
    time::{Duration, Instant},
};

use lab::{Lab, LabDirectory, Level, Options};
use tokio::sync::RwLock;
use waiting::{is_root, until};

/// The host is compared with itself. Labs of levels api and capi change nothing that they do not name; those of level nodes make
/// namespaces and mounts, which do not say whose they are, so that test must be alone.
static HOST: RwLock<()> = RwLock::const_new(());

#[tokio::test]
async fn a_killed_lab_of_level_api_leaves_nothing() {
    let _beside = HOST.read().await;
    kill_at_many_moments("api", kills_or(20), &Person::Ourselves);
}

#[tokio::test]
async fn a_killed_lab_of_level_capi_leaves_nothing() {
    let _beside = HOST.read().await;
    kill_at_many_moments("capi", kills_or(20), &Person::Ourselves);
}

#[tokio::test]
async fn a_killed_lab_of_a_person_without_rights_leaves_nothing() {
    if !is_root("only root can become somebody else") {
        return;
    }
    let _beside = HOST.read().await;
    let labs = tempfile::tempdir().unwrap();
    fs::set_permissions(labs.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // One on the way up and one on the way down: the moments themselves are tried above.
    for level in ["api", "capi"] {
        kill_at_many_moments(level, 2, &Person::Nobody { labs: labs.path() });
    }
}

#[tokio::test]
async fn a_killed_lab_of_level_nodes_leaves_nothing() {
    if !is_root("level nodes needs root") {
        return;
    }
    let _alone = HOST.write().await;
    kill_at_many_moments("nodes", kills_or(4), &Person::Ourselves);
}

/// How often a lab is killed; `METALSHIFT_KILLS=20` is the thorough run.
fn kills_or(usual: u32) -> u32 {
    std::env::var("METALSHIFT_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

#[tokio::test]
async fn a_lab_whose_lab_up_is_killed_makes_way_for_the_next() {
    let _beside = HOST.read().await;
    let lab = KilledLab::new(format!("begun-{}", std::process::id()), "api", &Person::Ourselves);
    let before = Host::now(&lab.name, &lab.directory, lab.level);
    // Its locks are taken, its supervisor starts, its components start, it is about to say that it is up.
    for wanted in ["../begun", "logs/supervisor.log", "logs/kube-apiserver.log", "kubeconfig"] {
        let wanted = if wanted == "../begun" { lab.directory.with_extension("metalshift-starting") } else { lab.directory.join(wanted) };
        let mut up = lab.command(&lab.words_of_up()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("the lab is that far", Duration::from_mins(2), async || wanted.exists()).await;
        up.kill().unwrap();
        up.wait().unwrap();
        // One that has heard that its lab is up leaves it there.
        assert!(!lab.metalshift(&["status"]) || lab.metalshift(&["down"]));
        let up_again = lab.up();
        assert!(lab.metalshift(&["down"]));
        assert!(up_again, "the next lab did not come up after its `lab up` was killed at {}", wanted.display());
        before.assert_unchanged(&format!("its `lab up` killed at {}", wanted.display()));
    }
}

#[tokio::test]
async fn a_lab_whose_holder_is_killed_makes_way_for_the_next_of_its_name() {
    let _beside = HOST.read().await;
    let name = format!("held-{}", std::process::id());
    let lab = KilledLab::new(name, "api", &Person::Ourselves);
    let before = Host::now(&lab.name, &lab.directory, lab.level);
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
    let seed = std::env::var("METALSHIFT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    eprintln!("level {level}: {kills} moments of seed {seed} (METALSHIFT_SEED chooses another)");
    let moments = moments(kills, seed);
    // Up to one in the way down, which the lab that has come up after the one before it serves.
    let runs: Vec<&[Moment]> = moments.split_inclusive(|moment| moment.way == Way::Down).collect();
    // Managers of Cluster API wait for each other half of the time they take, so two such labs take hardly longer than one.
    let side_by_side = runs.len().min(if level == "capi" { 2 } else { 1 });
    let runs = Mutex::new(runs.into_iter());
    std::thread::scope(|scope| {
        for number in 1..=side_by_side {
            // The same test may run beside this one, from another clone.
            let name = match person {
                Person::Ourselves => format!("kill{number}-{level}-{}", std::process::id()),
                Person::Nobody { .. } => format!("nobody{number}-{level}-{}", std::process::id()),
            };
            let next_run = || runs.lock().unwrap().next();
            scope.spawn(move || kill_one_lab(&KilledLab::new(name, level, person), next_run));
        }
    });
}

fn kill_one_lab<'m>(lab: &KilledLab<'_>, mut next_run: impl FnMut() -> Option<&'m [Moment]>) {
    let before = Host::now(&lab.name, &lab.directory, lab.level);
    let start = Instant::now();
    assert!(lab.up(), "a first lab of level {} did not come up", lab.level);
    let way_up = start.elapsed();
    let start = Instant::now();
    assert!(lab.metalshift(&["down"]));
    let way_down = start.elapsed();
    before.assert_unchanged("after an orderly end");
    while let Some(run) = next_run() {
        // Since the host was looked at; not empty means that the lab is up.
        let mut killed = Vec::new();
        for moment in run {
            let (way, after) = match moment.way {
                Way::Up => (way_up, way_up.mul_f64(moment.share)),
                Way::Down => (way_down, way_down.mul_f64(moment.share)),
            };
            let moment_in_words = format!("{after:?} into its way {:?} of {way:?}", moment.way).to_lowercase();
            match moment.way {
                Way::Up => {
                    if !killed.is_empty() {
                        lab.down_without_a_trace(&before, &std::mem::take(&mut killed));
                    }
                    lab.kill_on_the_way_up(after);
                }
                Way::Down => {
                    assert!(!killed.is_empty() || lab.up());
                    lab.kill_on_the_way_down(after);
                }
            }
            assert!(lab.up(), "the lab did not come up after it was killed {moment_in_words}");
            killed.push(moment_in_words);
        }
        lab.down_without_a_trace(&before, &killed);
    }
}

/// When a supervisor is killed.
struct Moment {
    way: Way,
    /// How much of the way it has gone then.
    share: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

/// A quarter of the moments lie in the way down, the others in the way up; each way is cut into equal parts with a moment in each. Of a few
/// moments the last one is in the way down.
fn moments(kills: u32, seed: u32) -> Vec<Moment> {
    let moment = |number: u32| {
        let way = if number % 4 == 3 || (kills < 4 && number + 1 == kills) { Way::Down } else { Way::Up };
        let downs = (kills / 4).max(1);
        let (part, parts) = if way == Way::Down { (number / 4, downs) } else { (number - number / 4, kills - downs) };
        Moment { way, share: (f64::from(part) + fraction(seed, number)) / f64::from(parts) }
    };
    (0..kills).map(moment).collect()
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
        ["up", "--level", self.level, "--workers", if self.level == "nodes" { "1" } else { "0" }]
    }

    /// After it was killed at these moments, one after the other.
    fn down_without_a_trace(&self, before: &Host, killed: &[String]) {
        let killed = killed.join(", and then ");
        assert!(self.metalshift(&["down"]), "the lab did not go down after it was killed {killed}");
        before.assert_unchanged(&format!("killed {killed}"));
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

    /// The lab is up. A moment that came too late is tried again earlier.
    fn kill_on_the_way_down(&self, mut moment: Duration) {
        loop {
            let mut down = self.command(&["down"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(moment);
            let killed = self.kill_supervisor();
            let _ = down.wait();
            if killed {
                return;
            }
            assert!(!moment.is_zero(), "there is nobody to kill on its way down");
            moment = if moment < Duration::from_millis(20) { Duration::ZERO } else { moment / 2 };
            assert!(self.up());
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
    level: String,
    facts: BTreeSet<String>,
}

impl Host {
    /// Fails with what there is now that was not there before, and with what of the host is gone.
    fn assert_unchanged(&self, when: &str) {
        // A killed process is gone as soon as its parent has heard of it, which nobody can wait for by name.
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let now = Self::now(&self.lab, &self.directory, &self.level);
            let added: Vec<&String> = now.facts.difference(&self.facts).collect();
            // Processes of others come and go, and their namespaces with them.
            let stays = |fact: &&String| !fact.starts_with("process ") && !fact.starts_with("namespace ");
            let gone: Vec<&String> = self.facts.difference(&now.facts).filter(stays).collect();
            if added.is_empty() && gone.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "{when}, the lab left:\n{added:#?}\nand took:\n{gone:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn now(lab: &str, directory: &Path, level: &str) -> Self {
        // Only labs of this level make namespaces; of another one they are somebody else's, who may begin and stay beside it.
        let makes_namespaces = level == "nodes";
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
        let all = processes().into_iter().filter(|_| makes_namespaces);
        let facts = facts.chain(all.flat_map(namespaces).map(|namespace| format!("namespace {}", namespace.display())));
        let of_the_lab = |line: &&str| makes_namespaces || line.contains(lab);
        let facts = facts.chain(mounts.lines().filter(of_the_lab).map(|line| format!("mount {line}")));
        let facts = facts.chain(String::from_utf8_lossy(&links).lines().map(|line| format!("link {line}")).collect::<Vec<_>>());
        // Labs of other tests come and go beside this one, and so does what other programs of the host have below groups of theirs.
        let root = Path::new("/sys/fs/cgroup");
        let top = if root.join("cgroup.procs").exists() { 1 } else { 2 };
        let is_at_the_top = |group: &Path| group.strip_prefix(root).is_ok_and(|below| below.components().count() <= top);
        let is_of_another_lab = |name: &str| name.contains("/metalshift-") && !name.contains(lab);
        let ours = |group: &PathBuf| {
            let name = group.to_string_lossy();
            name.contains(lab) || (is_at_the_top(group) && !is_of_another_lab(&name))
        };
        let groups = directories(root).into_iter().filter(ours);
        let facts = facts.chain(groups.map(|group| format!("control group {}", group.display())));
        let handed_down = ["/sys/fs/cgroup/cgroup.subtree_control", "/sys/fs/cgroup/unified/cgroup.subtree_control"];
        let handed_down =
            handed_down.into_iter().filter_map(|file| Some(format!("controllers in {file}: {}", fs::read_to_string(file).ok()?)));
        let facts = facts.chain(handed_down);
        // Its directory and its locks lie side by side.
        let files = entries(directory.parent().unwrap()).filter(|path| path.file_stem() == directory.file_stem());
        // What programs make on the host that nobody told where to keep things.
        let usual = ["/opt", "/usr/libexec", "/etc/cni", "/etc/kubernetes", "/run/containerd", "/var/lib/cni", "/var/lib/kubelet"];
        let usual =
            usual.into_iter().flat_map(|place| [PathBuf::from(place)].into_iter().filter(|path| path.exists()).chain(entries(place)));
        let facts = facts.chain(files.chain(usual).map(|path| format!("file {}", path.display())));
        Self { lab: lab.to_owned(), directory: directory.to_owned(), level: level.to_owned(), facts: facts.collect() }
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
