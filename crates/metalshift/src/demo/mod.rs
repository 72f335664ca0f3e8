//! `metalshift demo`: everything at once, on this machine. A lab with an emulated MAAS, the provider, a real cluster, and what goes wrong in
//! racks: a bad server, and a provider that is killed at the worst moment. Each step says what it proves; the end is a proof that nothing leaked.

mod kept;
mod pace;
mod picture;
mod screen;
mod simulated;
mod stage;
mod steps;
mod template;
mod tree;

use std::{path::PathBuf, pin::pin, process::ExitCode, time::Instant};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use comfy_table::{Table, presets};
use lab::{
    LabDirectory, LabName, Level,
    background::{self, Beginning},
};
use pace::Pace;
use screen::Screen;
use simulated::SimulatedCluster;
use stage::Stage;
use steps::Step;

use crate::{
    lab::prepare,
    maas_key,
    output::{self, Progress},
};

/// How the demo goes.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Leave everything running at the end and say how to reach it
    #[arg(long)]
    keep: bool,
    /// Break this step, to see that the demo notices; on a smaller cluster
    #[arg(long, value_enum, value_name = "STEP")]
    sabotage: Option<Step>,
    /// capi: machines and nodes are simulated, which needs no root; nodes: they really boot
    #[arg(long, value_name = "capi|nodes", value_parser = level)]
    level: Option<Level>,
    /// Name of its lab
    #[arg(long, default_value = "demo", value_name = "NAME")]
    name: LabName,
}

/// Below level capi there is nothing to show.
fn level(text: &str) -> Result<Level, String> {
    match text.parse() {
        Ok(level @ (Level::Capi | Level::Nodes)) => Ok(level),
        _ => Err("choose capi or nodes".to_owned()),
    }
}

/// What is played, and where.
struct Demo {
    stage: Stage,
    screen: Screen,
    pace: Pace,
    sabotage: Option<Step>,
    control_planes: usize,
    workers: usize,
    provider_kubeconfig: PathBuf,
    simulated: Option<SimulatedCluster>,
}

/// What came of a step.
struct Played {
    step: Step,
    seconds: f32,
    outcome: anyhow::Result<String>,
}

/// Plays everything; success only if every step held.
pub async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let (level, reason) = arguments.level.map_or_else(Level::highest_here, |level| (level, "as asked for"));
    let programme = Programme { keep: arguments.keep, level };
    if let Some((step, reason)) = arguments.sabotage.and_then(|step| Some((step, programme.left_out(step)?))) {
        let sentence = format!("the step {step} is left out and cannot be sabotaged: {reason}\n");
        return Err(clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, sentence).into());
    }
    let key = maas_key::random()?;
    let fleet = stage::fleet(&key)?;
    let options = stage::options(arguments.name.clone(), level, arguments.keep, fleet.path());
    let mut interrupted = pin!(lab::interrupted());
    // What is interrupted below is broken off at once, which apt-get must not be.
    prepare(&options, &mut Progress::default(), interrupted.as_mut()).await?;
    let beginning = tokio::select! {
        biased;
        () = interrupted.as_mut() => anyhow::bail!("the demo was interrupted before it began; nothing of it is there"),
        beginning = background::begin(options) => beginning?,
    };
    // From here on the lab of this name is the demo's own.
    let directory = LabDirectory::of(&arguments.name);
    let mut screen = Screen::default();
    screen.say(&match level {
        Level::Nodes => "machines of this demo really boot".to_owned(),
        _ => format!("machines and nodes of this demo are simulated: {reason}"),
    });
    let mut played = Vec::new();
    let interrupted = tokio::select! {
        biased;
        () = interrupted => true,
        outcome = play(beginning, &arguments, key.clone(), programme, screen, &mut played) => {
            outcome?;
            false
        }
    };
    if interrupted {
        output::note("interrupted: removes everything");
    }
    if interrupted || !programme.keep {
        background::down(&directory).await.context("could not remove the demo's lab")?;
    }
    output::data(summary(&played, programme));
    let held = played.len() == programme.steps().count() && played.iter().all(|played| played.outcome.is_ok());
    anyhow::ensure!(!interrupted, "the demo was interrupted; everything of it was removed");
    let introduced = if programme.keep { kept::introduce(&directory, &key).await } else { Ok(()) };
    if let Some(Played { step, outcome: Err(error), .. }) = played.iter().find(|played| played.outcome.is_err()) {
        anyhow::bail!("step {step} did not hold: {error:#}");
    }
    introduced?;
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is played, and what is not.
#[derive(Clone, Copy)]
struct Programme {
    keep: bool,
    level: Level,
}

impl Programme {
    /// Why a step is not played.
    fn left_out(self, step: Step) -> Option<&'static str> {
        match step {
            Step::Delete if self.keep => Some("--keep leaves the cluster running"),
            Step::Answer if self.level != Level::Nodes => Some("nodes are simulated and run no pods"),
            _ => None,
        }
    }

    fn steps(self) -> impl Iterator<Item = Step> {
        Step::value_variants().iter().copied().filter(move |step| self.left_out(*step).is_none())
    }
}

/// Plays the steps, up to the first that does not hold.
async fn play(
    beginning: Beginning,
    arguments: &Arguments,
    key: String,
    programme: Programme,
    mut screen: Screen,
    played: &mut Vec<Played>,
) -> anyhow::Result<()> {
    let mut began = Instant::now();
    screen.say(&format!("{}: {}", Step::Lab, Step::Lab.promise()));
    let stage = Stage::up(beginning, LabDirectory::of(&arguments.name), programme.level, key).await?;
    let (control_planes, workers) = if arguments.sabotage.is_some() { (1, 1) } else { (3, 2) };
    let mut demo = Demo {
        stage,
        screen,
        pace: Pace::default(),
        sabotage: arguments.sabotage,
        control_planes,
        workers,
        provider_kubeconfig: PathBuf::new(),
        simulated: None,
    };
    for step in programme.steps() {
        if step != Step::Lab {
            began = Instant::now();
            demo.screen.say(&format!("{step}: {}", step.promise()));
        }
        let outcome = step.take(&mut demo).await;
        let failed = outcome.is_err();
        match &outcome {
            Ok(seen) => demo.screen.say(&format!("  holds: {seen}")),
            Err(error) => demo.screen.say(&format!("  DOES NOT HOLD: {error:#}")),
        }
        played.push(Played { step, seconds: began.elapsed().as_secs_f32(), outcome });
        if failed {
            break;
        }
    }
    if programme.keep {
        demo.stage.leave_provider(&demo.provider_kubeconfig).await?;
    }
    Ok(())
}

fn summary(played: &[Played], programme: Programme) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for step in Step::value_variants() {
        let (outcome, seconds, words) = match played.iter().find(|played| played.step == *step) {
            Some(Played { seconds, outcome: Ok(seen), .. }) => ("holds", format!("{seconds:.0} s"), seen.as_str()),
            Some(Played { seconds, .. }) => ("FAILED", format!("{seconds:.0} s"), step.promise()),
            None => programme
                .left_out(*step)
                .map_or_else(|| ("not tried", String::new(), step.promise()), |reason| ("left out", String::new(), reason)),
        };
        table.add_row([outcome, &step.to_string(), &seconds, words]);
    }
    let seconds: f32 = played.iter().map(|played| played.seconds).sum();
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    format!("{}\ntogether {seconds:.0} s", lines.join("\n"))
}
