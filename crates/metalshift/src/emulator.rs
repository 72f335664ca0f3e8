//! `metalshift emulator`: a MAAS in one process, for trying things and for tests of other programs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use lab::{Control, LabDirectory, LabName};
use maas_emulator::dns_server::DnsServer;
use maas_emulator::{
    Clock, Emulator, Fleet, Options, Version,
    state_file::{self, Saver},
    world::{World, people::Token},
};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::fleet_file::{self, FleetFile};
use crate::output;
use crate::rack::{self, LabHardware};

/// How often changes are saved while it runs.
const SAVE_EVERY: Duration = Duration::from_millis(500);

/// What MAAS to emulate, and where.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Where the API answers, below /MAAS; faults and the truth about calls below /emulator
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5240")]
    listen: SocketAddr,
    /// What the MAAS holds; three zones of eight machines if left out
    #[arg(long, value_name = "FILE")]
    fleet: Option<PathBuf>,
    /// Go on from this file, and keep in it what the MAAS holds, what is under way and what is to go wrong; not the journal of calls
    ///
    /// What a call changed is in the file before the call is answered: if the file cannot be written, the answer is 500. What happens by
    /// itself is saved every half second. Nonces of calls that changed nothing are saved with the next change. The calls told below
    /// /emulator begin anew. Where the file exists, --fleet, --version and --seed do not count.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// 3.0, 3.3, 3.5, 3.7, or removed: a MAAS without VM hosts
    #[arg(long, value_name = "VERSION")]
    version: Option<Version>,
    /// Where its domains are served, over UDP and TCP; left out, they are not
    #[arg(long, value_name = "ADDRESS")]
    dns: Option<SocketAddr>,
    /// Boot its machines in the lab of this name (level nodes); left out, they are simulated
    #[arg(long, value_name = "NAME")]
    lab: Option<LabName>,
    /// What chance begins with: the same number gives the same ids, names and times
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

/// Runs until it is told to stop.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
    // Taken first: the address tells a lab whose machines are whose, and port 0 becomes one only now.
    let listener = TcpListener::bind(arguments.listen)
        .await
        .with_context(|| format!("could not listen on {}: choose another address with --listen", arguments.listen))?;
    let mut options = Options { clock: Clock::running(jiff::Timestamp::now()), seed: arguments.seed, ..Options::default() };
    let mut hands = None;
    let lab = arguments.lab.as_ref().map(LabDirectory::of);
    if let Some(lab) = &lab {
        rack::check(lab).await?;
        let (hardware, its_hands) = LabHardware::of(lab, &listener.local_addr()?.to_string());
        options.hardware = Arc::new(hardware);
        options.unguessable_keys = true;
        hands = Some(its_hands);
    }
    let emulator = if let Some(world) = saved(&arguments)? {
        if arguments.fleet.is_some() || arguments.version.is_some() {
            output::note("going on from the saved state: --fleet and --version count only where there is none");
        }
        Emulator::resume(world, options)
    } else {
        let FleetFile { name, fleet, .. } = fleet(&arguments)?;
        Emulator::new(fleet, options).with_context(|| name)?
    };
    let stop = CancellationToken::new();
    if let Some(hands) = hands {
        tokio::spawn(hands.run(emulator.clone()));
    }
    if let Some(address) = arguments.dns {
        let server = DnsServer::bind(emulator.clone(), address).with_context(|| format!("could not serve names on {address}"))?;
        if let Some(lab) = &lab {
            tokio::spawn(rack::names::forward(emulator.clone(), Control::of(lab), server.local_address()));
        }
        output::note(format!("names of its domains are served on {}", server.local_address()));
        tokio::spawn(server.run(stop.clone()));
    }
    let saver = arguments.state.map(|path| Saver::new(path, emulator.clone())).transpose()?.map(Arc::new);
    say_where(&listener, &emulator)?;
    let serving = tokio::spawn(maas_emulator::serve(listener, emulator.clone(), saver.clone(), stop.clone()));
    until_told_to_stop(saver.as_deref()).await?;
    stop.cancel();
    serving.await.context("the server ended in a panic")?;
    if let Some(saver) = saver {
        saver.save().await?;
    }
    Ok(())
}

/// What it goes on from. Machines that boot are not for what was saved when they were simulated and everybody had the key.
fn saved(arguments: &Arguments) -> anyhow::Result<Option<World>> {
    let Some(path) = &arguments.state else { return Ok(None) };
    let world = state_file::load(path)?;
    let is_published = |world: &World| world.tokens.iter().map(Token::key).any(|key| Fleet::is_published(&key));
    if arguments.lab.is_some() && world.as_ref().is_some_and(is_published) {
        bail!(
            "{} has a key that comes with the emulator, so everybody has it, and whoever has it is root where machines boot: begin anew with \
             another --state",
            path.display()
        );
    }
    Ok(world)
}

fn fleet(arguments: &Arguments) -> anyhow::Result<FleetFile> {
    let mut read = fleet_file::read(arguments.fleet.as_deref(), arguments.lab.is_some())?;
    if let Some(version) = arguments.version {
        read.fleet.version = version;
    }
    Ok(read)
}

/// Address and keys as variables a shell can take.
fn say_where(listener: &TcpListener, emulator: &Emulator) -> anyhow::Result<()> {
    let address = listener.local_addr()?;
    let (version, machines, keys) = emulator.world(|world| {
        let keys: Vec<(String, String)> = world.tokens.iter().map(|token| (world.user_name(token.user).to_owned(), token.key())).collect();
        (world.version.full(), world.all_machines().count(), keys)
    });
    output::note(format!("MAAS {version} with {machines} machines; stop it with Ctrl-C"));
    output::data(format!("MAAS_ENDPOINT=http://{address}/MAAS"));
    for (index, (user, key)) in keys.into_iter().enumerate() {
        output::data(if index == 0 { format!("MAAS_API_KEY={key}") } else { format!("# {user}: {key}") });
    }
    Ok(())
}

/// Saves what happens by itself until a signal comes; what calls change is saved before they are answered.
async fn until_told_to_stop(saver: Option<&Saver>) -> anyhow::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut told = false;
    loop {
        tokio::select! {
            _ = interrupt.recv() => return Ok(()),
            _ = terminate.recv() => return Ok(()),
            () = tokio::time::sleep(SAVE_EVERY) => {}
        }
        // Changes are answered 500 as long as it lasts; what is there can still be read.
        let outcome = match saver {
            Some(saver) => saver.save().await,
            None => Ok(()),
        };
        if let Err(error) = outcome.as_ref()
            && !told
        {
            tracing::warn!(%error, "the state cannot be saved; it is tried again");
        }
        told = outcome.is_err();
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn arguments(words: &[&str]) -> Arguments {
        Line::parse_from([&["emulator"], words].concat()).arguments
    }

    fn keys(words: &[&str]) -> Vec<String> {
        let emulator = Emulator::new(fleet(&arguments(words)).unwrap().fleet, Options::default()).unwrap();
        emulator.world(|world| world.tokens.iter().map(Token::key).collect())
    }

    #[test]
    fn on_machines_of_a_lab_nobody_has_the_published_key() {
        assert!(keys(&[]).iter().all(|key| Fleet::is_published(key)), "nothing boots there");
        let (one, another) = (keys(&["--lab", "rack"]), keys(&["--lab", "rack"]));
        assert!(one.len() == 2 && !one.iter().any(|key| Fleet::is_published(key) || another.contains(key)), "{one:?}");
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("fleet.yaml");
        std::fs::write(&file, Fleet::THREE_ZONES).unwrap();
        let file = file.to_str().unwrap();
        fleet(&arguments(&["--fleet", file])).unwrap();
        let refused = format!("{:#}", fleet(&arguments(&["--fleet", file, "--lab", "rack"])).unwrap_err());
        assert!(refused.contains(file) && refused.contains("leave `keys` out"), "{refused}");
    }

    #[test]
    fn what_was_saved_with_the_published_key_does_not_go_on_with_machines_of_a_lab() {
        let place = tempfile::tempdir().unwrap();
        let state = place.path().join("state.json");
        let save = |fleet: &str| {
            let emulator = Emulator::new(Fleet::from_yaml(fleet).unwrap(), Options::default()).unwrap();
            state_file::save(&state, &emulator).unwrap();
        };
        let words = ["--state", state.to_str().unwrap(), "--lab", "rack"];
        assert!(saved(&arguments(&words)).unwrap().is_none(), "it begins");
        save("users: [{name: ada, keys: [{key: 'a:b:c'}]}]");
        assert!(saved(&arguments(&words)).unwrap().is_some());
        save("");
        let refused = saved(&arguments(&words)).unwrap_err().to_string();
        assert!(refused.contains(words[1]) && refused.ends_with("begin anew with another --state"), "{refused}");
        assert!(saved(&arguments(&words[..2])).unwrap().is_some(), "nothing boots there");
    }
}
