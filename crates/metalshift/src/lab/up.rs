//! `metalshift lab up`.

use std::{path::PathBuf, pin::pin};

use clap::{
    Args,
    builder::{OsStringValueParser, TypedValueParser as _},
};
use lab::{
    LabError, Level, Options,
    background::{self, Beginning, News},
    packages,
};

use super::{
    Which,
    maas::{self, Maas},
};
use crate::output::{self, Progress};

/// As many are there unless somebody asks for another number.
const USUAL_WORKERS: u16 = 1;

/// The networks of a lab have room for 1024 machines, and one of them is the management node.
const MOST_WORKERS: i64 = 1023;

/// What kind of lab to start.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    which: Which,
    /// api: etcd and kube-apiserver; capi: plus Cluster API; nodes: plus nodes and machines (root)
    #[arg(long, value_name = "api|capi|nodes")]
    level: Option<Level>,
    /// Machines that join the management cluster as workers (level nodes)
    #[arg(long, value_name = "COUNT", default_value_t = USUAL_WORKERS, value_parser = clap::value_parser!(u16).range(..=MOST_WORKERS))]
    workers: u16,
    /// Port on 127.0.0.1 of the API server; a free one if left out
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Also run kube-controller-manager below level nodes
    #[arg(long)]
    controller_manager: bool,
    /// Also start a MAAS with the machines of this file, or with three zones of eight if no file is named
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = maas::THREE_ZONES)]
    fleet: Option<PathBuf>,
    /// Directory whose programs (kube-apiserver, etcd, ...) come before all others
    #[arg(long, env = "METALSHIFT_PROGRAMS", value_name = "DIRECTORY", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    programs: Option<PathBuf>,
}

/// Starts the lab; prints the path of its kubeconfig.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut progress = Progress::default();
    let level = arguments.level.unwrap_or_else(|| {
        let (level, reason) = Level::highest_here();
        progress.step(&format!("level {level}: {reason}"));
        level
    });
    if level != Level::Nodes && arguments.workers > USUAL_WORKERS {
        let sentence = format!("--workers needs machines, and level {level} has none: leave it out, or choose --level nodes\n");
        return Err(clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, sentence).into());
    }
    let maas = arguments.fleet.map(|file| Maas::read(file, level)).transpose()?;
    let directory = arguments.which.directory();
    let options = Options {
        name: arguments.which.name,
        // A variable that is empty is one that is not set.
        programs: arguments.programs.filter(|directory| !directory.as_os_str().is_empty()),
        controller_manager: arguments.controller_manager,
        port: arguments.port,
        workers: arguments.workers,
        maas: maas.as_ref().map(|maas| lab::Maas { fleet: maas.fleet.clone() }),
        ..Options::new(level)
    };
    // One for all of it: an interrupt between two parts is not lost.
    let mut interrupted = pin!(lab::interrupted());
    prepare(&options, &mut progress, interrupted.as_mut()).await?;
    start(background::begin(options).await?, &mut progress, interrupted).await?;
    drop(progress);
    let kubeconfig = directory.kubeconfig();
    output::note(format!("lab {} is up, level {level}; look around with:", directory.name()));
    output::note(format!("  export KUBECONFIG={}", kubeconfig.display()));
    if level == Level::Nodes {
        // The lab has a kubectl, the host need not have one.
        output::note(format!("  metalshift lab exec --name {} -- kubectl get nodes", directory.name()));
    }
    output::note(format!("  metalshift lab status --name {}", directory.name()));
    if let Some(maas) = maas {
        maas.introduce(&directory).await?;
    }
    output::data(kubeconfig.display().to_string());
    Ok(())
}

/// Starts the lab; it goes on when this process ends.
pub async fn start(beginning: Beginning, progress: &mut Progress, interrupted: impl Future<Output = ()>) -> Result<(), LabError> {
    let report = &mut |news: News<'_>| match news {
        News::Step(line) => progress.step(line),
        News::Building(building) if building.is_news() => progress.step(&building.to_string()),
        News::Building(building) => progress.update(&building.to_string()),
    };
    beginning.up(interrupted, report).await
}

/// Installs what is missing for such a lab. That it is `interrupted` is answered when apt-get has come to its end.
pub async fn prepare(options: &Options, progress: &mut Progress, interrupted: impl Future<Output = ()>) -> anyhow::Result<()> {
    options.check()?;
    if options.level == Level::Nodes {
        // Nobody gets packages for a lab that cannot start.
        background::look(options)?;
        let missing = packages::missing();
        if !missing.is_empty() {
            packages::install(&missing, &mut |line| progress.step(line), interrupted).await?;
        }
    }
    Ok(())
}
