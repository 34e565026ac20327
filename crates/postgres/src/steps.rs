//! Steps of the store's tasks at which tests can cause a panic (feature `test-hooks`). Without the feature they compile to
//! nothing.

use crate::shared::Shared;

/// A step of a task of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(not(feature = "test-hooks"), allow(unreachable_pub))]
pub enum Step {
    /// A lane takes the requests that wait.
    Take,
    /// The requests of a transaction become parameters.
    Encode,
    /// The transaction is about to be sent.
    Send,
    /// The server has answered the transaction.
    Receive,
    /// Callers are about to get their replies.
    Answer,
    /// Fetches are about to receive their leases.
    Serve,
    /// Questions for outcomes are about to be asked.
    Outcomes,
    /// The listener is about to wait for notifications.
    Listen,
    /// Leases in doubt are about to be searched for.
    GiveBack,
}

/// A function of a test, which the store calls at each step with the instances of the step.
#[cfg(feature = "test-hooks")]
#[derive(Clone)]
pub struct Faults(std::sync::Arc<Fault>);

#[cfg(feature = "test-hooks")]
type Fault = dyn Fn(Step, &[String]) + Send + Sync;

#[cfg(feature = "test-hooks")]
impl Faults {
    /// Calls this at every step.
    pub fn new(fault: impl Fn(Step, &[String]) + Send + Sync + 'static) -> Self {
        Self(std::sync::Arc::new(fault))
    }
}

impl Shared {
    /// Lets a test cause a panic at this step.
    #[cfg(feature = "test-hooks")]
    pub(crate) fn fault(&self, step: Step, subjects: impl FnOnce() -> Vec<String>) {
        if let Some(Faults(fault)) = &self.config.faults {
            fault(step, &subjects());
        }
    }

    #[cfg(not(feature = "test-hooks"))]
    #[expect(clippy::unused_self, reason = "the same call as with the feature")]
    pub(crate) fn fault(&self, _step: Step, _subjects: impl FnOnce() -> Vec<String>) {}
}
