//! Large requests: when a lane sends the next one.
//!
//! A request with megabytes keeps a connection and the server busy for a hundred times as long as others. Each instance needs
//! several transactions one after the other, so without a limit a few instances with large messages would slow down all others.
//!
//! | a large request waits, and | it is sent |
//! |---|---|
//! | another one is on its way | when the transaction of that one has ended |
//! | no small request came between the ends of the last two | at once |
//! | small requests came | when [`SMALL_SHARE`] times the duration of the last one has passed, or no small request has come for its duration |
//! | it has waited for [`LONGEST_WAIT`] | at once |
//!
//! A large request has a transaction of its own, without polls. Two in one transaction would take longer than one after the other:
//! the server writes lists of megabytes to temporary files.

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

/// Large requests that wait for a lane, and the pause between them.
#[derive(Default)]
pub(super) struct LargeRequests {
    /// The requests, each with the time since which it waits.
    waiting: VecDeque<(Request, Instant)>,
    /// Large requests that are on their way. More than one only when the store closes.
    running: usize,
    /// When the last of them was sent.
    began_at: Option<Instant>,
    pause: Option<Pause>,
    /// When a small request came last, if one came since the last large one ended.
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
    pub(super) fn push(&mut self, request: Request, now: Instant) {
        self.waiting.push_back((request, now));
    }

    /// A small request has come.
    pub(super) fn on_small_request(&mut self, now: Instant) {
        self.small_at = Some(now);
    }

    /// When the next large request is sent. `None`: none waits, or one is on its way.
    pub(super) fn due_at(&self) -> Option<Instant> {
        let (_, waits_since) = self.waiting.front().filter(|_| self.running == 0)?;
        let Some(pause) = self.pause else { return Some(*waits_since) };
        let last_small = self.small_at.map_or(pause.since, |at| at.max(pause.since));
        let paused_until = (pause.since + pause.took * SMALL_SHARE).min(last_small + pause.took);
        Some(paused_until.min(*waits_since + LONGEST_WAIT))
    }

    /// Takes the next request, if it is due or the store closes.
    pub(super) fn take(&mut self, now: Instant, is_closed: bool) -> Option<Request> {
        if !is_closed && self.due_at().is_none_or(|due| now < due) {
            return None;
        }
        let (request, _) = self.waiting.pop_front()?;
        self.running += 1;
        self.began_at = Some(now);
        Some(request)
    }

    /// The transaction of a large request has ended.
    pub(super) fn on_done(&mut self, now: Instant) {
        self.running -= 1;
        let took = self.began_at.map_or(Duration::ZERO, |began| now.saturating_duration_since(began));
        self.pause = self.small_at.take().map(|_| Pause { since: now, took });
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read_of;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn large_requests_are_sent_one_at_a_time_in_their_order() {
        let now = Instant::now();
        let mut large = LargeRequests::default();
        let take = |large: &mut LargeRequests, at, is_closed| {
            large.take(at, is_closed).map(|request| request.bytes())
        };
        assert_eq!((take(&mut large, now, false), large.due_at()), (None, None));
        let sizes = [LARGE_BYTES, 9 << 20, 2 << 20];
        sizes.into_iter().for_each(|size| large.push(read_of(size), now));
        assert_eq!(take(&mut large, now, false), Some(LARGE_BYTES));
        assert_eq!(take(&mut large, now + LONGEST_WAIT, false), None, "one is on its way");
        large.on_done(now);
        assert_eq!(take(&mut large, now, false), Some(9 << 20));
        assert_eq!(take(&mut large, now, true), Some(2 << 20), "a store that closes sends all");
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
            let mut large = LargeRequests::default();
            large.push(read_of(LARGE_BYTES), now);
            assert!(large.take(now, false).is_some());
            small.iter().filter(|ms| **ms < 100).for_each(|ms| large.on_small_request(at(*ms)));
            large.on_done(at(100));
            small.iter().filter(|ms| **ms >= 100).for_each(|ms| large.on_small_request(at(*ms)));
            large.push(read_of(LARGE_BYTES), at(comes));
            assert_eq!(large.due_at(), Some(at(due)), "{why}");
            assert!(large.take(at(due) - MS, false).is_none(), "{why}");
            assert!(large.take(at(due.max(comes)), false).is_some(), "{why}");
        }
    }

    #[test]
    fn large_request_is_sent_without_a_pause_when_it_has_waited_for_long() {
        let now = Instant::now();
        let mut large = LargeRequests::default();
        large.push(read_of(LARGE_BYTES), now);
        large.take(now, false);
        large.push(read_of(LARGE_BYTES), now);
        let ended = now + LONGEST_WAIT / 2;
        large.on_small_request(ended);
        large.on_done(ended);
        for n in 0..100 {
            large.on_small_request(ended + LONGEST_WAIT / 100 * n);
        }
        assert_eq!(large.due_at(), Some(now + LONGEST_WAIT));
    }
}
