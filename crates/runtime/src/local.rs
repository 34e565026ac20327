//! The runtimes of this process, by the store object that they use. Clients of the same object find them here.

use crate::core::Core;
use crate::uncounted::StoreId;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

static RUNTIMES: Mutex<Vec<(StoreId, Weak<Core>)>> = Mutex::new(Vec::new());

/// Ignores poisoning: every statement under this lock leaves the list valid.
fn runtimes() -> MutexGuard<'static, Vec<(StoreId, Weak<Core>)>> {
    RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lists a runtime.
pub(crate) fn register(store: StoreId, core: &Arc<Core>) {
    let mut runtimes = runtimes();
    runtimes.retain(|(_, runtime)| runtime.strong_count() > 0);
    runtimes.push((store, Arc::downgrade(core)));
}

/// The runtimes on a store object.
pub(crate) fn on(store: StoreId) -> Vec<Arc<Core>> {
    runtimes().iter().filter(|(id, _)| *id == store).filter_map(|(_, core)| core.upgrade()).collect()
}

/// Whether a runtime on this store object holds the instance suspended: in the last state that this process knows, the instance
/// has not ended, and no commit of it is in progress here.
pub(crate) fn holds_suspended(store: StoreId, instance: &str) -> bool {
    on(store).iter().any(|core| core.warm.holds_suspended(instance))
}
