//! A network between a store and the server that can cut, swallow, delay and trickle.

use crate::factory::server_url;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The treatment of the bytes of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Pass,
    /// The line reads the bytes and drops them, and does not forward the end of the connection.
    Swallow,
    /// The line delays each piece by this time.
    Delay(Duration),
    /// The line forwards single bytes, and pauses this long after each hundred.
    Trickle(Duration),
    /// The line forwards the bytes before the next `COMMIT` of a lane, and drops the rest.
    SwallowCommit,
}

/// The flow from client to server, and the flow from server to client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flows {
    pub(crate) up: Flow,
    pub(crate) down: Flow,
}

impl Flows {
    pub(crate) const PASS: Self = Self { up: Flow::Pass, down: Flow::Pass };
    pub(crate) const SWALLOW: Self = Self { up: Flow::Swallow, down: Flow::Swallow };
    pub(crate) const SWALLOW_UP: Self = Self { up: Flow::Swallow, down: Flow::Pass };
    pub(crate) const SWALLOW_DOWN: Self = Self { up: Flow::Pass, down: Flow::Swallow };
}

/// A connection through the line.
struct Pipe {
    flows: watch::Sender<Flows>,
    cut: watch::Sender<bool>,
    /// Whether the client has sent `LISTEN`, and whether it has sent a transaction of a lane.
    listens: AtomicBool,
    transacts: AtomicBool,
}

/// The connections that a call changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    All,
    Listener,
    Lanes,
    /// The lane that was opened first.
    OneLane,
}

/// A proxy between a store and the server.
pub(crate) struct Line {
    pub(crate) url: String,
    pub(crate) port: u16,
    pipes: Arc<Mutex<Vec<Arc<Pipe>>>>,
    /// The flows of connections that clients open from now on; `None` refuses them.
    fresh: watch::Sender<Option<Flows>>,
}

impl Line {
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = server_url();
        let (before, place) = url.rsplit_once('@').unwrap();
        let (server, database) = place.split_once('/').unwrap();
        let server = server.to_string();
        let pipes: Arc<Mutex<Vec<Arc<Pipe>>>> = Arc::default();
        let fresh = watch::Sender::new(Some(Flows::PASS));
        let (all, chosen) = (Arc::clone(&pipes), fresh.subscribe());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Some(flows) = *chosen.borrow() else { continue };
                let pipe = Arc::new(Pipe {
                    flows: watch::Sender::new(flows),
                    cut: watch::Sender::new(false),
                    listens: AtomicBool::new(false),
                    transacts: AtomicBool::new(false),
                });
                all.lock().unwrap().push(Arc::clone(&pipe));
                tokio::spawn(carry(client, server.clone(), pipe));
            }
        });
        Self { url: format!("{before}@127.0.0.1:{port}/{database}?sslmode=disable"), port, pipes, fresh }
    }

    /// Cuts all connections.
    pub(crate) fn cut(&self) {
        for pipe in self.pipes.lock().unwrap().drain(..) {
            pipe.cut.send_replace(true);
        }
    }

    /// Sets the flows of the chosen open connections; returns their number.
    pub(crate) fn set(&self, whose: Whose, flows: Flows) -> usize {
        let pipes = self.pipes.lock().unwrap();
        let is_one = |pipe: &&Arc<Pipe>| match whose {
            Whose::All => true,
            Whose::Listener => pipe.listens.load(Ordering::SeqCst),
            Whose::Lanes | Whose::OneLane => pipe.transacts.load(Ordering::SeqCst),
        };
        let most = if whose == Whose::OneLane { 1 } else { usize::MAX };
        let chosen: Vec<_> = pipes.iter().filter(is_one).take(most).collect();
        for pipe in &chosen {
            pipe.flows.send_replace(flows);
        }
        chosen.len()
    }

    /// Sets the flows of connections that clients open from now on; `None` refuses them.
    pub(crate) fn set_fresh(&self, flows: Option<Flows>) {
        self.fresh.send_replace(flows);
    }
}

async fn carry(client: TcpStream, server: String, pipe: Arc<Pipe>) {
    let server = TcpStream::connect(server).await.unwrap();
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let mut cut = pipe.cut.subscribe();
    let both = async {
        tokio::join!(
            pump(from_client, to_server, &pipe, |flows| flows.up, true),
            pump(from_server, to_client, &pipe, |flows| flows.down, false),
        )
    };
    tokio::select! {
        _ = both => {}
        _ = cut.changed() => {}
    }
}

/// Forwards the bytes of one direction, and their end. The end of a swallowed direction is not forwarded.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    pipe: &Pipe,
    flow: fn(&Flows) -> Flow,
    is_up: bool,
) {
    let mut buffer = vec![0; 64 << 10];
    let mut has_swallowed = false;
    loop {
        let count = from.read(&mut buffer).await.unwrap_or(0);
        let bytes = &buffer[..count];
        let now = flow(&pipe.flows.borrow());
        if count == 0 {
            if has_swallowed || now == Flow::Swallow {
                return pending().await;
            }
            // The other side may have closed the connection.
            let _ = to.shutdown().await;
            return;
        }
        if is_up {
            let holds = |word: &[u8]| bytes.windows(word.len()).any(|window| window == word);
            pipe.listens.fetch_or(holds(b"LISTEN "), Ordering::SeqCst);
            pipe.transacts.fetch_or(holds(b"BEGIN ISOLATION") || holds(b"commit_alone_1"), Ordering::SeqCst);
        }
        let written = match now {
            _ if has_swallowed => Ok(()),
            Flow::Pass => to.write_all(bytes).await,
            Flow::Swallow => {
                has_swallowed = true;
                Ok(())
            }
            Flow::Delay(pause) => {
                wait(pause).await;
                to.write_all(bytes).await
            }
            Flow::Trickle(pause) => trickle(&mut to, bytes, pause).await,
            Flow::SwallowCommit => {
                // The message `COMMIT`: its kind, its length, its text and a zero byte.
                let commit = bytes.windows(12).position(|window| window == b"Q\0\0\0\x0bCOMMIT\0");
                has_swallowed = commit.is_some();
                to.write_all(&bytes[..commit.unwrap_or(count)]).await
            }
        };
        if written.is_err() {
            return;
        }
    }
}

async fn trickle(to: &mut OwnedWriteHalf, bytes: &[u8], pause: Duration) -> std::io::Result<()> {
    for hundred in bytes.chunks(100) {
        for byte in hundred.chunks(1) {
            to.write_all(byte).await?;
        }
        wait(pause).await;
    }
    Ok(())
}

/// Waits as long as a slow network would.
async fn wait(pause: Duration) {
    let _ = tokio::time::timeout(pause, pending::<()>()).await;
}
