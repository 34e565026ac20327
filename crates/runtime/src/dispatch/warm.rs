//! Executions that are suspended in memory, so that their next turn needs no replay.
//!
//! An entry is good if the store says, under the lease of the turn, that the instance stands exactly where the entry does:
//! same execution, same last event. That holds however many processes share the store. While a commit is in flight nobody
//! can know which of the two it is, so whoever asks waits for the answer.

use outlast_engine::{Execution, KvValue};
use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// What is remembered of an instance.
pub(crate) enum Kept {
    /// Its code waits.
    Suspended(Box<Execution>),
    /// It continued as new; the successor begins with these keys.
    Continued(BTreeMap<String, KvValue>),
    /// It has ended.
    Ended,
}

/// Where an instance stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) execution_id: u64,
    pub(crate) last_event_id: u64,
}

enum Slot {
    Ready(Kept),
    /// A commit is in flight that leads to this position.
    Committing(Arc<Notify>),
}

struct Entry {
    position: Position,
    created_at_ms: Option<u64>,
    slot: Slot,
    used: u64,
    bytes: usize,
}

#[derive(Default)]
struct State {
    entries: HashMap<Arc<str>, Entry>,
    /// By time of use.
    order: BTreeMap<u64, Arc<str>>,
    clock: u64,
    bytes: usize,
}

pub(crate) struct Warm {
    state: Mutex<State>,
    most_entries: usize,
    most_bytes: usize,
}

/// The answer to a lookup.
pub(crate) enum Lookup {
    Found(Kept),
    /// Ask again after this.
    InFlight(Arc<Notify>),
    Unknown,
}

impl Warm {
    pub(crate) fn new(most_entries: usize, most_bytes: usize) -> Self {
        Self { state: Mutex::default(), most_entries, most_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what is known of an instance, if it stands at this position. Anything else that is known of it is wrong and
    /// forgotten.
    ///
    /// `created_at_ms` tells an instance from a later one of the same id. The first commit of an instance decides it; a store
    /// that does not say it then costs one replay.
    pub(crate) fn take(&self, instance: &str, position: Position, created_at_ms: Option<u64>) -> Lookup {
        let mut state = self.lock();
        let Some(entry) = state.entries.get(instance) else { return Lookup::Unknown };
        let in_flight = matches!(entry.slot, Slot::Committing(_));
        let is_another = !in_flight && entry.created_at_ms != created_at_ms;
        if entry.position != position || is_another {
            // A commit in flight will clean up after itself.
            let stale = match entry.slot {
                Slot::Ready(_) => state.remove(instance),
                Slot::Committing(_) => None,
            };
            drop(state);
            drop(stale);
            return Lookup::Unknown;
        }
        if let Slot::Committing(done) = &entry.slot {
            return Lookup::InFlight(Arc::clone(done));
        }
        match state.remove(instance).map(|entry| entry.slot) {
            Some(Slot::Ready(kept)) => Lookup::Found(kept),
            _ => Lookup::Unknown,
        }
    }

    /// Takes a suspended execution that meets the condition, wherever it stands, with the time at which its instance was
    /// created. The commit that made the caller's work visible may not have been confirmed yet: that is waited for.
    pub(crate) async fn take_if(
        &self,
        instance: &str,
        condition: impl Fn(&Execution) -> bool,
    ) -> Option<(Box<Execution>, Option<u64>)> {
        // Any other commit is not worth a wait: what it leads to is a turn of its own.
        const PATIENCE: Duration = Duration::from_millis(50);
        let in_flight = self.in_flight(instance);
        if let Some(done) = in_flight {
            let mut answered = pin!(done.notified());
            answered.as_mut().enable();
            if self.in_flight(instance).is_some() {
                tokio::time::timeout(PATIENCE, answered).await.ok()?;
            }
        }
        let mut state = self.lock();
        match &state.entries.get(instance)?.slot {
            Slot::Ready(Kept::Suspended(execution)) if condition(execution) => {}
            _ => return None,
        }
        match state.remove(instance)? {
            Entry { slot: Slot::Ready(Kept::Suspended(execution)), created_at_ms, .. } => {
                Some((execution, created_at_ms))
            }
            _ => None,
        }
    }

    fn in_flight(&self, instance: &str) -> Option<Arc<Notify>> {
        match &self.lock().entries.get(instance)?.slot {
            Slot::Committing(done) => Some(Arc::clone(done)),
            Slot::Ready(_) => None,
        }
    }

    /// Says that a commit is on its way which leads to this position.
    pub(crate) fn announce(
        &self,
        instance: &Arc<str>,
        position: Position,
        created_at_ms: Option<u64>,
    ) -> Announced<'_> {
        let done = Arc::new(Notify::new());
        let mut state = self.lock();
        let old = state.remove(instance);
        let slot = Slot::Committing(Arc::clone(&done));
        state.insert(Arc::clone(instance), Entry { position, created_at_ms, slot, used: 0, bytes: 0 });
        drop(state);
        drop(old);
        Announced { warm: self, instance: Arc::clone(instance), position, created_at_ms, done }
    }

    /// Number of entries, and their bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let state = self.lock();
        (state.entries.len(), state.bytes)
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        let old = std::mem::take(&mut *self.lock());
        drop(old);
    }
}

impl State {
    fn insert(&mut self, instance: Arc<str>, entry: Entry) {
        self.clock += 1;
        let used = self.clock;
        self.order.insert(used, Arc::clone(&instance));
        self.bytes += entry.bytes;
        self.entries.insert(instance, Entry { used, ..entry });
    }

    fn remove(&mut self, instance: &str) -> Option<Entry> {
        let entry = self.entries.remove(instance)?;
        self.order.remove(&entry.used);
        self.bytes -= entry.bytes;
        Some(entry)
    }

    /// Makes room. Commits in flight are small and few, and stay.
    fn evict(&mut self, most_entries: usize, most_bytes: usize) -> Vec<Entry> {
        let mut evicted = Vec::new();
        let mut passed = 0;
        while self.entries.len() > most_entries || self.bytes > most_bytes {
            let Some(oldest) = self.order.values().nth(passed).cloned() else { break };
            match self.entries.get(&oldest) {
                Some(Entry { slot: Slot::Committing(_), .. }) => passed += 1,
                _ => evicted.extend(self.remove(&oldest)),
            }
        }
        evicted
    }
}

/// A commit in flight. Unless it is confirmed, the instance is forgotten.
pub(crate) struct Announced<'a> {
    warm: &'a Warm,
    instance: Arc<str>,
    position: Position,
    created_at_ms: Option<u64>,
    done: Arc<Notify>,
}

impl Announced<'_> {
    /// The commit was made: this is what is known now. Returns how many others had to go.
    pub(crate) fn confirm(self, kept: Kept, committed_at_ms: Option<u64>) -> usize {
        let bytes = match &kept {
            Kept::Suspended(execution) => execution.bytes(),
            Kept::Continued(kv) => {
                256 + kv.iter().map(|(key, entry)| key.len() + entry.value.len()).sum::<usize>()
            }
            Kept::Ended => 256,
        };
        let mut state = self.warm.lock();
        let evicted = if self.is_current(&state) {
            state.remove(&self.instance);
            // The commit of a first turn creates the instance.
            let (position, created_at_ms) = (self.position, self.created_at_ms.or(committed_at_ms));
            let entry = Entry { position, created_at_ms, slot: Slot::Ready(kept), used: 0, bytes };
            state.insert(Arc::clone(&self.instance), entry);
            state.evict(self.warm.most_entries, self.warm.most_bytes)
        } else {
            Vec::new()
        };
        drop(state);
        // Destructors of the author's code run without the lock.
        evicted.len()
    }

    fn is_current(&self, state: &State) -> bool {
        let entry = state.entries.get(&self.instance);
        entry.is_some_and(
            |entry| matches!(&entry.slot, Slot::Committing(done) if Arc::ptr_eq(done, &self.done)),
        )
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        let mut state = self.warm.lock();
        if self.is_current(&state) {
            state.remove(&self.instance);
        }
        drop(state);
        self.done.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::fixture::busy;

    const HERE: Position = Position { execution_id: 1, last_event_id: 5 };
    const THERE: Position = Position { execution_id: 1, last_event_id: 7 };

    fn put(warm: &Warm, instance: &str, position: Position, created_at_ms: Option<u64>) -> usize {
        warm.announce(&instance.into(), position, created_at_ms).confirm(Kept::Ended, None)
    }

    fn answer(lookup: Lookup) -> &'static str {
        match lookup {
            Lookup::Found(_) => "found",
            Lookup::InFlight(_) => "in flight",
            Lookup::Unknown => "unknown",
        }
    }

    #[test]
    fn only_the_same_position_of_the_same_instance_is_found_and_once() {
        let warm = Warm::new(10, 1 << 20);
        put(&warm, "a", HERE, None);
        assert_eq!(answer(warm.take("b", HERE, None)), "unknown");
        assert_eq!(answer(warm.take("a", HERE, None)), "found");
        assert_eq!(answer(warm.take("a", HERE, None)), "unknown", "it was taken");
        put(&warm, "a", HERE, None);
        assert_eq!(answer(warm.take("a", HERE, Some(3))), "unknown", "nobody said when it was created");
        warm.announce(&"a".into(), HERE, None).confirm(Kept::Ended, Some(3));
        assert_eq!(answer(warm.take("a", HERE, Some(3))), "found", "its first commit said it");
        put(&warm, "a", HERE, None);
        assert_eq!(answer(warm.take("a", THERE, None)), "unknown");
        assert_eq!(answer(warm.take("a", HERE, None)), "unknown", "what is wrong is forgotten");
        put(&warm, "a", HERE, Some(3));
        assert_eq!(answer(warm.take("a", HERE, Some(4))), "unknown", "deleted, and another one has its id");
        assert_eq!(warm.size(), (0, 0));
    }

    #[test]
    fn a_commit_in_flight_is_waited_for_and_a_failed_one_forgotten() {
        let warm = Warm::new(10, 1 << 20);
        let announced = warm.announce(&"a".into(), HERE, None);
        assert_eq!(answer(warm.take("a", HERE, None)), "in flight");
        assert_eq!(answer(warm.take("a", THERE, None)), "unknown");
        assert_eq!(answer(warm.take("a", HERE, None)), "in flight", "it cleans up after itself");
        drop(announced);
        assert_eq!(answer(warm.take("a", HERE, None)), "unknown");
        let lost = warm.announce(&"a".into(), HERE, None);
        let newer = warm.announce(&"a".into(), THERE, None);
        assert_eq!(lost.confirm(Kept::Ended, None), 0);
        assert_eq!(
            answer(warm.take("a", THERE, None)),
            "in flight",
            "a late answer does not displace a newer commit"
        );
        newer.confirm(Kept::Ended, None);
        assert_eq!(answer(warm.take("a", THERE, None)), "found");
    }

    #[test]
    fn the_least_recently_used_goes_first_by_count_and_by_bytes() {
        let warm = Warm::new(2, 1 << 20);
        put(&warm, "a", HERE, None);
        put(&warm, "b", HERE, None);
        put(&warm, "a", THERE, None);
        let in_flight = warm.announce(&"c".into(), HERE, None);
        assert_eq!(put(&warm, "d", HERE, None), 2, "one too many, and one that cannot go");
        assert_eq!(answer(warm.take("b", HERE, None)), "unknown");
        assert_eq!(answer(warm.take("a", THERE, None)), "unknown");
        drop(in_flight);
        assert_eq!(answer(warm.take("d", HERE, None)), "found");

        let warm = Warm::new(10, 600);
        put(&warm, "a", HERE, None);
        put(&warm, "b", HERE, None);
        assert_eq!(put(&warm, "c", HERE, None), 1);
        assert_eq!(warm.size(), (2, 512));
        let keys =
            BTreeMap::from([("key".to_string(), KvValue { value: "x".repeat(900), updated_at_ms: 1 })]);
        let evicted = warm.announce(&"big".into(), HERE, None).confirm(Kept::Continued(keys), None);
        assert_eq!((evicted, warm.size()), (3, (0, 0)), "larger than all room: not kept either");
    }

    #[test]
    fn what_is_older_than_a_commit_in_flight_is_not_all_that_can_go() {
        let warm = Warm::new(2, 1 << 20);
        let in_flight = warm.announce(&"a".into(), HERE, None);
        put(&warm, "b", HERE, None);
        assert_eq!(put(&warm, "c", HERE, None), 1);
        assert_eq!(answer(warm.take("a", HERE, None)), "in flight");
        assert_eq!(answer(warm.take("b", HERE, None)), "unknown");
        assert_eq!(answer(warm.take("c", HERE, None)), "found");
        drop(in_flight);
    }

    #[test]
    fn room_may_be_filled_to_the_last_byte() {
        let keys =
            BTreeMap::from([("key".to_string(), KvValue { value: "value".to_string(), updated_at_ms: 1 })]);
        let warm = Warm::new(10, 256 + 264);
        put(&warm, "a", HERE, None);
        assert_eq!(warm.announce(&"b".into(), HERE, None).confirm(Kept::Continued(keys), None), 0);
        assert_eq!(warm.size(), (2, 256 + 264));
        warm.clear();
        assert_eq!(warm.size(), (0, 0));
        assert_eq!(answer(warm.take("a", HERE, None)), "unknown");
    }

    fn suspend(announced: Announced<'_>) {
        announced.confirm(Kept::Suspended(Box::new(busy())), Some(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspended_execution_is_taken_by_whom_it_waits_for() {
        let warm = Warm::new(10, 1 << 20);
        put(&warm, "ended", HERE, None);
        assert!(warm.take_if("ended", |_| true).await.is_none());
        assert!(warm.take_if("unknown", |_| true).await.is_none());
        suspend(warm.announce(&"a".into(), HERE, None));
        assert!(warm.take_if("a", |_| false).await.is_none());
        let (execution, created_at_ms) = warm.take_if("a", |_| true).await.expect("it was left there");
        assert_eq!((execution.instance(), created_at_ms), ("i", Some(3)));
        assert!(warm.take_if("a", |_| true).await.is_none(), "it was taken");
        assert_eq!(warm.size().0, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_commit_is_waited_for_by_whom_it_called_and_not_for_ever() {
        let warm = Warm::new(10, 1 << 20);
        let announced = warm.announce(&"a".into(), HERE, None);
        let begun = tokio::time::Instant::now();
        assert!(warm.take_if("a", |_| true).await.is_none());
        assert!(begun.elapsed() >= Duration::from_millis(50));
        let (taken, ()) = tokio::join!(warm.take_if("a", |_| true), async { suspend(announced) });
        assert!(taken.is_some());
        let lost = warm.announce(&"a".into(), HERE, None);
        let (taken, ()) = tokio::join!(warm.take_if("a", |_| true), async { drop(lost) });
        assert!(taken.is_none());
    }
}
