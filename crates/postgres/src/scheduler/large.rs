//! Large requests: when a lane sends the next one.
//!
//! A request with megabytes keeps a connection and the server busy for a hundred times as long as other requests. Each instance
//! needs several transactions one after the other, so without a limit a few instances with large messages would slow down all other
//! instances.
//!
//! | a large request waits, and | it is sent |
//! |---|---|
//! | no other one is in flight, and no small request came between the ends of the last two | at once |
//! | no other one is in flight, and small requests came | when [`SMALL_SHARE`] times the duration of the last one has passed, or no small request has come for its duration |
//! | no other one is in flight, and it has waited for [`LONGEST_WAIT`] | at once |
//! | others are in flight, and a lane may take it ([`LargeLanes`]) | as soon as the pause is over and no small request has come for [`QUIET`], if all together have [`MOST_BYTES`] at most |
//! | others are in flight otherwise | when one of them has ended |
//!
//! A large request has a transaction of its own, without polls. Two in one transaction would take longer than one after the other:
//! the server writes lists of megabytes to temporary files.

use super::Lane;
use crate::functions;
use crate::request::Request;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// A request with this many bytes is large.
pub(crate) const LARGE_BYTES: usize = functions::LARGE_BYTES.unsigned_abs() as usize;

/// Large requests pause for this many times the duration of the last one.
const SMALL_SHARE: u32 = 5;

/// A large request that has waited this long is sent without a pause, so that its lease does not end first.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// Large requests share the server with each other when no small request has come for this long.
const QUIET: Duration = Duration::from_millis(100);

/// The largest number of bytes of all large requests in flight. The process holds several copies of each byte.
const MOST_BYTES: usize = 8 << 20;

/// The lanes that large requests may use. One lane of [`Lane::All`] is left to small requests, unless it is the only one.
#[derive(Debug, Clone, Copy)]
pub(super) struct LargeLanes {
    all: usize,
    clients: usize,
}

impl LargeLanes {
    pub(super) fn of(lanes: usize, has_client_lane: bool) -> Self {
        let leaves_one = lanes > 1;
        Self {
            all: if leaves_one { lanes - 1 } else { 1 },
            clients: usize::from(has_client_lane && leaves_one),
        }
    }

    fn most(self, lane: Lane) -> usize {
        match lane {
            Lane::All => self.all,
            Lane::Clients => self.clients,
        }
    }
}

/// A large request that is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SentLarge {
    lane: Lane,
    at: Instant,
    bytes: usize,
}

/// Large requests that wait for a lane, and the pause between them.
pub(super) struct LargeRequests {
    lanes: LargeLanes,
    /// The requests, each with the time since which it waits.
    waiting: VecDeque<(Request, Instant)>,
    /// The requests that are in flight.
    sent: Vec<SentLarge>,
    /// The time at which the last large request ended.
    ended_at: Option<Instant>,
    pause: Option<Pause>,
    /// The time at which the last small request came.
    small_at: Option<Instant>,
}

/// The pause after a large request.
#[derive(Debug, Clone, Copy)]
struct Pause {
    since: Instant,
    /// The duration of its transaction.
    took: Duration,
}

impl LargeRequests {
    pub(super) fn new(lanes: LargeLanes) -> Self {
        Self {
            lanes,
            waiting: VecDeque::new(),
            sent: Vec::new(),
            ended_at: None,
            pause: None,
            small_at: None,
        }
    }

    pub(super) fn push(&mut self, request: Request, now: Instant) {
        self.waiting.push_back((request, now));
    }

    /// A small request has come.
    pub(super) fn on_small_request(&mut self, now: Instant) {
        self.small_at = Some(now);
    }

    /// Whether large requests wait that the client lane may take.
    pub(super) fn concern_client_lane(&self) -> bool {
        !self.waiting.is_empty() && self.lanes.clients > 0
    }

    pub(super) fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the client lane has sent a large request.
    pub(super) fn use_client_lane(&self) -> bool {
        self.sent_by(Lane::Clients) > 0
    }

    fn sent_by(&self, lane: Lane) -> usize {
        self.sent.iter().filter(|sent| sent.lane == lane).count()
    }

    /// The time at which this lane sends the next large request. `None`: none waits, or it is not for this lane now.
    pub(super) fn due_at(&self, lane: Lane) -> Option<Instant> {
        let (request, waits_since) = self.waiting.front()?;
        let paused_until = self.paused_until();
        if self.sent.is_empty() {
            // A lone large request leaves the client lane to small client requests.
            let due = paused_until.map_or(*waits_since, |until| until.min(*waits_since + LONGEST_WAIT));
            return (lane == Lane::All).then_some(due);
        }
        let bytes = request.bytes() + self.sent.iter().map(|sent| sent.bytes).sum::<usize>();
        if self.sent_by(lane) >= self.lanes.most(lane) || bytes > MOST_BYTES {
            return None;
        }
        let quiet_at = self.small_at.map(|at| at + QUIET);
        [Some(*waits_since), paused_until, quiet_at].into_iter().flatten().max()
    }

    fn paused_until(&self) -> Option<Instant> {
        let pause = self.pause?;
        let last_small = self.small_at.map_or(pause.since, |at| at.max(pause.since));
        Some((pause.since + pause.took * SMALL_SHARE).min(last_small + pause.took))
    }

    /// Takes the next request for this lane, if it is due or the store closes.
    pub(super) fn take(&mut self, lane: Lane, now: Instant, is_closed: bool) -> Option<(Request, SentLarge)> {
        if !is_closed && self.due_at(lane).is_none_or(|due| now < due) {
            return None;
        }
        let (request, _) = self.waiting.pop_front()?;
        let sent = SentLarge { lane, at: now, bytes: request.bytes() };
        self.sent.push(sent);
        Some((request, sent))
    }

    /// The transaction of a large request has ended.
    pub(super) fn on_done(&mut self, done: SentLarge, now: Instant) {
        if let Some(place) = self.sent.iter().position(|sent| *sent == done) {
            self.sent.swap_remove(place);
        }
        let since = self.ended_at.map(|ended| ended.min(done.at));
        let small_came = self.small_at.is_some_and(|small| since.is_none_or(|since| small >= since));
        let took = now.saturating_duration_since(done.at);
        self.pause = small_came.then_some(Pause { since: now, took });
        self.ended_at = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read_of;
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const MIB: usize = 1 << 20;

    fn large_requests(lanes: usize, has_client_lane: bool) -> LargeRequests {
        LargeRequests::new(LargeLanes::of(lanes, has_client_lane))
    }

    fn take(large: &mut LargeRequests, lane: Lane, at: Instant) -> Option<SentLarge> {
        large.take(lane, at, false).map(|(_, sent)| sent)
    }

    #[test]
    fn large_requests_leave_one_lane_to_small_ones() {
        use Lane::{All, Clients};
        let now = Instant::now();
        let rows: [(usize, bool, &[Lane], &str); 7] = [
            // Lanes, whether there is one for client requests, the lanes that send a large request if they ask in turn, and why.
            (1, false, &[All], "the only lane"),
            (1, true, &[All], "the client lane is left to small client requests"),
            (2, false, &[All], "one lane is left"),
            (2, true, &[All, Clients], "one lane is left, to client requests too"),
            (4, false, &[All, All, All], "one lane is left"),
            (4, true, &[All, Clients, All, All], "one lane is left, to client requests too"),
            (9, true, &[All, Clients, All, All, All, All, All, All], "8 MiB are in flight"),
        ];
        for (lanes, has_client_lane, expected, why) in rows {
            let mut large = large_requests(lanes, has_client_lane);
            (0..20).for_each(|_| large.push(read_of(MIB), now));
            let asked = std::iter::repeat_n([All, Clients], lanes).flatten();
            let sent: Vec<Lane> = asked.filter(|lane| take(&mut large, *lane, now).is_some()).collect();
            assert_eq!(sent, expected, "{lanes} lanes: {why}");
        }
    }

    #[test]
    fn large_requests_are_sent_beside_each_other_up_to_the_bound_of_bytes() {
        let now = Instant::now();
        let rows: [(&[usize], usize, &str); 4] = [
            // Sizes in MiB, and how many are sent at once.
            (&[2, 2, 2, 2, 2], 4, "up to the bound"),
            (&[9, 1], 1, "the first is larger than the bound"),
            (&[1, 8, 1], 1, "the second waits, and the third waits for its turn"),
            (&[1, 7, 1], 2, "the bound"),
        ];
        for (sizes, expected, why) in rows {
            let mut large = large_requests(9, true);
            sizes.iter().for_each(|size| large.push(read_of(size * MIB), now));
            let sent: Vec<SentLarge> = std::iter::from_fn(|| take(&mut large, Lane::All, now)).collect();
            assert_eq!(sent.len(), expected, "{sizes:?}: {why}");
            sent.into_iter().for_each(|sent| large.on_done(sent, now));
            assert_eq!(large.due_at(Lane::All).is_some(), expected < sizes.len(), "{sizes:?}: {why}");
        }
        let mut large = large_requests(2, true);
        [9, 2, 2].into_iter().for_each(|size| large.push(read_of(size * MIB), now));
        let bytes = std::iter::from_fn(|| large.take(Lane::All, now, true)).map(|(_, sent)| sent.bytes / MIB);
        assert_eq!(bytes.collect::<Vec<_>>(), [9, 2, 2], "a store that closes sends all, in their order");
    }

    #[test]
    fn large_request_waits_for_another_one_unless_no_small_request_comes() {
        let now = Instant::now();
        let at = |ms: u32| now + MS * ms;
        let rows: [(&[u32], Option<u32>, u32, &str); 6] = [
            // When small requests come, when the second of three large ones ends, when the next is due, and why. The first two are sent
            // at 200, and the next comes then.
            (&[], None, 200, "no small request came"),
            (&[100], None, 200, "the last small one came 100 ms ago"),
            (&[150], None, 250, "the last small one came 50 ms ago"),
            (&[210], None, 310, "a small one came beside them"),
            (&[210], Some(250), 310, "the pause ends before"),
            (
                &[210],
                Some(500),
                800,
                "the pause of the one that ended ends when none has come for its duration",
            ),
        ];
        for (small, ends, due, why) in rows {
            let mut large = large_requests(3, true);
            (0..3).for_each(|_| large.push(read_of(MIB), at(200)));
            let sent = [Lane::All, Lane::All].map(|lane| take(&mut large, lane, at(200)).unwrap());
            small.iter().for_each(|ms| large.on_small_request(at(*ms)));
            if let Some(ms) = ends {
                large.on_done(sent[1], at(ms));
            }
            assert_eq!(large.due_at(Lane::Clients), Some(at(due)), "{why}");
        }
    }

    #[test]
    fn pause_is_five_times_the_duration_while_small_requests_come() {
        let now = Instant::now();
        let at = |ms: u32| now + MS * ms;
        let rows: [(&[u32], u32, u32, &str); 6] = [
            // When small requests come, when the next large one comes, when it is due, and why. The last took 100 ms.
            (&[], 100, 100, "no small request came"),
            (&[50], 100, 200, "none came for as long as the transaction took"),
            (&[50, 150], 100, 250, "the last small one came at 150"),
            (&[50, 150, 240, 330, 420, 510, 590], 100, 600, "five times the duration"),
            (&[50, 150, 240, 330, 420, 510, 590], 700, 600, "the pause is over when it comes"),
            (&[0], 100, 200, "a small request came when it began"),
        ];
        for (small, comes, due, why) in rows {
            let mut large = large_requests(2, true);
            large.push(read_of(LARGE_BYTES), now);
            let sent = take(&mut large, Lane::All, now).unwrap();
            small.iter().filter(|ms| **ms < 100).for_each(|ms| large.on_small_request(at(*ms)));
            large.on_done(sent, at(100));
            small.iter().filter(|ms| **ms >= 100).for_each(|ms| large.on_small_request(at(*ms)));
            large.push(read_of(LARGE_BYTES), at(comes));
            assert_eq!(large.due_at(Lane::All), Some(at(due)), "{why}");
            assert!(take(&mut large, Lane::All, at(due) - MS).is_none(), "{why}");
            assert!(take(&mut large, Lane::All, at(due.max(comes))).is_some(), "{why}");
        }
    }

    #[test]
    fn pause_follows_each_large_request_during_which_small_ones_came() {
        let now = Instant::now();
        let at = |ms: u32| now + MS * ms;
        let mut large = large_requests(3, true);
        (0..3).for_each(|_| large.push(read_of(MIB), now));
        let sent = [Lane::All, Lane::All].map(|lane| take(&mut large, lane, now).unwrap());
        large.on_small_request(at(50));
        large.on_done(sent[0], at(100));
        large.on_done(sent[1], at(300));
        assert_eq!(large.due_at(Lane::All), Some(at(600)), "the second took 300 ms");
        assert_eq!(
            large.due_at(Lane::Clients),
            None,
            "a lone large request leaves this lane to client requests"
        );
    }

    #[test]
    fn large_request_is_sent_without_a_pause_when_it_has_waited_for_long() {
        let now = Instant::now();
        let mut large = large_requests(2, true);
        large.push(read_of(LARGE_BYTES), now);
        let sent = take(&mut large, Lane::All, now).unwrap();
        large.push(read_of(LARGE_BYTES), now);
        let ended = now + LONGEST_WAIT / 2;
        large.on_small_request(ended);
        large.on_done(sent, ended);
        for n in 0..100 {
            large.on_small_request(ended + LONGEST_WAIT / 100 * n);
        }
        assert_eq!(large.due_at(Lane::All), Some(now + LONGEST_WAIT));
    }
}
