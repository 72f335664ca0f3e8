//! The name server of the emulated MAAS: its domains and the reverse zones of its subnets over UDP and TCP, published some time after
//! a change as MAAS does. Names of other domains are refused. `metalshift emulator` and `metalshift lab up --fleet` run it.
//!
//! Not as in MAAS: it forwards nothing, signs nothing, and gives subnets smaller than /24 no zone of their own below that of the /24.

mod answer;
mod contents;
pub(crate) mod machine_names;
mod publication;
mod reverse;
mod zones;

use std::io;
use std::net::{SocketAddr, TcpListener as Listener, UdpSocket as Socket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

pub use answer::{Transport, answer};
pub use publication::Publication;
pub use zones::{Zone, Zones};

use crate::emulator::Emulator;

/// How often changes are looked for when nobody asks, so that their delay begins with them.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How many TCP connections are served at once; more wait to be accepted.
const MOST_CONNECTIONS: usize = 64;
/// How long a connection may be silent between questions, and within one.
const SILENCE: Duration = Duration::from_secs(10);
/// How long a connection may be used; the client opens another.
const CONNECTION_LIFE: Duration = Duration::from_mins(2);
/// The pause after a connection could not be accepted: the cause, such as too many open files, stays for a while.
const REST: Duration = Duration::from_millis(200);
/// How often a port that is free for TCP and not for UDP is given up for another.
const PORT_ATTEMPTS: usize = 16;

/// A name server that is bound and not yet running.
pub struct DnsServer {
    publication: Arc<Mutex<Publication>>,
    udp: UdpSocket,
    tcp: TcpListener,
    address: SocketAddr,
    domains: watch::Sender<Vec<String>>,
}

impl DnsServer {
    /// Takes the address for UDP and TCP; with port 0, one that is free for both. What the emulator holds now is published.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn bind(emulator: Emulator, address: SocketAddr) -> io::Result<Self> {
        let (tcp, udp) = bind_both(address)?;
        tcp.set_nonblocking(true)?;
        udp.set_nonblocking(true)?;
        let address = tcp.local_addr()?;
        let mut publication = Publication::of(emulator);
        let domains = watch::Sender::new(publication.zones().origins());
        Ok(DnsServer {
            publication: Arc::new(Mutex::new(publication)),
            udp: UdpSocket::from_std(udp)?,
            tcp: TcpListener::from_std(tcp)?,
            address,
            domains,
        })
    }

    /// Where it can be asked.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// The domains it answers for, reverse ones too, now and whenever they change: what a resolver should pass on to it.
    pub fn domains(&self) -> watch::Receiver<Vec<String>> {
        self.domains.subscribe()
    }

    /// Answers until it is stopped.
    pub async fn run(self, stop: CancellationToken) {
        let mut connections = JoinSet::new();
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut packet = vec![0; usize::from(u16::MAX)];
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                received = self.udp.recv_from(&mut packet) => match received {
                    Ok((length, from)) => self.answer_datagram(&packet[..length], from).await,
                    // The kernel reports here that an earlier answer reached nobody.
                    Err(error) => tracing::debug!(%error, "a datagram could not be received"),
                },
                accepted = self.tcp.accept(), if connections.len() < MOST_CONNECTIONS => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(converse(stream, Arc::clone(&self.publication)));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        sleep(REST).await;
                    }
                },
                Some(_) = connections.join_next() => {}
                _ = look.tick() => self.tell_domains(),
            }
        }
    }

    fn tell_domains(&self) {
        let domains = published(&self.publication).origins();
        self.domains.send_if_modified(|known| {
            let changed = *known != domains;
            *known = domains;
            changed
        });
    }

    async fn answer_datagram(&self, packet: &[u8], from: SocketAddr) {
        let Some(answer) = answer(&published(&self.publication), packet, Transport::Udp) else { return };
        if let Err(error) = self.udp.send_to(&answer, from).await {
            tracing::debug!(%error, %from, "an answer could not be sent");
        }
    }
}

fn published(publication: &Mutex<Publication>) -> Arc<Zones> {
    publication.lock().unwrap_or_else(PoisonError::into_inner).zones()
}

fn bind_both(address: SocketAddr) -> io::Result<(Listener, Socket)> {
    let mut attempts = if address.port() == 0 { PORT_ATTEMPTS } else { 1 };
    loop {
        let tcp = Listener::bind(address)?;
        attempts -= 1;
        match Socket::bind(tcp.local_addr()?) {
            Ok(udp) => return Ok((tcp, udp)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && attempts > 0 => {}
            Err(error) => return Err(error),
        }
    }
}

/// Answers the questions of one connection, one after another, until it is silent or over.
async fn converse(mut stream: TcpStream, publication: Arc<Mutex<Publication>>) {
    let end = Instant::now() + CONNECTION_LIFE;
    let conversation = async {
        while let Some(question) = timeout(SILENCE, read_question(&mut stream)).await?? {
            let Some(answer) = answer(&published(&publication), &question, Transport::Tcp) else { break };
            let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
            let framed = [&length.to_be_bytes(), answer.as_slice()].concat();
            timeout(SILENCE, stream.write_all(&framed)).await??;
        }
        io::Result::Ok(())
    };
    if let Ok(Err(error)) = timeout_at(end, conversation).await {
        tracing::debug!(%error, "a connection ended");
    }
}

/// The next question of a connection; none when the client has closed it.
async fn read_question(stream: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let length = match stream.read_u16().await {
        Ok(length) => length,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut question = vec![0; usize::from(length)];
    stream.read_exact(&mut question).await?;
    Ok(Some(question))
}
#[cfg(test)]
mod tests;
