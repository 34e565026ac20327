//! The warm cache: suspended executions in memory, whose next turn needs no replay.
//!
//! A turn uses an entry only if the store reported, under the lease of the turn, the same execution, last event and creation time as
//! the entry has. This holds for any number of processes on one store. While a commit of this process is in progress, the entry
//! has the position that the commit leads to, and a turn at this position waits until the commit is answered.

use outlast_engine::{Execution, KvValue};
use outlast_model::defect::{self, Defect};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The entry of an instance.
pub(crate) enum Kept {
    /// The current execution, which waits for messages.
    Suspended(Box<Execution>),
    /// The execution continued as new; its successor starts with these keys.
    Continued(BTreeMap<String, KvValue>),
    /// The instance has ended.
    Ended,
}

/// The position of an instance: its current execution and the last event of that execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) execution_id: u64,
    pub(crate) last_event_id: u64,
}

enum Content {
    Ready(Kept),
    /// A commit that leads to the position is in progress; notified when it has been answered.
    Committing(Arc<Notify>),
}

struct Entry {
    /// Empty while a turn that was run ahead has not ended: the position that its commit leads to is not known yet.
    position: Arc<OnceLock<Position>>,
    created_at_ms: Option<u64>,
    content: Content,
    /// The key of this entry in `State::by_last_use`.
    last_use: u64,
    bytes: usize,
}

#[derive(Default)]
struct State {
    entries: HashMap<Arc<str>, Entry>,
    by_last_use: BTreeMap<u64, Arc<str>>,
    /// The number of insertions so far.
    uses: u64,
    bytes: usize,
}

pub(crate) struct WarmCache {
    state: Mutex<State>,
    max_entries: usize,
    max_bytes: usize,
}

/// The activities that an execution waits for.
pub(crate) struct OpenActivities {
    /// The ids of their scheduling events.
    pub(crate) ids: BTreeSet<u64>,
    /// The name of the orchestration.
    pub(crate) orchestration: String,
}

/// The result of [`WarmCache::take`].
pub(crate) enum Lookup {
    Found(Kept),
    /// A commit to this position is in progress: look up again after the notification.
    InFlight(Arc<Notify>),
    Unknown,
}

impl WarmCache {
    pub(crate) fn new(max_entries: usize, max_bytes: usize) -> Self {
        Self { state: Mutex::default(), max_entries, max_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the entry of an instance if it is at this position. Removes an entry at another position: it is outdated.
    ///
    /// `created_at_ms` distinguishes an instance from a later one with the same id. The first commit of an instance sets it; if the
    /// store does not report it with that commit, the second turn replays.
    pub(crate) fn take(&self, instance: &str, position: Position, created_at_ms: Option<u64>) -> Lookup {
        let mut state = self.lock();
        let Some(entry) = state.entries.get(instance) else { return Lookup::Unknown };
        let in_flight = matches!(entry.content, Content::Committing(_));
        let is_another = !in_flight && entry.created_at_ms != created_at_ms;
        let is_elsewhere =
            entry.position.get() != Some(&position) && !defect::is_on(Defect::WarmPositionIgnored);
        if is_elsewhere || is_another {
            // The entry of a commit in progress is removed or replaced by its `Announced`.
            let outdated = match entry.content {
                Content::Ready(_) => state.remove(instance),
                Content::Committing(_) => None,
            };
            drop(state);
            drop(outdated);
            return Lookup::Unknown;
        }
        if let Content::Committing(done) = &entry.content {
            return Lookup::InFlight(Arc::clone(done));
        }
        match state.remove(instance).map(|entry| entry.content) {
            Some(Content::Ready(kept)) => Lookup::Found(kept),
            _ => Lookup::Unknown,
        }
    }

    /// Takes a suspended execution that meets the condition, at any position, and replaces it by a commit in progress. The caller
    /// runs the turn, sets the position that the commit leads to, and commits. If another commit of the instance is in progress,
    /// waits for its answer: it may be the commit that scheduled the caller's activity.
    pub(crate) async fn take_if(
        &self,
        instance: &Arc<str>,
        condition: impl Fn(&Execution) -> bool,
    ) -> Option<(Box<Execution>, Announced<'_>)> {
        self.wait_for_commit(instance).await?;
        let mut state = self.lock();
        match &state.entries.get(instance)?.content {
            Content::Ready(Kept::Suspended(execution)) if condition(execution) => {}
            _ => return None,
        }
        let Entry { content: Content::Ready(Kept::Suspended(execution)), created_at_ms, .. } =
            state.remove(instance)?
        else {
            return None;
        };
        let announced = self.announced(&mut state, instance, OnceLock::new(), created_at_ms);
        Some((execution, announced))
    }

    /// The activities that the suspended execution waits for, at any position. `None` if it waits for one activity only, for more
    /// than `most`, or for a child.
    pub(crate) fn open_activities(
        &self,
        instance: &str,
        execution_id: u64,
        most: usize,
    ) -> Option<OpenActivities> {
        let state = self.lock();
        let Content::Ready(Kept::Suspended(execution)) = &state.entries.get(instance)?.content else {
            return None;
        };
        let ids = execution.waits_for_activities().filter(|ids| (2..=most).contains(&ids.len()))?;
        (execution.execution_id() == execution_id).then(|| OpenActivities {
            ids: ids.clone(),
            orchestration: execution.orchestration_name().to_string(),
        })
    }

    /// Whether the cache has an entry of the instance, at any position.
    pub(crate) fn knows(&self, instance: &str) -> bool {
        self.lock().entries.contains_key(instance)
    }

    /// Whether the instance is suspended here, at any position, and no commit of it is in progress.
    pub(crate) fn holds_suspended(&self, instance: &str) -> bool {
        let state = self.lock();
        let entry = state.entries.get(instance);
        entry.is_some_and(|entry| matches!(entry.content, Content::Ready(Kept::Suspended(_))))
    }

    /// Waits until the commit of the instance that is in progress is answered. `None` if this takes too long.
    pub(crate) async fn wait_for_commit(&self, instance: &str) -> Option<()> {
        // The commit that scheduled the activity is answered within this time; no other commit needs to be waited for.
        const LONGEST_WAIT: Duration = Duration::from_millis(50);
        let in_flight = self.in_flight(instance);
        if let Some(done) = in_flight {
            let mut answered = pin!(done.notified());
            answered.as_mut().enable();
            if self.in_flight(instance).is_some() {
                tokio::time::timeout(LONGEST_WAIT, answered).await.ok()?;
            }
        }
        Some(())
    }

    /// The notification of the commit of an instance that is in progress.
    fn in_flight(&self, instance: &str) -> Option<Arc<Notify>> {
        match &self.lock().entries.get(instance)?.content {
            Content::Committing(done) => Some(Arc::clone(done)),
            Content::Ready(_) => None,
        }
    }

    /// Replaces the entry of an instance by a commit in progress that leads to this position. Called before the commit, because
    /// the store may return the next turn of the instance before it answers the commit.
    pub(crate) fn announce(
        &self,
        instance: &Arc<str>,
        position: Position,
        created_at_ms: Option<u64>,
    ) -> Announced<'_> {
        let mut state = self.lock();
        let old = state.remove(instance);
        let announced = self.announced(&mut state, instance, OnceLock::from(position), created_at_ms);
        drop(state);
        drop(old);
        announced
    }

    /// Adds the entry of a commit in progress. The instance must have no entry.
    fn announced(
        &self,
        state: &mut State,
        instance: &Arc<str>,
        position: OnceLock<Position>,
        created_at_ms: Option<u64>,
    ) -> Announced<'_> {
        let (position, done) = (Arc::new(position), Arc::new(Notify::new()));
        let content = Content::Committing(Arc::clone(&done));
        let entry = Entry { position: Arc::clone(&position), created_at_ms, content, last_use: 0, bytes: 0 };
        state.insert(Arc::clone(instance), entry);
        Announced { cache: self, instance: Arc::clone(instance), position, created_at_ms, done }
    }

    /// The number of entries and their size in bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let state = self.lock();
        (state.entries.len(), state.bytes)
    }

    pub(crate) fn clear(&self) {
        let old = std::mem::take(&mut *self.lock());
        drop(old);
    }
}

impl State {
    /// Adds an entry as the most recently used one. The instance must have no entry.
    fn insert(&mut self, instance: Arc<str>, entry: Entry) {
        self.uses += 1;
        let last_use = self.uses;
        self.by_last_use.insert(last_use, Arc::clone(&instance));
        self.bytes += entry.bytes;
        self.entries.insert(instance, Entry { last_use, ..entry });
    }

    fn remove(&mut self, instance: &str) -> Option<Entry> {
        let entry = self.entries.remove(instance)?;
        self.by_last_use.remove(&entry.last_use);
        self.bytes -= entry.bytes;
        Some(entry)
    }

    /// Removes the least recently used entries until the limits hold. Entries of commits in progress stay.
    fn evict(&mut self, max_entries: usize, max_bytes: usize) -> Vec<Entry> {
        let mut evicted = Vec::new();
        let mut skipped = 0;
        while self.entries.len() > max_entries || self.bytes > max_bytes {
            let Some(oldest) = self.by_last_use.values().nth(skipped).cloned() else { break };
            match self.entries.get(&oldest) {
                Some(Entry { content: Content::Committing(_), .. }) => skipped += 1,
                _ => evicted.extend(self.remove(&oldest)),
            }
        }
        evicted
    }
}

/// A commit in progress. If it is dropped without `confirm`, the entry of the instance is removed.
pub(crate) struct Announced<'a> {
    cache: &'a WarmCache,
    instance: Arc<str>,
    /// The position that the commit leads to. The caller of [`WarmCache::take_if`] sets it before the commit.
    pub(crate) position: Arc<OnceLock<Position>>,
    created_at_ms: Option<u64>,
    done: Arc<Notify>,
}

impl Announced<'_> {
    /// The store has committed: stores `kept` as the entry of the instance. Returns the number of evicted entries.
    pub(crate) fn confirm(self, kept: Kept, committed_at_ms: Option<u64>) -> usize {
        let bytes = match &kept {
            Kept::Suspended(execution) => execution.bytes(),
            Kept::Continued(kv) => {
                256 + kv.iter().map(|(key, entry)| key.len() + entry.value.len()).sum::<usize>()
            }
            Kept::Ended => 256,
        };
        let mut state = self.cache.lock();
        let evicted = if self.is_current(&state) {
            state.remove(&self.instance);
            // The commit of the first turn creates the instance.
            let position = Arc::clone(&self.position);
            let created_at_ms = self.created_at_ms.or(committed_at_ms);
            let entry = Entry { position, created_at_ms, content: Content::Ready(kept), last_use: 0, bytes };
            state.insert(Arc::clone(&self.instance), entry);
            state.evict(self.cache.max_entries, self.cache.max_bytes)
        } else {
            Vec::new()
        };
        // Unlocked before `evicted` is dropped: dropping an execution runs destructors of the author's code.
        drop(state);
        evicted.len()
    }

    /// Whether the entry of the instance still belongs to this commit.
    fn is_current(&self, state: &State) -> bool {
        let entry = state.entries.get(&self.instance);
        entry.is_some_and(
            |entry| matches!(&entry.content, Content::Committing(done) if Arc::ptr_eq(done, &self.done)),
        )
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        let mut state = self.cache.lock();
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

    fn put(warm: &WarmCache, instance: &str, position: Position, created_at_ms: Option<u64>) -> usize {
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
    fn an_entry_is_found_once_and_only_at_its_position_and_creation_time() {
        let warm = WarmCache::new(10, 1 << 20);
        put(&warm, "a", HERE, None);
        assert_eq!(answer(warm.take("b", HERE, None)), "unknown");
        assert_eq!(answer(warm.take("a", HERE, None)), "found");
        assert_eq!(answer(warm.take("a", HERE, None)), "unknown", "the entry was taken");
        put(&warm, "a", HERE, None);
        assert_eq!(answer(warm.take("a", HERE, Some(3))), "unknown", "the entry has no creation time");
        warm.announce(&"a".into(), HERE, None).confirm(Kept::Ended, Some(3));
        assert_eq!(answer(warm.take("a", HERE, Some(3))), "found", "its first commit set the creation time");
        put(&warm, "a", HERE, None);
        assert_eq!(answer(warm.take("a", THERE, None)), "unknown");
        assert_eq!(answer(warm.take("a", HERE, None)), "unknown", "the outdated entry was removed");
        put(&warm, "a", HERE, Some(3));
        assert_eq!(answer(warm.take("a", HERE, Some(4))), "unknown", "another instance with the same id");
        assert_eq!(warm.size(), (0, 0));
    }

    #[test]
    fn a_commit_in_progress_is_reported_and_a_failed_commit_removes_its_entry() {
        let warm = WarmCache::new(10, 1 << 20);
        let announced = warm.announce(&"a".into(), HERE, None);
        assert_eq!(answer(warm.take("a", HERE, None)), "in flight");
        assert_eq!(answer(warm.take("a", THERE, None)), "unknown");
        assert_eq!(
            answer(warm.take("a", HERE, None)),
            "in flight",
            "a lookup at another position does not remove it"
        );
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
    fn the_least_recently_used_entry_is_evicted_by_count_and_by_bytes() {
        let warm = WarmCache::new(2, 1 << 20);
        put(&warm, "a", HERE, None);
        put(&warm, "b", HERE, None);
        put(&warm, "a", THERE, None);
        let in_flight = warm.announce(&"c".into(), HERE, None);
        assert_eq!(put(&warm, "d", HERE, None), 2, "of four entries, the commit in progress stays");
        assert_eq!(answer(warm.take("b", HERE, None)), "unknown");
        assert_eq!(answer(warm.take("a", THERE, None)), "unknown");
        drop(in_flight);
        assert_eq!(answer(warm.take("d", HERE, None)), "found");

        let warm = WarmCache::new(10, 600);
        put(&warm, "a", HERE, None);
        put(&warm, "b", HERE, None);
        assert_eq!(put(&warm, "c", HERE, None), 1);
        assert_eq!(warm.size(), (2, 512));
        let keys =
            BTreeMap::from([("key".to_string(), KvValue { value: "x".repeat(900), updated_at_ms: 1 })]);
        let evicted = warm.announce(&"big".into(), HERE, None).confirm(Kept::Continued(keys), None);
        assert_eq!((evicted, warm.size()), (3, (0, 0)), "an entry above the byte limit is evicted too");
    }

    #[test]
    fn an_entry_that_is_newer_than_a_commit_in_progress_is_evicted() {
        let warm = WarmCache::new(2, 1 << 20);
        let in_flight = warm.announce(&"a".into(), HERE, None);
        put(&warm, "b", HERE, None);
        assert_eq!(put(&warm, "c", HERE, None), 1);
        assert_eq!(answer(warm.take("a", HERE, None)), "in flight");
        assert_eq!(answer(warm.take("b", HERE, None)), "unknown");
        assert_eq!(answer(warm.take("c", HERE, None)), "found");
        drop(in_flight);
    }

    #[test]
    fn entries_of_exactly_the_byte_limit_stay() {
        let keys =
            BTreeMap::from([("key".to_string(), KvValue { value: "value".to_string(), updated_at_ms: 1 })]);
        let warm = WarmCache::new(10, 256 + 264);
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
    async fn take_if_returns_only_a_suspended_execution_that_meets_the_condition() {
        let warm = WarmCache::new(10, 1 << 20);
        put(&warm, "ended", HERE, None);
        assert!(warm.take_if(&"ended".into(), |_| true).await.is_none());
        assert!(warm.take_if(&"unknown".into(), |_| true).await.is_none());
        suspend(warm.announce(&"a".into(), HERE, None));
        assert!(warm.take_if(&"a".into(), |_| false).await.is_none());
        let (execution, announced) =
            warm.take_if(&"a".into(), |_| true).await.expect("the refused condition left the entry");
        assert_eq!(execution.instance(), "i");
        assert_eq!(
            answer(warm.take("a", HERE, Some(3))),
            "unknown",
            "the position of the commit is not known yet"
        );
        announced.position.get_or_init(|| THERE);
        assert_eq!(answer(warm.take("a", THERE, Some(3))), "in flight");
        announced.confirm(Kept::Suspended(execution), Some(4));
        assert_eq!(
            answer(warm.take("a", THERE, Some(3))),
            "found",
            "the creation time is that of the taken entry"
        );
        suspend(warm.announce(&"a".into(), HERE, None));
        drop(warm.take_if(&"a".into(), |_| true).await);
        assert!(
            warm.take_if(&"a".into(), |_| true).await.is_none(),
            "a turn that was given up removes the entry"
        );
        assert_eq!(warm.size().0, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn take_if_waits_for_a_commit_in_progress_but_not_for_ever() {
        let warm = WarmCache::new(10, 1 << 20);
        let a = Arc::from("a");
        let announced = warm.announce(&a, HERE, None);
        let begun = tokio::time::Instant::now();
        assert!(warm.take_if(&a, |_| true).await.is_none());
        assert!(begun.elapsed() >= Duration::from_millis(50));
        let (taken, ()) = tokio::join!(warm.take_if(&a, |_| true), async { suspend(announced) });
        assert!(taken.is_some());
        let lost = warm.announce(&a, HERE, None);
        let (taken, ()) = tokio::join!(warm.take_if(&a, |_| true), async { drop(lost) });
        assert!(taken.is_none());
    }
}
