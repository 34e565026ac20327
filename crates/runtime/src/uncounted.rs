//! Turns that the store may show already and that are not counted yet.
//!
//! A store shows a commit to readers, and resolves watches, before the runtime has its answer, and a turn is counted when the
//! runtime has the answer. A client that waits for an instance therefore looks here before it returns: where a runtime on
//! the same store object has a commit of that instance on its way, the client waits until the turn is counted, or is known
//! to have failed. So [`Runtime::metrics_snapshot`](crate::Runtime::metrics_snapshot) and the counters of the `metrics` facade hold
//! every turn that a wait has seen, whichever methods the store has.

use outlast_provider::Provider;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio_util::sync::CancellationToken;

/// The runtimes of this process, by store object.
static RUNTIMES: Mutex<Vec<(StoreId, Weak<Uncounted>)>> = Mutex::new(Vec::new());

/// A panic while a lock was held left the collection as it was between two statements.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells store objects apart: the address of an object that the owner of the id keeps alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoreId(usize);

impl StoreId {
    pub(crate) fn of(store: &Arc<dyn Provider>) -> Self {
        Self(Arc::as_ptr(store).cast::<()>().addr())
    }
}

/// The commits of one runtime that are on their way.
#[derive(Default)]
pub(crate) struct Uncounted(Mutex<Commits>);

#[derive(Default)]
struct Commits {
    by_instance: HashMap<Arc<str>, Vec<(u64, CancellationToken)>>,
    made: u64,
}

impl Uncounted {
    /// For a runtime on this store object.
    pub(crate) fn of_runtime_on(store: StoreId) -> Arc<Self> {
        let this = Arc::new(Self::default());
        let mut runtimes = locked(&RUNTIMES);
        runtimes.retain(|(_, runtime)| runtime.strong_count() > 0);
        runtimes.push((store, Arc::downgrade(&this)));
        this
    }

    /// Notes a commit, before the store has it. It is on its way until the guard is dropped.
    pub(crate) fn enter(self: &Arc<Self>, instance: &Arc<str>) -> Counting {
        let counted = CancellationToken::new();
        let mut commits = locked(&self.0);
        commits.made += 1;
        let id = commits.made;
        commits.by_instance.entry(Arc::clone(instance)).or_default().push((id, counted.clone()));
        drop(commits);
        Counting { uncounted: Arc::clone(self), instance: Arc::clone(instance), id, counted }
    }
}

/// A commit on its way.
pub(crate) struct Counting {
    uncounted: Arc<Uncounted>,
    instance: Arc<str>,
    id: u64,
    counted: CancellationToken,
}

impl Drop for Counting {
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

/// Returns when every commit of an instance that is on its way now, of any runtime on this store object, is counted.
pub(crate) async fn counted(store: StoreId, instance: &str) {
    let runtimes: Vec<Arc<Uncounted>> = {
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
