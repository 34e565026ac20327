//! The proxy drops, delays and trickles bytes between a client and a server of the test.

use outlast_chaos::proxy::{Disturbance, Flow, Proxy, Scope};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

const PATIENCE: Duration = Duration::from_secs(20);
/// Long enough for bytes that arrive, short enough to wait for bytes that do not.
const SILENCE: Duration = Duration::from_millis(300);

/// A server that sends nothing by itself, and the proxy in front of it.
struct SilentServer {
    server: TcpListener,
    proxy: Proxy,
}

/// Both ends of a connection through the proxy.
struct Connection {
    client: TcpStream,
    server: TcpStream,
}

impl SilentServer {
    async fn new() -> Self {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy::start(server.local_addr().unwrap()).await.unwrap();
        Self { server, proxy }
    }

    async fn connect(&self) -> Connection {
        let client = TcpStream::connect(self.proxy.address()).await.unwrap();
        let (server, _) = timeout(PATIENCE, self.server.accept()).await.unwrap().unwrap();
        Connection { client, server }
    }

    /// A connection on which the first message has arrived.
    async fn begin(&self) -> Connection {
        let mut connection = self.connect().await;
        let first = [0, 0, 0, 8, 0, 3, 0, 0];
        connection.client.write_all(&first).await.unwrap();
        assert_eq!(read(&mut connection.server, first.len()).await, first);
        connection
    }

    /// A connection on which a request and its answer have arrived.
    async fn open(&self) -> Connection {
        let mut connection = self.begin().await;
        connection.passes().await;
        connection
    }
}

/// A query of this many bytes.
fn request(length: usize) -> Vec<u8> {
    let mut bytes = vec![b'Q'];
    bytes.extend(u32::try_from(length - 1).unwrap().to_be_bytes());
    bytes.resize(length, b'x');
    bytes
}

async fn read(from: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    timeout(PATIENCE, from.read_exact(&mut bytes)).await.expect("the bytes arrive").unwrap();
    bytes
}

/// Whether the connection stays open and no bytes arrive.
async fn is_silent(from: &mut TcpStream) -> bool {
    timeout(SILENCE, from.read(&mut [0; 64])).await.is_err()
}

async fn is_closed(from: &mut TcpStream) -> bool {
    let mut bytes = [0; 64];
    loop {
        match timeout(PATIENCE, from.read(&mut bytes)).await.expect("it is closed") {
            Ok(0) | Err(_) => return true,
            Ok(_) => {}
        }
    }
}

impl Connection {
    async fn send_request(&mut self, length: usize) -> Vec<u8> {
        let request = request(length);
        self.client.write_all(&request).await.unwrap();
        request
    }

    async fn answer(&mut self) -> Vec<u8> {
        let answer = [&b"Z"[..], &[0, 0, 0, 5], b"I"].concat();
        self.server.write_all(&answer).await.unwrap();
        answer
    }

    /// Sends a request and an answer, which must arrive.
    async fn passes(&mut self) {
        let request = self.send_request(20).await;
        assert_eq!(read(&mut self.server, 20).await, request);
        let answer = self.answer().await;
        assert_eq!(read(&mut self.client, answer.len()).await, answer);
    }
}

#[tokio::test]
async fn connections_that_drop_bytes_are_silent_and_new_ones_work() {
    let setup = SilentServer::new().await;
    let mut silent = [setup.open().await, setup.open().await];
    assert_eq!(setup.proxy.disturb(Scope::Open, Disturbance::both(Flow::Swallow)), 2);
    for connection in &mut silent {
        connection.send_request(40).await;
        connection.answer().await;
        assert!(is_silent(&mut connection.server).await && is_silent(&mut connection.client).await);
    }
    assert_eq!((setup.proxy.swallowed_bytes(), setup.proxy.disturbed()), (2 * (40 + 6), 2));
    setup.open().await;

    // Neither end sees that the other end was closed.
    let [mut first, mut second] = silent;
    drop(first.client);
    assert!(is_silent(&mut first.server).await);
    assert_eq!(setup.proxy.abandoned(), 1);
    drop(second.server);
    assert!(is_silent(&mut second.client).await);
    setup.proxy.heal();
    assert!(is_closed(&mut first.server).await && is_closed(&mut second.client).await);
    setup.open().await;
}

#[tokio::test]
async fn one_direction_drops_bytes_and_the_other_passes() {
    let setup = SilentServer::new().await;
    let mut connection = setup.open().await;
    setup.proxy.disturb(Scope::Open, Disturbance::requests(Flow::Swallow));
    connection.send_request(30).await;
    assert!(is_silent(&mut connection.server).await);
    let answer = connection.answer().await;
    assert_eq!(read(&mut connection.client, answer.len()).await, answer);
    drop(connection.client);
    assert!(is_silent(&mut connection.server).await, "the end of the connection is dropped too");

    let mut connection = setup.open().await;
    setup.proxy.disturb(Scope::Open, Disturbance::answers(Flow::Swallow));
    let request = connection.send_request(30).await;
    assert_eq!(read(&mut connection.server, 30).await, request);
    connection.answer().await;
    assert!(is_silent(&mut connection.client).await);
    drop(connection.client);
    assert!(is_closed(&mut connection.server).await, "the server sees that the client closed the connection");
}

#[tokio::test]
async fn a_pending_disturbance_affects_one_large_request() {
    let setup = SilentServer::new().await;
    let (mut aimed, mut other) = (setup.open().await, setup.open().await);
    setup.proxy.disturb_at(Disturbance::both(Flow::Swallow), 1_000);
    aimed.passes().await;
    aimed.send_request(1_000).await;
    assert!(is_silent(&mut aimed.server).await);
    let request = other.send_request(2_000).await;
    assert_eq!(read(&mut other.server, 2_000).await, request, "one connection is enough");
    assert_eq!((setup.proxy.disturbed(), setup.proxy.swallowed_bytes()), (1, 1_000));
}

#[tokio::test]
async fn only_listeners_are_disturbed() {
    let setup = SilentServer::new().await;
    let (mut listener, mut other) = (setup.open().await, setup.open().await);
    let listen = [&b"Q"[..], &[0, 0, 0, 12], b"LISTEN x"].concat();
    listener.client.write_all(&listen).await.unwrap();
    assert_eq!(read(&mut listener.server, listen.len()).await, listen);
    assert_eq!(setup.proxy.disturb(Scope::Listeners, Disturbance::both(Flow::Swallow)), 1);
    listener.answer().await;
    assert!(is_silent(&mut listener.client).await);
    other.passes().await;
}

#[tokio::test]
async fn delayed_bytes_arrive_complete_and_later() {
    const LATER: Duration = Duration::from_millis(200);
    let setup = SilentServer::new().await;
    // New connections are disturbed too.
    assert_eq!(setup.proxy.disturb(Scope::All, Disturbance::both(Flow::Delay(LATER))), 0);
    let mut connection = setup.begin().await;
    let began = Instant::now();
    connection.passes().await;
    assert!(began.elapsed() >= 2 * LATER, "{:?}", began.elapsed());
    setup.proxy.disturb(Scope::All, Disturbance::both(Flow::Delay(10 * PATIENCE)));
    setup.proxy.heal();
    connection.passes().await;
    setup.open().await;
    assert_eq!((setup.proxy.disturbed(), setup.proxy.swallowed_bytes(), setup.proxy.abandoned()), (2, 0, 0));
}

#[tokio::test]
async fn trickled_bytes_arrive_complete_and_in_pieces() {
    const PAUSE: Duration = Duration::from_millis(40);
    let setup = SilentServer::new().await;
    let mut connection = setup.open().await;
    setup.proxy.disturb(Scope::Open, Disturbance::requests(Flow::Trickle { bytes: 10, pause: PAUSE }));
    let began = Instant::now();
    let request = connection.send_request(95).await;
    assert_eq!(read(&mut connection.server, request.len()).await, request);
    assert!(began.elapsed() >= 10 * PAUSE, "{:?}", began.elapsed());
    let answer = connection.answer().await;
    assert_eq!(read(&mut connection.client, answer.len()).await, answer);
}
