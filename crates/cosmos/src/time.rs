//! The time of the store, and the order of items.
//!
//! The time is the machine's clock, corrected by the clock of Cosmos DB: a machine whose clock is wrong by more than a second and
//! a round trip, which is the precision of the service's stamps, uses the clock of the service. Machines with synchronised clocks
//! are not corrected.

use crate::clock::ServiceClock;
use outlast_provider::{Clock, SystemClock};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;

pub(crate) struct Time {
    /// The store's time, if it was given.
    given: Option<Arc<dyn Clock>>,
    machine: Arc<dyn Clock>,
    service: Mutex<ServiceClock>,
    /// The last number of an item.
    last: AtomicU64,
    opened: Instant,
}

impl Time {
    pub(crate) fn new(given: Option<Arc<dyn Clock>>, machine: Option<Arc<dyn Clock>>) -> Self {
        let machine = machine.unwrap_or_else(|| Arc::new(SystemClock));
        Self { given, machine, service: Mutex::default(), last: AtomicU64::new(0), opened: Instant::now() }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        match &self.given {
            Some(clock) => clock.now_ms(),
            None => self.service().corrected_ms(self.machine.now_ms()),
        }
    }

    /// A time that is never set: milliseconds since the store was opened. With a given clock, the time of that clock.
    pub(crate) fn monotonic_ms(&self) -> u64 {
        match &self.given {
            Some(clock) => clock.now_ms(),
            None => outlast_provider::saturating_ms(self.opened.elapsed()),
        }
    }

    /// Whether the store's time was given. A given time may be virtual, and then does not advance by itself.
    pub(crate) fn is_given(&self) -> bool {
        self.given.is_some()
    }

    /// The local time at which a request is sent or answered.
    pub(crate) fn local_ms(&self) -> u64 {
        self.machine.now_ms()
    }

    /// Learns from a write that the service stamped.
    pub(crate) fn observe(&self, sent_ms: u64, received_ms: u64, ts_seconds: u64) {
        self.service().observe(sent_ms, received_ms, ts_seconds);
    }

    /// A number that is larger than all before it, in this process and, where clocks agree, in others. It does not depend on the
    /// time of the store, which may be set back.
    pub(crate) fn sequence(&self) -> u64 {
        let now = self.machine.now_ms().saturating_mul(1_000);
        let next = |last: u64| Some(now.max(last.saturating_add(1)));
        let before = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        // The closure never refuses.
        now.max(before.unwrap_or_default().saturating_add(1))
    }

    fn service(&self) -> std::sync::MutexGuard<'_, ServiceClock> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_numbered_in_order() {
        let time = Time::new(None, None);
        let numbers: Vec<u64> = (0..1_000).map(|_| time.sequence()).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_clock_far_from_that_of_the_service_is_corrected() {
        let time = Time::new(None, None);
        let now = time.local_ms();
        assert!(time.now_ms().abs_diff(now) < 100, "nothing is known yet");
        time.observe(now, now + 10, (now + 60_000) / 1_000);
        assert!(time.now_ms() > now + 58_000, "the machine is a minute late");
        time.observe(now, now + 10, now / 1_000);
        assert!(time.now_ms().abs_diff(now) < 1_200, "a synchronised clock is used as it is");
    }
}
