//! The proxy that swallows, delays and trickles, between a client and a server of the test.

use outlast_chaos::proxy::{Disturbance, Flow, Proxy, Whom};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

const PATIENCE: Duration = Duration::from_secs(20);
/// Long enough for what arrives, short enough to wait for what does not.
const SILENCE: Duration = Duration::from_millis(300);

/// A server without a word of its own, and the proxy in front of it.
struct World {
    server: TcpListener,
    proxy: Proxy,
}

/// Both ends of a connection through the proxy, behind the first message of the protocol.
struct Ends {
    client: TcpStream,
    server: TcpStream,
}

impl World {
    async fn new() -> Self {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy::start(server.local_addr().unwrap()).await.unwrap();
        Self { server, proxy }
    }

    async fn connect(&self) -> Ends {
        let client = TcpStream::connect(self.proxy.address()).await.unwrap();
        let (server, _) = timeout(PATIENCE, self.server.accept()).await.unwrap().unwrap();
        Ends { client, server }
    }

    /// A connection on which the first message has arrived.
    async fn begin(&self) -> Ends {
        let mut ends = self.connect().await;
        let first = [0, 0, 0, 8, 0, 3, 0, 0];
        ends.client.write_all(&first).await.unwrap();
        assert_eq!(read(&mut ends.server, first.len()).await, first);
        ends
    }

    /// A connection on which a request and its answer have arrived.
    async fn open(&self) -> Ends {
        let mut ends = self.begin().await;
        ends.passes().await;
        ends
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

/// Whether the connection is still open, and nothing arrives on it.
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

impl Ends {
    async fn ask(&mut self, length: usize) -> Vec<u8> {
        let request = request(length);
        self.client.write_all(&request).await.unwrap();
        request
    }

    async fn answer(&mut self) -> Vec<u8> {
        let answer = [&b"Z"[..], &[0, 0, 0, 5], b"I"].concat();
        self.server.write_all(&answer).await.unwrap();
        answer
    }

    /// A request and its answer arrive.
    async fn passes(&mut self) {
        let request = self.ask(20).await;
        assert_eq!(read(&mut self.server, 20).await, request);
        let answer = self.answer().await;
        assert_eq!(read(&mut self.client, answer.len()).await, answer);
    }
}

#[tokio::test]
async fn swallowed_connections_are_silent_and_new_ones_work() {
    let world = World::new().await;
    let mut silent = [world.open().await, world.open().await];
    assert_eq!(world.proxy.disturb(Whom::Open, Disturbance::both(Flow::Swallow)), 2);
    for ends in &mut silent {
        ends.ask(40).await;
        ends.answer().await;
        assert!(is_silent(&mut ends.server).await && is_silent(&mut ends.client).await);
    }
    assert_eq!((world.proxy.swallowed_bytes(), world.proxy.disturbed()), (2 * (40 + 6), 2));
    world.open().await;

    // Neither end sees that the other one is gone.
    let [mut first, mut second] = silent;
    drop(first.client);
    assert!(is_silent(&mut first.server).await);
    assert_eq!(world.proxy.abandoned(), 1);
    drop(second.server);
    assert!(is_silent(&mut second.client).await);
    world.proxy.heal();
    assert!(is_closed(&mut first.server).await && is_closed(&mut second.client).await);
    world.open().await;
}

#[tokio::test]
async fn one_direction_is_swallowed_and_the_other_passes() {
    let world = World::new().await;
    let mut ends = world.open().await;
    world.proxy.disturb(Whom::Open, Disturbance::requests(Flow::Swallow));
    ends.ask(30).await;
    assert!(is_silent(&mut ends.server).await);
    let answer = ends.answer().await;
    assert_eq!(read(&mut ends.client, answer.len()).await, answer);
    drop(ends.client);
    assert!(is_silent(&mut ends.server).await, "the end of the connection is swallowed too");

    let mut ends = world.open().await;
    world.proxy.disturb(Whom::Open, Disturbance::answers(Flow::Swallow));
    let request = ends.ask(30).await;
    assert_eq!(read(&mut ends.server, 30).await, request);
    ends.answer().await;
    assert!(is_silent(&mut ends.client).await);
    drop(ends.client);
    assert!(is_closed(&mut ends.server).await, "the server sees that the client is gone");
}

#[tokio::test]
async fn aimed_disturbance_begins_with_a_large_request_and_ends_other_aims() {
    let world = World::new().await;
    let (mut aimed, mut other) = (world.open().await, world.open().await);
    world.proxy.aim_disturbance(Disturbance::both(Flow::Swallow), 1_000);
    aimed.passes().await;
    aimed.ask(1_000).await;
    assert!(is_silent(&mut aimed.server).await);
    let request = other.ask(2_000).await;
    assert_eq!(read(&mut other.server, 2_000).await, request, "one connection is enough");
    assert_eq!((world.proxy.disturbed(), world.proxy.swallowed_bytes()), (1, 1_000));
}

#[tokio::test]
async fn only_listeners_are_disturbed() {
    let world = World::new().await;
    let (mut listener, mut other) = (world.open().await, world.open().await);
    let listen = [&b"Q"[..], &[0, 0, 0, 12], b"LISTEN x"].concat();
    listener.client.write_all(&listen).await.unwrap();
    assert_eq!(read(&mut listener.server, listen.len()).await, listen);
    assert_eq!(world.proxy.disturb(Whom::Listeners, Disturbance::both(Flow::Swallow)), 1);
    listener.answer().await;
    assert!(is_silent(&mut listener.client).await);
    other.passes().await;
}

#[tokio::test]
async fn delayed_bytes_arrive_whole_and_later() {
    const LATER: Duration = Duration::from_millis(200);
    let world = World::new().await;
    // New connections are disturbed too.
    assert_eq!(world.proxy.disturb(Whom::All, Disturbance::both(Flow::Delay(LATER))), 0);
    let mut ends = world.begin().await;
    let began = Instant::now();
    ends.passes().await;
    assert!(began.elapsed() >= 2 * LATER, "{:?}", began.elapsed());
    world.proxy.disturb(Whom::All, Disturbance::both(Flow::Delay(10 * PATIENCE)));
    world.proxy.heal();
    ends.passes().await;
    world.open().await;
    assert_eq!((world.proxy.disturbed(), world.proxy.swallowed_bytes(), world.proxy.abandoned()), (2, 0, 0));
}

#[tokio::test]
async fn trickled_bytes_arrive_whole_and_a_few_at_a_time() {
    const PAUSE: Duration = Duration::from_millis(40);
    let world = World::new().await;
    let mut ends = world.open().await;
    world.proxy.disturb(Whom::Open, Disturbance::requests(Flow::Trickle { bytes: 10, pause: PAUSE }));
    let began = Instant::now();
    let request = ends.ask(95).await;
    assert_eq!(read(&mut ends.server, request.len()).await, request);
    assert!(began.elapsed() >= 10 * PAUSE, "{:?}", began.elapsed());
    let answer = ends.answer().await;
    assert_eq!(read(&mut ends.client, answer.len()).await, answer);
}
