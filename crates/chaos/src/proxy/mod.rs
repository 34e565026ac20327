//! Stands between the clients and a PostgreSQL server, and disturbs connections: all of them, or one in the middle of a
//! commit. It can cut them, and it can leave them open and swallow, delay or trickle their bytes.
//!
//! It knows requests and answers, but not what they are about. A commit has the events of a turn with it, so whoever aims
//! at commits aims at large requests. Connections must be in plain text.

mod flow;
mod frames;

pub use flow::{Disturbance, Flow, Whom};

use frames::{Answers, Requests};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::io::{self, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

const BUFFER: usize = 1 << 16;
/// A request with this makes its connection one that listens.
const LISTEN: &[u8] = b"LISTEN ";

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
    /// Connections, those that have ended among them.
    lines: Mutex<Vec<Weak<Line>>>,
    /// What happens to new connections.
    disturbance: Mutex<Disturbance>,
    disturbed: AtomicU64,
    abandoned: AtomicU64,
    swallowed_bytes: AtomicU64,
}

struct Aim {
    strike: Strike,
    at_least_bytes: usize,
}

#[derive(Clone, Copy)]
enum Strike {
    Cut(Cut),
    Disturb(Disturbance),
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
        *lock(&self.shared.aim) = Some(Aim { strike: Strike::Cut(cut), at_least_bytes });
    }

    /// Disturbs a connection from its next request of this size or more. Replaces an aim that nobody met.
    pub fn aim_disturbance(&self, disturbance: Disturbance, at_least_bytes: usize) {
        *lock(&self.shared.aim) = Some(Aim { strike: Strike::Disturb(disturbance), at_least_bytes });
    }

    /// Disturbs connections from now on. Says how many of them are open.
    pub fn disturb(&self, whom: Whom, disturbance: Disturbance) -> u64 {
        if whom == Whom::All {
            *lock(&self.shared.disturbance) = disturbance;
        }
        let mut count = 0;
        for line in self.shared.open_lines() {
            if whom != Whom::Listeners || line.listens.load(Ordering::SeqCst) {
                self.shared.disturb(&line, disturbance);
                count += 1;
            }
        }
        count
    }

    /// Ends all disturbances. Connections that lost bytes cannot go on: they are cut.
    pub fn heal(&self) {
        *lock(&self.shared.disturbance) = Disturbance::default();
        for line in self.shared.open_lines() {
            let before = std::mem::take(&mut *lock(&line.disturbance));
            if before.swallows() {
                line.cut.notify_one();
            }
        }
    }

    /// How many connections were disturbed.
    pub fn disturbed(&self) -> u64 {
        self.shared.disturbed.load(Ordering::SeqCst)
    }

    /// How many connections were closed by their client or their server while bytes of them were swallowed.
    pub fn abandoned(&self) -> u64 {
        self.shared.abandoned.load(Ordering::SeqCst)
    }

    /// How many bytes were swallowed.
    pub fn swallowed_bytes(&self) -> u64 {
        self.shared.swallowed_bytes.load(Ordering::SeqCst)
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// What to do to a connection at this request, if it is the one.
    fn verdict(&self, request: &[u8]) -> Option<Strike> {
        let mut aim = lock(&self.aim);
        let strike = aim.as_ref().filter(|aim| request.len() >= aim.at_least_bytes)?.strike;
        *aim = None;
        Some(strike)
    }

    fn open_lines(&self) -> Vec<Arc<Line>> {
        lock(&self.lines).iter().filter_map(Weak::upgrade).collect()
    }

    /// A new connection.
    fn line(&self) -> Arc<Line> {
        let disturbance = *lock(&self.disturbance);
        let line = Arc::new(Line::default());
        if disturbance != Disturbance::default() {
            self.disturb(&line, disturbance);
        }
        let mut lines = lock(&self.lines);
        lines.retain(|line| line.strong_count() > 0);
        lines.push(Arc::downgrade(&line));
        line
    }

    fn disturb(&self, line: &Line, disturbance: Disturbance) {
        *lock(&line.disturbance) = disturbance;
        self.disturbed.fetch_add(1, Ordering::SeqCst);
    }

    /// Sends bytes on as the connection's disturbance wants it.
    async fn send(&self, flow: Flow, bytes: &[u8], to: &mut OwnedWriteHalf) -> io::Result<()> {
        if flow == Flow::Swallow {
            self.swallowed_bytes.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        }
        flow.send(bytes, to).await
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let (mut severed, line) = (shared.severed.subscribe(), shared.line());
            tokio::select! {
                // Whatever ends a connection, both sides see it closed.
                _ = serve(client, server, &line, &shared) => {}
                _ = severed.changed() => {}
                () = line.cut.notified() => {}
            }
        });
    }
}

/// One connection, until either side closes it or it is cut. If the direction to one side is swallowed, that side does not
/// see that the other one closes it.
async fn serve(client: TcpStream, server: SocketAddr, line: &Line, shared: &Shared) -> io::Result<()> {
    let server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    // Dropping a half closes its direction, so both are kept until the connection ends.
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let mut asking = pin!(ask(&mut from_client, &mut to_server, line, shared));
    let mut telling = pin!(tell(&mut from_server, &mut to_client, line, shared));
    tokio::select! {
        end = &mut asking => {
            let disturbance = line.disturbance();
            if disturbance.swallows() {
                shared.abandoned.fetch_add(1, Ordering::SeqCst);
            }
            if disturbance.requests == Flow::Swallow { telling.await } else { end }
        }
        end = &mut telling => {
            let disturbance = line.disturbance();
            // A server that misses the rest of a request closes the connection itself.
            let end = if disturbance.answers == Flow::Swallow { asking.await } else { end };
            if disturbance.swallows() {
                shared.abandoned.fetch_add(1, Ordering::SeqCst);
            }
            end
        }
    }
}

/// What the two directions of a connection know of each other.
#[derive(Default)]
struct Line {
    answered: watch::Sender<u64>,
    /// The client hears nothing any more.
    is_mute: AtomicBool,
    /// The client has asked for notifications.
    listens: AtomicBool,
    disturbance: Mutex<Disturbance>,
    cut: Notify,
}

impl Line {
    fn disturbance(&self) -> Disturbance {
        *lock(&self.disturbance)
    }
}

/// What the client asks, request by request.
async fn ask(
    client: &mut OwnedReadHalf,
    server: &mut OwnedWriteHalf,
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
            line.listens.fetch_or(request.windows(LISTEN.len()).any(|part| part == LISTEN), Ordering::SeqCst);
            let cut = match shared.verdict(&request) {
                Some(Strike::Cut(cut)) => cut,
                strike => {
                    if let Some(Strike::Disturb(disturbance)) = strike {
                        shared.disturb(line, disturbance);
                    }
                    shared.send(line.disturbance().requests, &request, server).await?;
                    continue;
                }
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
async fn tell(
    server: &mut OwnedReadHalf,
    client: &mut OwnedWriteHalf,
    line: &Line,
    shared: &Shared,
) -> io::Result<()> {
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
            shared.send(line.disturbance().answers, &bytes[..length], client).await?;
        }
    }
}
