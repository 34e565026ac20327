//! Failing deliveries between instances, for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Lets the next deliveries between instances fail. The reconciler repeats them.
#[derive(Clone, Debug, Default)]
pub struct OutboxFaultInjector(Arc<AtomicU32>);

impl OutboxFaultInjector {
    /// The next `n` deliveries fail.
    pub fn fail_next(n: u32) -> Self {
        Self(Arc::new(AtomicU32::new(n)))
    }

    /// Whether the next delivery fails. Each call that returns true counts as one.
    pub fn should_fail(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    pub(crate) fn left(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.0)
    }
}
