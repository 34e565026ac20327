//! Commits in progress that the metrics do not count yet.
//!
//! A store shows a commit to readers, and resolves watches, before the store answers the runtime. The runtime counts a turn after
//! the answer. A client that waits for an instance therefore checks this list before it returns: if a runtime on the same store
//! object has a commit of that instance in progress, the client waits until the turn is counted or has failed. So
//! [`Runtime::metrics_snapshot`](crate::Runtime::metrics_snapshot) and the counters of the `metrics` facade include every turn that a
//! client of this process has waited for, with any store.

use outlast_provider::Provider;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio_util::sync::CancellationToken;

/// The runtimes of this process, by store object.
static RUNTIMES: Mutex<Vec<(StoreId, Weak<UncountedCommits>)>> = Mutex::new(Vec::new());

/// Ignores poisoning: every statement under these locks leaves the collection valid.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Identifies a store object by its address. The owner of the id keeps the object alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoreId(usize);

impl StoreId {
    pub(crate) fn of(store: &Arc<dyn Provider>) -> Self {
        Self(Arc::as_ptr(store).cast::<()>().addr())
    }
}

/// The commits in progress of one runtime.
#[derive(Default)]
pub(crate) struct UncountedCommits(Mutex<Commits>);

#[derive(Default)]
struct Commits {
    /// The id of each commit, and a token that fires when it is counted or has failed.
    by_instance: HashMap<Arc<str>, Vec<(u64, CancellationToken)>>,
    last_id: u64,
}

impl UncountedCommits {
    /// The list of a new runtime on this store object, where clients of the same object find it.
    pub(crate) fn of_runtime_on(store: StoreId) -> Arc<Self> {
        let this = Arc::new(Self::default());
        let mut runtimes = locked(&RUNTIMES);
        runtimes.retain(|(_, runtime)| runtime.strong_count() > 0);
        runtimes.push((store, Arc::downgrade(&this)));
        this
    }

    /// Lists a commit until the guard is dropped. Called before the commit is sent to the store.
    pub(crate) fn enter(self: &Arc<Self>, instance: &Arc<str>) -> UncountedCommit {
        let counted = CancellationToken::new();
        let mut commits = locked(&self.0);
        commits.last_id += 1;
        let id = commits.last_id;
        commits.by_instance.entry(Arc::clone(instance)).or_default().push((id, counted.clone()));
        drop(commits);
        UncountedCommit { uncounted: Arc::clone(self), instance: Arc::clone(instance), id, counted }
    }
}

/// A commit in progress. Dropped when the turn is counted or has failed.
pub(crate) struct UncountedCommit {
    uncounted: Arc<UncountedCommits>,
    instance: Arc<str>,
    id: u64,
    counted: CancellationToken,
}

impl Drop for UncountedCommit {
    fn drop(&mut self) {
        let mut commits = locked(&self.uncounted.0);
        if let Some(of_instance) = commits.by_instance.get_mut(&self.instance) {
            of_instance.retain(|(id, _)| *id != self.id);
            if of_instance.is_empty() {
                commits.by_instance.remove(&self.instance);
            }
        }
        drop(commits);
        self.counted.cancel();
    }
}

/// Waits until every commit of the instance that is in progress now is counted or has failed, in all runtimes on this store object.
pub(crate) async fn wait_until_counted(store: StoreId, instance: &str) {
    let runtimes: Vec<Arc<UncountedCommits>> = {
        let runtimes = locked(&RUNTIMES);
        runtimes.iter().filter(|(id, _)| *id == store).filter_map(|(_, runtime)| runtime.upgrade()).collect()
    };
    for runtime in runtimes {
        let commits = locked(&runtime.0).by_instance.get(instance).cloned().unwrap_or_default();
        for (_, counted) in commits {
            counted.cancelled().await;
        }
    }
}
