//! Disturbances of connections that stay open.

use std::time::Duration;
use tokio::io::{self, AsyncWrite, AsyncWriteExt as _};
use tokio::time::sleep;

/// The treatment of the bytes of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flow {
    /// Bytes are forwarded.
    #[default]
    Pass,
    /// Bytes are dropped, and so is the end of the connection. The sender receives no error.
    Swallow,
    /// Each piece is forwarded after this delay.
    Delay(Duration),
    /// Bytes are forwarded in pieces, with a pause before each.
    Trickle {
        /// The length of a piece.
        bytes: usize,
        /// The time from one piece to the next.
        pause: Duration,
    },
}

impl Flow {
    /// Forwards, delays or drops bytes.
    pub(super) async fn send(self, bytes: &[u8], to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        match self {
            Self::Pass => to.write_all(bytes).await,
            Self::Swallow => Ok(()),
            Self::Delay(time) => {
                sleep(time).await;
                to.write_all(bytes).await
            }
            Self::Trickle { bytes: length, pause } => {
                for piece in bytes.chunks(length.max(1)) {
                    sleep(pause).await;
                    to.write_all(piece).await?;
                }
                Ok(())
            }
        }
    }
}

/// The treatment of both directions of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disturbance {
    /// From the client to the server.
    pub requests: Flow,
    /// From the server to the client.
    pub answers: Flow,
}

impl Disturbance {
    /// The same flow in both directions.
    pub const fn both(flow: Flow) -> Self {
        Self { requests: flow, answers: flow }
    }

    /// The flow from the client to the server; the other direction is forwarded.
    pub const fn requests(flow: Flow) -> Self {
        Self { requests: flow, answers: Flow::Pass }
    }

    /// The flow from the server to the client; the other direction is forwarded.
    pub const fn answers(flow: Flow) -> Self {
        Self { requests: Flow::Pass, answers: flow }
    }

    pub(super) fn loses_bytes(self) -> bool {
        self.requests == Flow::Swallow || self.answers == Flow::Swallow
    }
}

/// The connections that a disturbance affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Open connections. New connections are forwarded.
    Open,
    /// Open connections, and new ones until the proxy is healed.
    All,
    /// Open connections that listen for notifications.
    Listeners,
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;
    use tokio::time::Instant;

    /// The pieces in which 25 bytes arrive: length and milliseconds of each.
    async fn pieces(flow: Flow) -> Vec<(usize, u128)> {
        let (mut to, mut from) = io::duplex(64);
        let began = Instant::now();
        let send = async move { flow.send(&[7; 25], &mut to).await };
        let receive = async {
            let mut pieces = Vec::new();
            let mut bytes = [0; 64];
            loop {
                match from.read(&mut bytes).await.unwrap() {
                    0 => return pieces,
                    length => pieces.push((length, began.elapsed().as_millis())),
                }
            }
        };
        let (sent, pieces) = tokio::join!(send, receive);
        sent.unwrap();
        pieces
    }

    #[tokio::test(start_paused = true)]
    async fn each_flow_forwards_delays_or_drops_bytes() {
        let pause = Duration::from_millis(40);
        assert_eq!(pieces(Flow::Pass).await, [(25, 0)]);
        assert_eq!(pieces(Flow::Swallow).await, []);
        assert_eq!(pieces(Flow::Delay(pause)).await, [(25, 40)]);
        assert_eq!(pieces(Flow::Trickle { bytes: 10, pause }).await, [(10, 40), (10, 80), (5, 120)]);
        assert_eq!(
            pieces(Flow::Trickle { bytes: 0, pause }).await.len(),
            25,
            "a piece has at least one byte"
        );
    }
}
