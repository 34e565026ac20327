//! The watches of clients on instances.

use outlast_provider::{InstanceOutcome, InstanceWatch, Interest};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// The watches of a store object. The store calls [`Watches::is_watched`] after every commit, which costs one load while there are no
/// watches.
#[derive(Default)]
pub struct Watches {
    table: Mutex<Table>,
    /// The number of watches in the table.
    count: AtomicUsize,
}

#[derive(Default)]
struct Table {
    /// Sorted, so that simulated worlds wake all watches in one order.
    by_instance: BTreeMap<String, BTreeMap<u64, Entry>>,
    last_id: u64,
}

struct Entry {
    interest: Interest,
    resolve: oneshot::Sender<Option<InstanceOutcome>>,
}

impl Watches {
    /// Registers a watch. It resolves at the first commit after this call that meets the interest.
    pub fn watch(self: &Arc<Self>, instance: &str, interest: Interest) -> InstanceWatch {
        let (resolve, resolved) = oneshot::channel();
        let id = {
            let mut table = self.table();
            table.last_id += 1;
            let id = table.last_id;
            table
                .by_instance
                .entry(instance.to_string())
                .or_default()
                .insert(id, Entry { interest, resolve });
            self.count.fetch_add(1, Ordering::Relaxed);
            id
        };
        // Pairs with the fence in `is_watched`: either a read of the store after this call sees the commit, or the commit sees this watch.
        fence(Ordering::SeqCst);
        Box::pin(Watch { resolved, id, instance: instance.to_string(), watches: Arc::downgrade(self) })
    }

    /// Whether there is any watch. Must be called after the commit, not before.
    pub fn is_watched(&self) -> bool {
        fence(Ordering::SeqCst);
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Whether the instance is watched now. A watch may be registered before the commit of the caller is visible.
    pub fn has_watch_of(&self, instance: &str) -> bool {
        self.is_watched() && self.table().by_instance.contains_key(instance)
    }

    /// Resolves the watches of an instance whose interest a commit meets; `ended` is true if the commit ended or deleted the instance.
    pub fn committed(&self, instance: &str, ended: bool) {
        self.resolve(instance, ended, None);
    }

    /// Resolves the watches of an instance with the outcome of the commit that ended it.
    pub fn ended_with(&self, instance: &str, outcome: &InstanceOutcome) {
        self.resolve(instance, true, Some(outcome));
    }

    fn resolve(&self, instance: &str, ended: bool, outcome: Option<&InstanceOutcome>) {
        if !self.is_watched() {
            return;
        }
        let resolved: Vec<Entry> = {
            let mut table = self.table();
            let Some(entries) = table.by_instance.get_mut(instance) else { return };
            let met = entries.extract_if(.., |_, entry| entry.interest.is_met(ended));
            let resolved: Vec<Entry> = met.map(|(_, entry)| entry).collect();
            if entries.is_empty() {
                table.by_instance.remove(instance);
            }
            self.count.fetch_sub(resolved.len(), Ordering::Relaxed);
            resolved
        };
        // Sent without the lock: the woken task may drop its watch at once, which takes the lock.
        for entry in resolved {
            let _ = entry.resolve.send(outcome.cloned());
        }
    }

    /// Resolves every watch, after a commit whose instances are not known.
    pub fn resolve_all(&self) {
        let all: Vec<Entry> = {
            let mut table = self.table();
            let all = std::mem::take(&mut table.by_instance).into_values().flat_map(BTreeMap::into_values);
            let all: Vec<Entry> = all.collect();
            self.count.fetch_sub(all.len(), Ordering::Relaxed);
            all
        };
        for entry in all {
            let _ = entry.resolve.send(None);
        }
    }

    fn remove(&self, instance: &str, id: u64) {
        let mut table = self.table();
        let Some(entries) = table.by_instance.get_mut(instance) else { return };
        if entries.remove(&id).is_some() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        if entries.is_empty() {
            table.by_instance.remove(instance);
        }
    }

    /// Ignores poisoning: every statement under this lock leaves the table valid.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One watch. It also resolves when its store is dropped.
struct Watch {
    resolved: oneshot::Receiver<Option<InstanceOutcome>>,
    id: u64,
    instance: String,
    watches: Weak<Watches>,
}

impl Future for Watch {
    type Output = Option<InstanceOutcome>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<InstanceOutcome>> {
        Pin::new(&mut self.resolved).poll(cx).map(|sent| sent.ok().flatten())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(watches) = self.watches.upgrade() {
            watches.remove(&self.instance, self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Interest::{Any, Ended};
    use std::task::Waker;

    fn is_resolved(watch: &mut InstanceWatch) -> bool {
        watch.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_commit_resolves_watches_of_its_instance_whose_interest_it_meets() {
        // interest, instance of the commit, whether it ends the instance, whether the watch of "i" resolves
        let cases = [
            (Any, "i", false, true),
            (Any, "i", true, true),
            (Ended, "i", false, false),
            (Ended, "i", true, true),
            (Any, "j", true, false),
            (Ended, "j", true, false),
        ];
        for (interest, instance, ended, expected) in cases {
            let watches = Arc::new(Watches::default());
            let mut watch = watches.watch("i", interest);
            assert!(!is_resolved(&mut watch));
            assert!(watches.has_watch_of("i") && !watches.has_watch_of("j"));
            watches.committed(instance, ended);
            assert_eq!(is_resolved(&mut watch), expected, "{interest:?} {instance} {ended}");
            assert_eq!(watches.is_watched(), !expected);
        }
    }

    #[test]
    fn a_watch_resolves_at_the_first_commit_after_its_registration() {
        let watches = Arc::new(Watches::default());
        watches.committed("i", true);
        let mut first = watches.watch("i", Any);
        let mut second = watches.watch("i", Ended);
        watches.committed("i", false);
        let mut third = watches.watch("i", Any);
        assert!(is_resolved(&mut first), "without a poll before the commit");
        assert!(!is_resolved(&mut second) && !is_resolved(&mut third));
        watches.committed("i", true);
        assert!(is_resolved(&mut second) && is_resolved(&mut third));
        assert!(watches.table().by_instance.is_empty());
    }

    #[test]
    fn a_watch_returns_the_outcome_if_the_commit_gives_one() {
        let outcome = InstanceOutcome {
            execution_id: 2,
            status: "Completed".to_string(),
            output: Some("out".to_string()),
            failure: None,
            custom_status: None,
            custom_status_version: 0,
        };
        let watches = Arc::new(Watches::default());
        let (mut any, mut ended) = (watches.watch("i", Any), watches.watch("i", Ended));
        watches.ended_with("i", &outcome);
        for watch in [&mut any, &mut ended] {
            let polled = watch.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert_eq!(polled, Poll::Ready(Some(outcome.clone())));
        }
        let mut watch = watches.watch("i", Ended);
        watches.committed("i", true);
        let polled = watch.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(None), "a commit without an outcome");
    }

    #[test]
    fn all_watches_can_be_resolved_at_once() {
        let watches = Arc::new(Watches::default());
        let mut pair = [watches.watch("i", Ended), watches.watch("j", Any)];
        watches.resolve_all();
        assert!(pair.iter_mut().all(is_resolved));
        assert!(!watches.is_watched());
    }

    #[test]
    fn a_dropped_watch_is_removed_from_the_table() {
        let watches = Arc::new(Watches::default());
        let pair = [watches.watch("i", Any), watches.watch("i", Ended)];
        let other = watches.watch("j", Any);
        drop(pair);
        assert_eq!((watches.table().by_instance.len(), watches.is_watched()), (1, true));
        drop(other);
        assert_eq!((watches.table().by_instance.len(), watches.is_watched()), (0, false));
        // A watch that is resolved and then dropped is not counted twice.
        let resolved = watches.watch("i", Any);
        watches.committed("i", false);
        let waiting = watches.watch("i", Any);
        drop(resolved);
        assert!(watches.is_watched());
        drop(waiting);
        assert_eq!((watches.table().by_instance.len(), watches.is_watched()), (0, false));
    }

    #[test]
    fn a_watch_resolves_when_its_store_is_dropped() {
        let watches = Arc::new(Watches::default());
        let mut watch = watches.watch("i", Ended);
        drop(watches);
        assert!(is_resolved(&mut watch));
    }
}
