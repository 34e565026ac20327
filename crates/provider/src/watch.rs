//! Watches: futures that resolve when a commit concerns their instance.

use crate::InstanceOutcome;
use std::pin::Pin;

/// The commits that a watch of [`Provider::watch_instance`](crate::Provider::watch_instance) waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// The instance ends: a turn with status `Completed` or `Failed` is committed, or the instance is deleted.
    Ended,
    /// Any change: a turn is committed, events are appended, or the instance is deleted.
    Any,
}

impl Interest {
    /// Whether a commit resolves a watch with this interest. `ended`: the commit ended or deleted the instance.
    pub fn is_met(self, ended: bool) -> bool {
        ended || self == Self::Any
    }
}

/// Resolves after the next commit that concerns the watched instance; it may also resolve without a commit. The value is the
/// outcome of the instance, if the commit ended the instance and the store knows the outcome. Dropping the future ends the watch.
pub type InstanceWatch = Pin<Box<dyn Future<Output = Option<InstanceOutcome>> + Send>>;
