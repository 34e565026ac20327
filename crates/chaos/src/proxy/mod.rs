//! Stands between the clients and a PostgreSQL server, and cuts connections: all of them, or one in the middle of a commit.
//!
//! It knows requests and answers, but not what they are about. A commit has the events of a turn with it, so whoever aims
//! at commits aims at large requests. Connections must be in plain text.

mod frames;

use frames::{Answers, Requests};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{self, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

const BUFFER: usize = 1 << 16;

/// Where a request is when its connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The server never hears of it.
    Before,
    /// The server has half of it.
    Within,
    /// The server has answered, which the client never hears.
    After,
}

/// A listening proxy. Dropping it closes everything.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    aim: Mutex<Option<Aim>>,
    cuts: AtomicU64,
    /// How often all connections were cut.
    severed: watch::Sender<u64>,
}

struct Aim {
    cut: Cut,
    at_least_bytes: usize,
}

impl Proxy {
    /// Listens on a port of the loopback, for a server at this address.
    pub async fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, server, Arc::clone(&shared)));
        Ok(Self { address, shared, _tasks: tasks })
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts a connection at its next request of this size or more. Replaces an aim that nobody met.
    pub fn aim(&self, cut: Cut, at_least_bytes: usize) {
        *self.shared.aim() = Some(Aim { cut, at_least_bytes });
    }

    /// How many connections were cut at a request.
    pub fn cuts(&self) -> u64 {
        self.shared.cuts.load(Ordering::SeqCst)
    }

    /// Cuts all connections, wherever they are. New ones are let through.
    pub fn sever(&self) {
        self.shared.severed.send_modify(|times| *times += 1);
    }
}

impl Shared {
    fn aim(&self) -> std::sync::MutexGuard<'_, Option<Aim>> {
        self.aim.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How to cut a connection at this request, if it is the one.
    fn verdict(&self, request: &[u8]) -> Option<Cut> {
        let mut aim = self.aim();
        let cut = aim.as_ref().filter(|aim| request.len() >= aim.at_least_bytes)?.cut;
        *aim = None;
        Some(cut)
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let mut severed = shared.severed.subscribe();
            tokio::select! {
                // Whatever ends a connection, both sides see it closed.
                _ = serve(client, server, &shared) => {}
                _ = severed.changed() => {}
            }
        });
    }
}

/// One connection, until either side closes it or it is cut.
async fn serve(client: TcpStream, server: SocketAddr, shared: &Shared) -> io::Result<()> {
    let server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let line = Line { answered: watch::Sender::new(0), is_mute: AtomicBool::new(false) };
    tokio::select! {
        end = ask(from_client, to_server, &line, shared) => end,
        end = tell(from_server, to_client, &line) => end,
    }
}

/// What the two directions of a connection know of each other.
struct Line {
    answered: watch::Sender<u64>,
    /// The client hears nothing any more.
    is_mute: AtomicBool,
}

/// What the client asks, request by request.
async fn ask(
    mut client: OwnedReadHalf,
    mut server: OwnedWriteHalf,
    line: &Line,
    shared: &Shared,
) -> io::Result<()> {
    let mut requests = Requests::default();
    let mut bytes = vec![0; BUFFER];
    loop {
        let length = client.read(&mut bytes).await?;
        if length == 0 {
            return Ok(());
        }
        requests.take(&bytes[..length]);
        while let Some(request) = requests.next() {
            let Some(cut) = shared.verdict(&request) else {
                server.write_all(&request).await?;
                continue;
            };
            match cut {
                Cut::Before => {}
                Cut::Within => server.write_all(&request[..request.len() / 2]).await?,
                Cut::After => {
                    line.is_mute.store(true, Ordering::SeqCst);
                    server.write_all(&request).await?;
                    let asked = requests.asked();
                    // It cannot fail: the sender is ours.
                    let _ = line.answered.subscribe().wait_for(|answered| *answered >= asked).await;
                }
            }
            shared.cuts.fetch_add(1, Ordering::SeqCst);
            return Ok(());
        }
    }
}

/// What the server answers, as it comes.
async fn tell(mut server: OwnedReadHalf, mut client: OwnedWriteHalf, line: &Line) -> io::Result<()> {
    let mut answers = Answers::default();
    let mut bytes = vec![0; BUFFER];
    loop {
        let length = server.read(&mut bytes).await?;
        if length == 0 {
            return Ok(());
        }
        answers.take(&bytes[..length]);
        line.answered.send_replace(answers.complete());
        if !line.is_mute.load(Ordering::SeqCst) {
            client.write_all(&bytes[..length]).await?;
        }
    }
}
