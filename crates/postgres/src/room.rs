//! Bounds the requests that wait inside of the store. Without room, a caller waits before its request is submitted.

use crate::request::Request;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// A request takes up one unit, and one more for each of these bytes of payload.
const UNIT: usize = 16 << 10;
/// Units for requests of one kind: 4,096 small ones are sixteen full transactions, and large ones hold no more than about 64 MiB.
const UNITS: u32 = 4_096;

/// Clients and lease holders have separate room: thousands of waiting starts must not keep a commit or a renewal out.
pub(crate) struct Room {
    client_requests: Arc<Semaphore>,
    holders: Arc<Semaphore>,
}

impl Default for Room {
    fn default() -> Self {
        let all = || Arc::new(Semaphore::new(UNITS as usize));
        Self { client_requests: all(), holders: all() }
    }
}

impl Room {
    /// Waits until there is room, and reserves it until the request is answered.
    pub(crate) async fn enter(&self, request: &mut Request) {
        let place = if request.is_client_request() { &self.client_requests } else { &self.holders };
        // The semaphore is never closed.
        if let Ok(room) = Arc::clone(place).acquire_many_owned(units(request.bytes())).await {
            request.keep(room);
        }
    }

    /// Free units for client requests and for holders of leases.
    #[cfg(feature = "test-hooks")]
    pub(crate) fn free(&self) -> [usize; 2] {
        [self.client_requests.available_permits(), self.holders.available_permits()]
    }
}

/// A request that is larger than all the room takes all of it.
fn units(bytes: usize) -> u32 {
    u32::try_from(bytes / UNIT).map_or(UNITS, |units| units.saturating_add(1).min(UNITS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Reply;
    use crate::request::{Attempts, Lease, Message, Renew};
    use futures::FutureExt;
    use outlast_provider_kit::MessageRow;
    use tokio::sync::oneshot;

    fn message(bytes: usize) -> Request {
        let row = MessageRow {
            instance_id: "i".to_string(),
            work_item: "x".repeat(bytes),
            not_before: 0,
            begins: false,
        };
        let reply = Reply::new("enqueue", oneshot::channel().0);
        Request::Message(Message { row, begins: false, delay_ms: 0, most: None, reply })
    }

    fn renewal() -> Request {
        let lease = Lease::Activity { secret: [0; 16], id: 1 };
        let reply = Reply::new("renew", oneshot::channel().0);
        Request::Renew(Renew { lease, extend_ms: 1, reply, attempts: Attempts::default() })
    }

    /// The requests that fit in, which must be at most `most`.
    fn fill(room: &Room, most: usize, request: impl Fn() -> Request) -> Vec<Request> {
        let mut all = Vec::new();
        loop {
            let mut next = request();
            if room.enter(&mut next).now_or_never().is_none() {
                return all;
            }
            all.push(next);
            assert!(all.len() <= most, "more than {most} requests have room");
        }
    }

    #[test]
    fn requests_beyond_the_bound_wait_and_leave_room_to_holders_of_leases() {
        let room = Room::default();
        let mut waiting = fill(&room, 4_096, || message(10));
        assert_eq!(waiting.len(), 4_096);
        assert!(room.enter(&mut renewal()).now_or_never().is_some(), "a renewal has room of its own");
        drop(waiting.pop());
        assert!(room.enter(&mut message(10)).now_or_never().is_some(), "an answered request makes room");
    }

    #[test]
    fn large_requests_are_bounded_by_their_bytes() {
        let room = Room::default();
        let bytes: usize = fill(&room, 32, || message(2 << 20)).iter().map(Request::bytes).sum();
        assert!((60 << 20..=64 << 20).contains(&bytes), "{bytes}");
        let room = Room::default();
        let alone = fill(&room, 1, || message(100 << 20));
        assert_eq!(alone.len(), 1, "one that is larger than all the room goes alone");
    }
}
