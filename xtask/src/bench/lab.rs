//! `cargo xtask bench lab`: from no process until a lab is of use.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command as Process, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};

use crate::{
    build::{self, Kind},
    command::{cargo, command as program, is_root, read, run as run_command},
    generate::target_directory,
    output::{data, say},
};

/// How to measure it.
#[derive(Debug, Args)]
pub struct Arguments {
    /// How often
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only this level; all that this user can run if left out
    #[arg(long)]
    level: Option<Level>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Level {
    Api,
    Capi,
    Nodes,
}

/// A lab of our own beside those that people have up. Always the same name, so that a run that was interrupted is cleaned up by the next.
const NAME: &str = "bench";

const POD: &str = r#"{
  "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bench"},
  "spec": {
    "nodeSelector": {"kubernetes.io/hostname": "worker-1"},
    "containers": [{"name": "sleep", "image": "busybox:stable", "command": ["sleep", "3600"]}]
  }
}"#;

/// Measures.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    run_command(&mut cargo(&["build", "--release", "--locked", "--package", "metalshift"]))?;
    let bench = Bench { program: target_directory()?.join("release/metalshift"), kubectl: kubectl()? };
    let levels = match arguments.level {
        Some(level) => vec![level],
        None if is_root() => Level::value_variants().to_vec(),
        None => vec![Level::Api, Level::Capi],
    };
    for level in levels {
        bench.measure(level, arguments.runs)?;
    }
    Ok(())
}

/// Finds kubectl, and builds the programs of Kubernetes if they are nowhere: that is not measured.
fn kubectl() -> anyhow::Result<PathBuf> {
    let prepare = build::everything()?.executable("xtask", Kind::Example, "prepare")?;
    let paths = read(program(prepare).arg("programs"))?;
    paths.lines().find_map(|line| line.strip_prefix("kubectl\t")).map(PathBuf::from).context("there is no kubectl among the programs")
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Capi => "capi",
            Self::Nodes => "nodes",
        }
    }

    /// Until when it is measured, and in how many seconds that should be.
    fn target(self) -> (&'static str, u64) {
        match self {
            Self::Api => ("the API answers", 5),
            Self::Capi => ("Cluster API answers too", 12),
            Self::Nodes => ("a machine has joined and a pod is Ready on it", 60),
        }
    }
}

struct Bench {
    program: PathBuf,
    kubectl: PathBuf,
}

impl Bench {
    fn measure(&self, level: Level, runs: u32) -> anyhow::Result<()> {
        let (name, (until, wanted)) = (level.name(), level.target());
        say(format!("level {name}: a run that does not count, to fill the caches"));
        self.once(level)?;
        let mut worst = Duration::ZERO;
        for run in 1..=runs {
            let took = self.once(level)?;
            worst = worst.max(took);
            data(format!("{name:<6} run {run}  {:6.2} s", took.as_secs_f64()));
        }
        data(format!("{name:<6} worst  {:6.2} s  until {until}; target {wanted} s", worst.as_secs_f64()));
        Ok(())
    }

    /// From no process to no process; the time of the way up.
    fn once(&self, level: Level) -> anyhow::Result<Duration> {
        self.down()?;
        let measured = self.up(level);
        let down = self.down();
        measured.and_then(|took| down.map(|()| took))
    }

    fn up(&self, level: Level) -> anyhow::Result<Duration> {
        let began = Instant::now();
        let kubeconfig = self.lab(&["up", "--level", level.name(), "--workers", "1"])?;
        if level == Level::Nodes {
            self.run_pod(Path::new(kubeconfig.trim()))?;
        }
        Ok(began.elapsed())
    }

    fn down(&self) -> anyhow::Result<()> {
        self.lab(&["down"]).map(drop)
    }

    /// Runs a lab command; what it tells a person is shown only if it fails.
    fn lab(&self, words: &[&str]) -> anyhow::Result<String> {
        let mut command = Process::new(&self.program);
        let output =
            command.arg("lab").args(words).args(["--name", NAME]).stdin(Stdio::null()).output().context("could not run metalshift")?;
        if !output.status.success() {
            bail!("`metalshift lab {}` failed:\n{}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim_end());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn run_pod(&self, kubeconfig: &Path) -> anyhow::Result<()> {
        let kubectl = |arguments: &[&str]| {
            let mut command = Process::new(&self.kubectl);
            command.arg("--kubeconfig").arg(kubeconfig).args(arguments).stdout(Stdio::null());
            command
        };
        let mut create = kubectl(&["create", "--filename=-"]).stdin(Stdio::piped()).spawn().context("could not run kubectl")?;
        create.stdin.take().context("kubectl takes no input")?.write_all(POD.as_bytes()).context("could not talk to kubectl")?;
        if !create.wait().context("could not wait for kubectl")?.success() {
            bail!("kubectl could not create the pod");
        }
        read(kubectl(&["wait", "--for=condition=Ready", "--timeout=120s", "pod/bench"]).stdin(Stdio::null())).map(drop)
    }
}
