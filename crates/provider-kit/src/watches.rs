//! Who watches which instance.

use outlast_provider::{InstanceOutcome, InstanceWatch, Interest};
use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// The watches of a store object. A writer asks [`Watches::is_watched`] after every commit, which costs one load while
/// nobody watches.
#[derive(Default)]
pub struct Watches {
    table: Mutex<Table>,
    /// How many watches the table holds.
    count: AtomicUsize,
}

#[derive(Default)]
struct Table {
    by_instance: HashMap<String, BTreeMap<u64, Entry>>,
    made: u64,
}

struct Entry {
    interest: Interest,
    resolve: oneshot::Sender<Option<InstanceOutcome>>,
}

impl Watches {
    /// Watches an instance from now on.
    pub fn watch(self: &Arc<Self>, instance: &str, interest: Interest) -> InstanceWatch {
        let (resolve, resolved) = oneshot::channel();
        let id = {
            let mut table = self.table();
            table.made += 1;
            let id = table.made;
            table
                .by_instance
                .entry(instance.to_string())
                .or_default()
                .insert(id, Entry { interest, resolve });
            self.count.fetch_add(1, Ordering::Relaxed);
            id
        };
        // Pairs with the fence in `is_watched`: either what is read after this sees the commit, or the commit sees this.
        fence(Ordering::SeqCst);
        Box::pin(Watch { resolved, id, instance: instance.to_string(), watches: Arc::downgrade(self) })
    }

    /// Whether anybody watches anything. Ask it after the commit, never before.
    pub fn is_watched(&self) -> bool {
        fence(Ordering::SeqCst);
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Resolves the watches that a commit concerns; `ended` says whether it ended or deleted the instance.
    pub fn committed(&self, instance: &str, ended: bool) {
        self.resolve(instance, ended, None);
    }

    /// The same for a commit of which it is known how it has ended the instance.
    pub fn ended_with(&self, instance: &str, outcome: &InstanceOutcome) {
        self.resolve(instance, true, Some(outcome));
    }

    fn resolve(&self, instance: &str, ended: bool, outcome: Option<&InstanceOutcome>) {
        if !self.is_watched() {
            return;
        }
        let met: Vec<Entry> = {
            let mut table = self.table();
            let Some(entries) = table.by_instance.get_mut(instance) else { return };
            let met = entries.extract_if(.., |_, entry| entry.interest.is_met(ended));
            let met: Vec<Entry> = met.map(|(_, entry)| entry).collect();
            if entries.is_empty() {
                table.by_instance.remove(instance);
            }
            self.count.fetch_sub(met.len(), Ordering::Relaxed);
            met
        };
        // Without the lock: what is woken may drop its watch at once.
        for entry in met {
            let _ = entry.resolve.send(outcome.cloned());
        }
    }

    /// Resolves every watch: something was committed, and nobody knows for whom.
    pub fn all_may_be_met(&self) {
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

    fn forget(&self, instance: &str, id: u64) {
        let mut table = self.table();
        let Some(entries) = table.by_instance.get_mut(instance) else { return };
        if entries.remove(&id).is_some() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        if entries.is_empty() {
            table.by_instance.remove(instance);
        }
    }

    /// A panic while it was locked left it as it was between two statements, so go on.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One watch. It resolves as well when its store is gone.
struct Watch {
    resolved: oneshot::Receiver<Option<InstanceOutcome>>,
    id: u64,
    instance: String,
    watches: Weak<Watches>,
}

impl Future for Watch {
    type Output = Option<InstanceOutcome>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<InstanceOutcome>> {
        Pin::new(&mut self.resolved).poll(cx).map(|told| told.ok().flatten())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(watches) = self.watches.upgrade() {
            watches.forget(&self.instance, self.id);
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
    fn a_commit_resolves_what_it_concerns() {
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
            watches.committed(instance, ended);
            assert_eq!(is_resolved(&mut watch), expected, "{interest:?} {instance} {ended}");
            assert_eq!(watches.is_watched(), !expected);
        }
    }

    #[test]
    fn it_counts_from_the_call_on_and_for_one_commit() {
        let watches = Arc::new(Watches::default());
        watches.committed("i", true);
        let mut first = watches.watch("i", Any);
        let mut second = watches.watch("i", Ended);
        watches.committed("i", false);
        let mut third = watches.watch("i", Any);
        assert!(is_resolved(&mut first), "though nobody polled it before the commit");
        assert!(!is_resolved(&mut second) && !is_resolved(&mut third));
        watches.committed("i", true);
        assert!(is_resolved(&mut second) && is_resolved(&mut third));
        assert!(watches.table().by_instance.is_empty());
    }

    #[test]
    fn how_an_instance_has_ended_can_be_told() {
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
            let told = watch.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert_eq!(told, Poll::Ready(Some(outcome.clone())));
        }
        let mut watch = watches.watch("i", Ended);
        watches.committed("i", true);
        let told = watch.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(told, Poll::Ready(None), "nobody says how");
    }

    #[test]
    fn all_can_be_told_at_once() {
        let watches = Arc::new(Watches::default());
        let mut pair = [watches.watch("i", Ended), watches.watch("j", Any)];
        watches.all_may_be_met();
        assert!(pair.iter_mut().all(is_resolved));
        assert!(!watches.is_watched());
    }

    #[test]
    fn a_dropped_watch_leaves_nothing_behind() {
        let watches = Arc::new(Watches::default());
        let pair = [watches.watch("i", Any), watches.watch("i", Ended)];
        let other = watches.watch("j", Any);
        drop(pair);
        assert_eq!((watches.table().by_instance.len(), watches.is_watched()), (1, true));
        drop(other);
        assert_eq!((watches.table().by_instance.len(), watches.is_watched()), (0, false));
        // One that was resolved before it is dropped is not counted twice.
        let resolved = watches.watch("i", Any);
        watches.committed("i", false);
        let waiting = watches.watch("i", Any);
        drop(resolved);
        assert!(watches.is_watched());
        drop(waiting);
        assert_eq!((watches.table().by_instance.len(), watches.is_watched()), (0, false));
    }

    #[test]
    fn a_watch_ends_with_its_store() {
        let watches = Arc::new(Watches::default());
        let mut watch = watches.watch("i", Ended);
        drop(watches);
        assert!(is_resolved(&mut watch));
    }
}
