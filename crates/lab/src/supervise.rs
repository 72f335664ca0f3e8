//! The body of `metalshift lab supervise`: owns one lab from its start to its end.

use std::{
    io::{self, Write as _},
    net::{SocketAddr, TcpListener},
    os::fd::{AsFd as _, OwnedFd},
    sync::Arc,
};

use tokio::{
    net::TcpStream,
    signal::unix::{SignalKind, signal},
    sync::Notify,
};

use crate::{
    LabDirectory, LabError, Level, Options, background::Report, control, lab::programs_for, leftovers, maas, network, orphans, own_process,
    supervisor::Supervisor,
};

/// Runs a lab until somebody asks for its end. Progress goes to standard output, the log to standard error.
pub fn supervise() -> Result<(), LabError> {
    let settings = std::env::var("METALSHIFT_LAB_OPTIONS").unwrap_or_default();
    let options: Options = serde_json::from_str(&settings)
        .map_err(|error| LabError::Supervisor(format!("`lab supervise` is started by `lab up`, which tells it what to do: {error}")))?;
    // One thread: components die with the thread that started them.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(LabError::io("start a runtime for", options.name.to_string()))?;
    let lived = runtime.block_on(live(&options));
    if let Err(error) = &lived {
        let _ = say(&Report::Failed(error.to_string()));
    }
    lived
}

async fn live(options: &Options) -> Result<(), LabError> {
    let directory = LabDirectory::of(&options.name);
    let lock = directory.take_after_the_last().await?;
    let outcome = serve(options, &directory).await;
    clean(&directory)?;
    drop(lock);
    outcome
}

async fn serve(options: &Options, directory: &LabDirectory) -> Result<(), LabError> {
    let programs = programs_for(options).await?;
    let outside = (options.level == Level::Nodes).then_some(options.port).flatten();
    if options.level == Level::Nodes {
        tokio::spawn(orphans::bury());
    }
    let abandoned = Notify::new();
    let report = |step: &str| {
        tracing::info!(step);
        if say(&Report::Step(step.to_owned())).is_err() {
            abandoned.notify_one();
        }
    };
    let interrupted = interrupted();
    let mut interrupted = std::pin::pin!(interrupted);
    let supervisor = tokio::select! {
        biased;
        () = &mut interrupted => return Ok(()),
        // Whoever wanted this lab has left before it was there (Ctrl-C at `lab up`).
        () = abandoned.notified() => return Ok(()),
        started = Supervisor::start(options, directory, programs, outside, &report) => Arc::new(started?),
    };
    let listener = control::listen(directory)?;
    if outside.is_some() {
        tokio::spawn(let_people_in(options.maas.is_some()));
    }
    tracing::info!("the lab is up");
    if say(&Report::Ready).is_err() {
        supervisor.stop().await;
        return Ok(());
    }
    tokio::select! {
        biased;
        () = &mut interrupted => {}
        () = control::serve(listener, &supervisor) => {}
    }
    tracing::info!("the lab goes down");
    supervisor.stop().await;
    Ok(())
}

fn clean(directory: &LabDirectory) -> Result<(), LabError> {
    // Disks are a mount in there; the files of the lab can only go without it.
    let _ = rustix::mount::unmount(directory.path().join("disks"), rustix::mount::UnmountFlags::DETACH);
    leftovers::remove(directory)
}

/// Fails when nobody listens any more.
fn say(report: &Report) -> io::Result<()> {
    writeln!(io::stdout(), "{}", serde_json::to_string(report)?)
}

/// Ends when somebody sends a signal that asks for the end.
pub(crate) async fn interrupted() {
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        return std::future::pending().await;
    };
    // Who was started with `nohup` outlives the terminal; to listen would undo that.
    let hangup = if own_process::ignores_hangup() { None } else { signal(SignalKind::hangup()).ok() };
    let hung_up = async {
        match hangup {
            Some(mut hangup) => hangup.recv().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        _ = hung_up => {}
    }
}

/// Whom a visitor wants: who begins with a TLS handshake wants the API server, who speaks in the clear wants the MAAS, if there is one.
async fn wanted(visitor: &TcpStream, to_maas_too: bool) -> Option<SocketAddr> {
    const HANDSHAKE: u8 = 0x16;
    let mut first = [0];
    match visitor.peek(&mut first).await {
        Ok(1) if to_maas_too && first[0] != HANDSHAKE => Some(maas::address_inside()),
        Ok(1) => Some(SocketAddr::new(network::GATEWAY.into(), 6443)),
        _ => None,
    }
}

/// Passes connections from the port outside on. The port was opened out there and came in as our standard input.
async fn let_people_in(to_maas_too: bool) {
    let door = io::stdin().as_fd().try_clone_to_owned().map(|descriptor: OwnedFd| TcpListener::from(descriptor));
    let listener = match door.and_then(|door| door.set_nonblocking(true).and(Ok(door))).and_then(tokio::net::TcpListener::from_std) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::warn!(%error, "nobody outside can reach the API server");
            return;
        }
    };
    loop {
        let mut visitor = match listener.accept().await {
            Ok((visitor, _)) => visitor,
            Err(error) => {
                control::after_refusal(&error).await;
                continue;
            }
        };
        tokio::spawn(async move {
            let Some(host) = wanted(&visitor, to_maas_too).await else { return };
            if let Ok(mut server) = TcpStream::connect(host).await {
                let _ = tokio::io::copy_bidirectional(&mut visitor, &mut server).await;
            }
        });
    }
}
