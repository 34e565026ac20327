//! A proxy between clients and a PostgreSQL server. The proxy cuts all connections, or one connection in the middle of a commit, or
//! keeps connections open and drops, delays or trickles their bytes.
//!
//! The proxy splits requests and answers but does not interpret them. The request of a commit contains the events of a
//! turn, so commits are recognised by their size. Connections must be in plain text.

mod flow;
mod frames;

pub use flow::{Disturbance, Flow, Scope};

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
/// A connection that sends this text receives notifications.
const LISTEN: &[u8] = b"LISTEN ";

/// The state of a request when its connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The server receives nothing.
    Before,
    /// The server receives half of the request.
    Within,
    /// The server has answered, and the client does not receive the answer.
    After,
}

/// A listening proxy. Dropping it closes all connections.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    pending: Mutex<Option<PendingAction>>,
    cuts: AtomicU64,
    /// Number of times that all connections were cut.
    severed: watch::Sender<u64>,
    /// All connections, including ended ones.
    connections: Mutex<Vec<Weak<ConnectionState>>>,
    /// The disturbance of new connections.
    disturbance: Mutex<Disturbance>,
    disturbed: AtomicU64,
    abandoned: AtomicU64,
    swallowed_bytes: AtomicU64,
}

struct PendingAction {
    action: ProxyAction,
    at_least_bytes: usize,
}

#[derive(Clone, Copy)]
enum ProxyAction {
    Cut(Cut),
    Disturb(Disturbance),
}

impl Proxy {
    /// Starts a proxy on a loopback port, for a server at this address.
    pub async fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, server, Arc::clone(&shared)));
        Ok(Self { address, shared, _tasks: tasks })
    }

    /// The address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts the connection of the next request of at least this size. Replaces an earlier action that is still pending.
    pub fn cut_at(&self, cut: Cut, at_least_bytes: usize) {
        *lock(&self.shared.pending) = Some(PendingAction { action: ProxyAction::Cut(cut), at_least_bytes });
    }

    /// Disturbs the connection of the next request of at least this size. Replaces an earlier action that is still
    /// pending.
    pub fn disturb_at(&self, disturbance: Disturbance, at_least_bytes: usize) {
        *lock(&self.shared.pending) =
            Some(PendingAction { action: ProxyAction::Disturb(disturbance), at_least_bytes });
    }

    /// Disturbs connections from now on. Returns the number of disturbed open connections.
    pub fn disturb(&self, scope: Scope, disturbance: Disturbance) -> u64 {
        if scope == Scope::All {
            *lock(&self.shared.disturbance) = disturbance;
        }
        let mut count = 0;
        for connection in self.shared.open_connections() {
            if scope != Scope::Listeners || connection.listens.load(Ordering::SeqCst) {
                self.shared.disturb(&connection, disturbance);
                count += 1;
            }
        }
        count
    }

    /// Ends all disturbances. Connections that lost bytes are cut.
    pub fn heal(&self) {
        *lock(&self.shared.disturbance) = Disturbance::default();
        for connection in self.shared.open_connections() {
            let before = std::mem::take(&mut *lock(&connection.disturbance));
            if before.loses_bytes() {
                connection.cut.notify_one();
            }
        }
    }

    /// Number of disturbed connections.
    pub fn disturbed(&self) -> u64 {
        self.shared.disturbed.load(Ordering::SeqCst)
    }

    /// Number of connections that their client or server closed while bytes were dropped.
    pub fn abandoned(&self) -> u64 {
        self.shared.abandoned.load(Ordering::SeqCst)
    }

    /// Number of dropped bytes.
    pub fn swallowed_bytes(&self) -> u64 {
        self.shared.swallowed_bytes.load(Ordering::SeqCst)
    }

    /// Number of connections that were cut at a request.
    pub fn cuts(&self) -> u64 {
        self.shared.cuts.load(Ordering::SeqCst)
    }

    /// Cuts all open connections. New connections are forwarded.
    pub fn sever(&self) {
        self.shared.severed.send_modify(|times| *times += 1);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Takes the pending action if this request is large enough.
    fn take_action(&self, request: &[u8]) -> Option<ProxyAction> {
        let mut pending = lock(&self.pending);
        let action = pending.as_ref().filter(|pending| request.len() >= pending.at_least_bytes)?.action;
        *pending = None;
        Some(action)
    }

    fn open_connections(&self) -> Vec<Arc<ConnectionState>> {
        lock(&self.connections).iter().filter_map(Weak::upgrade).collect()
    }

    /// Registers a new connection.
    fn new_connection(&self) -> Arc<ConnectionState> {
        let disturbance = *lock(&self.disturbance);
        let connection = Arc::new(ConnectionState::default());
        if disturbance != Disturbance::default() {
            self.disturb(&connection, disturbance);
        }
        let mut connections = lock(&self.connections);
        connections.retain(|connection| connection.strong_count() > 0);
        connections.push(Arc::downgrade(&connection));
        connection
    }

    fn disturb(&self, connection: &ConnectionState, disturbance: Disturbance) {
        *lock(&connection.disturbance) = disturbance;
        self.disturbed.fetch_add(1, Ordering::SeqCst);
    }

    /// Forwards bytes according to the disturbance of the connection.
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
            let (mut severed, connection) = (shared.severed.subscribe(), shared.new_connection());
            tokio::select! {
                // However a connection ends, both sides are closed.
                _ = serve(client, server, &connection, &shared) => {}
                _ = severed.changed() => {}
                () = connection.cut.notified() => {}
            }
        });
    }
}

/// Serves one connection until either side closes it or it is cut. A side whose incoming bytes are dropped does not see
/// that the other side closes the connection.
async fn serve(
    client: TcpStream,
    server: SocketAddr,
    connection: &ConnectionState,
    shared: &Shared,
) -> io::Result<()> {
    let server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    // Dropping a half closes its direction, so both halves are kept until the connection ends.
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let mut requests_task = pin!(forward_requests(&mut from_client, &mut to_server, connection, shared));
    let mut answers_task = pin!(forward_answers(&mut from_server, &mut to_client, connection, shared));
    tokio::select! {
        end = &mut requests_task => {
            let disturbance = connection.disturbance();
            if disturbance.loses_bytes() {
                shared.abandoned.fetch_add(1, Ordering::SeqCst);
            }
            if disturbance.requests == Flow::Swallow { answers_task.await } else { end }
        }
        end = &mut answers_task => {
            let disturbance = connection.disturbance();
            // A server that misses the rest of a request closes the connection itself.
            let end = if disturbance.answers == Flow::Swallow { requests_task.await } else { end };
            if disturbance.loses_bytes() {
                shared.abandoned.fetch_add(1, Ordering::SeqCst);
            }
            end
        }
    }
}

/// The state that both directions of a connection share.
#[derive(Default)]
struct ConnectionState {
    answered: watch::Sender<u64>,
    /// Answers are no longer forwarded to the client.
    drops_answers: AtomicBool,
    /// The client listens for notifications.
    listens: AtomicBool,
    disturbance: Mutex<Disturbance>,
    cut: Notify,
}

impl ConnectionState {
    fn disturbance(&self) -> Disturbance {
        *lock(&self.disturbance)
    }
}

/// Forwards the requests of the client, one by one.
async fn forward_requests(
    client: &mut OwnedReadHalf,
    server: &mut OwnedWriteHalf,
    connection: &ConnectionState,
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
            connection
                .listens
                .fetch_or(request.windows(LISTEN.len()).any(|part| part == LISTEN), Ordering::SeqCst);
            let cut = match shared.take_action(&request) {
                Some(ProxyAction::Cut(cut)) => cut,
                action => {
                    if let Some(ProxyAction::Disturb(disturbance)) = action {
                        shared.disturb(connection, disturbance);
                    }
                    shared.send(connection.disturbance().requests, &request, server).await?;
                    continue;
                }
            };
            match cut {
                Cut::Before => {}
                Cut::Within => server.write_all(&request[..request.len() / 2]).await?,
                Cut::After => {
                    connection.drops_answers.store(true, Ordering::SeqCst);
                    server.write_all(&request).await?;
                    let expected_ready = requests.expected_ready();
                    // It cannot fail, because `connection` owns the sender.
                    let _ = connection
                        .answered
                        .subscribe()
                        .wait_for(|answered| *answered >= expected_ready)
                        .await;
                }
            }
            shared.cuts.fetch_add(1, Ordering::SeqCst);
            return Ok(());
        }
    }
}

/// Forwards the answers of the server.
async fn forward_answers(
    server: &mut OwnedReadHalf,
    client: &mut OwnedWriteHalf,
    connection: &ConnectionState,
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
        connection.answered.send_replace(answers.complete());
        if !connection.drops_answers.load(Ordering::SeqCst) {
            shared.send(connection.disturbance().answers, &bytes[..length], client).await?;
        }
    }
}
