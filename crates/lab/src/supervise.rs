//! The body of `metalshift lab supervise`: owns one lab from its start to its end.

use std::{
    io::{self, Write as _},
    net::{SocketAddr, TcpListener},
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use futures::future::OptionFuture;
use rustix::{fs::Mode, process::umask};
use tokio::{
    io::Interest,
    net::{TcpStream, unix::pipe::Sender},
    signal::unix::{SignalKind, signal},
};

use crate::{
    LabDirectory, LabError, Level, Options, background::Report, control, lab::programs_for, leftovers, maas, network, orphans, own_process,
    supervisor::Supervisor,
};

/// Runs a lab until somebody asks for its end. Progress goes to standard output, the log to standard error.
pub fn supervise() -> Result<(), LabError> {
    // Whatever the person's is: a wide one would let everybody give orders to a lab, and a narrow one would keep those who are not root from
    // the files of its machines.
    umask(Mode::from_raw_mode(0o022));
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
    let report = |step: &str| {
        tracing::info!(step);
        // That nobody hears it any more is noticed below.
        let _ = say(&Report::Step(step.to_owned()));
    };
    let interrupted = interrupted();
    let mut interrupted = std::pin::pin!(interrupted);
    let supervisor = tokio::select! {
        biased;
        () = &mut interrupted => return Ok(()),
        // Whoever wanted this lab has left before it was there (Ctrl-C at `lab up`, or its end by `kill -9`).
        () = nobody_hears(io::stdout()) => return Ok(()),
        started = Supervisor::start(options, directory, programs, outside, &report) => Arc::new(started?),
    };
    let listener = control::listen(directory)?;
    if outside.is_some() {
        tokio::spawn(let_people_in(options.maas.is_some()));
    }
    tracing::info!("the lab is up");
    if say(&Report::Ready).is_err() {
        // Whoever starts the next one must not take this one for a lab that is up.
        drop(listener);
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

/// Ends when the other end of this pipe is closed, also while nothing is said; never for what is no pipe.
async fn nobody_hears(pipe: impl AsFd) {
    // The kernel tells of a closed end as an error, without anything being written.
    let closed = pipe.as_fd().try_clone_to_owned().and_then(Sender::from_owned_fd);
    match closed {
        Ok(closed) if closed.ready(Interest::ERROR).await.is_ok() => {}
        _ => std::future::pending().await,
    }
}

/// Ends when somebody sends a signal that asks for the end. It listens from now on, not only when it is waited for.
pub fn interrupted() -> impl Future<Output = ()> {
    let listen = |kind: SignalKind| {
        let listening = signal(kind).ok();
        async {
            match listening {
                Some(mut listening) => listening.recv().await,
                None => std::future::pending().await,
            }
        }
    };
    let (terminated, interrupted) = (listen(SignalKind::terminate()), listen(SignalKind::interrupt()));
    // Who was started with `nohup` outlives the terminal; to listen would undo that.
    let hung_up = (!own_process::ignores_hangup()).then(|| listen(SignalKind::hangup()));
    async {
        tokio::select! {
            _ = terminated => {}
            _ = interrupted => {}
            Some(_) = OptionFuture::from(hung_up) => {}
        }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn who_leaves_is_noticed_without_a_word_and_who_listens_is_not_taken_for_gone() {
        let (listener, mut pipe) = io::pipe().unwrap();
        let mut left = std::pin::pin!(nobody_hears(pipe.try_clone().unwrap()));
        pipe.write_all(b"something to hear").unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut left).await.is_err(), "it listens");
        drop(listener);
        assert!(tokio::time::timeout(Duration::from_secs(20), left).await.is_ok(), "it has left");
        let file = tempfile::tempfile().unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(20), nobody_hears(file)).await.is_err(), "a file has no other end");
    }
}
