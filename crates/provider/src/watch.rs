//! Being told that something was committed for an instance.

use crate::InstanceOutcome;
use std::pin::Pin;

/// What a caller of [`Provider::watch_instance`](crate::Provider::watch_instance) waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// The instance ends: a turn with status `Completed` or `Failed` is committed, or the instance is deleted.
    Ended,
    /// Anything changes: a turn is committed, events are appended, or the instance is deleted.
    Any,
}

impl Interest {
    /// Whether a commit answers this interest; `ended` says whether it ended or deleted the instance.
    pub fn is_met(self, ended: bool) -> bool {
        ended || self == Self::Any
    }
}

/// Resolves after the next commit that concerns a watched instance, and perhaps without one; a store that knows how that commit
/// has ended the instance says so, which spares a look. Dropping it ends the watch.
pub type InstanceWatch = Pin<Box<dyn Future<Output = Option<InstanceOutcome>> + Send>>;
