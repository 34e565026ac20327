//! What happens to the bytes of a connection that stays open.

use std::time::Duration;
use tokio::io::{self, AsyncWrite, AsyncWriteExt as _};
use tokio::time::sleep;

/// What happens to the bytes of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flow {
    /// They arrive.
    #[default]
    Pass,
    /// They do not arrive, and neither does the end of the connection. The sender is told nothing.
    Swallow,
    /// Each piece arrives this much later.
    Delay(Duration),
    /// They arrive in pieces of this many bytes, with this pause before each.
    Trickle {
        /// The length of a piece.
        bytes: usize,
        /// The time from one piece to the next.
        pause: Duration,
    },
}

impl Flow {
    /// Sends bytes on, or does what else there is to do with them.
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

/// What happens to both directions of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disturbance {
    /// From the client to the server.
    pub requests: Flow,
    /// From the server to the client.
    pub answers: Flow,
}

impl Disturbance {
    /// The same in both directions.
    pub const fn both(flow: Flow) -> Self {
        Self { requests: flow, answers: flow }
    }

    /// Only from the client to the server.
    pub const fn requests(flow: Flow) -> Self {
        Self { requests: flow, answers: Flow::Pass }
    }

    /// Only from the server to the client.
    pub const fn answers(flow: Flow) -> Self {
        Self { requests: Flow::Pass, answers: flow }
    }

    pub(super) fn swallows(self) -> bool {
        self.requests == Flow::Swallow || self.answers == Flow::Swallow
    }
}

/// Connections that a disturbance is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    /// Those that are open. New ones are let through.
    Open,
    /// Those that are open, and new ones until the proxy is healed.
    All,
    /// Those that are open and listen for notifications.
    Listeners,
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;
    use tokio::time::Instant;

    /// The pieces in which 25 bytes arrive, each with its length and the milliseconds until then.
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
    async fn bytes_arrive_when_and_as_they_are_meant_to() {
        let pause = Duration::from_millis(40);
        assert_eq!(pieces(Flow::Pass).await, [(25, 0)]);
        assert_eq!(pieces(Flow::Swallow).await, []);
        assert_eq!(pieces(Flow::Delay(pause)).await, [(25, 40)]);
        assert_eq!(pieces(Flow::Trickle { bytes: 10, pause }).await, [(10, 40), (10, 80), (5, 120)]);
        assert_eq!(pieces(Flow::Trickle { bytes: 0, pause }).await.len(), 25, "a piece has a byte");
    }
}
