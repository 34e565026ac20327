//! The counts of a store that a runtime shows as gauges.

/// The result of [`ProviderAdmin::get_gauges`](crate::ProviderAdmin::get_gauges): counts over the whole store, for all processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreGauges {
    /// Instances whose current execution runs, as in [`SystemMetrics`](crate::SystemMetrics).
    pub running_instances: u64,
    /// Waiting messages for orchestrations, as in [`QueueDepths`](crate::QueueDepths).
    pub orchestrator_queue: u64,
    /// Waiting activities, as in [`QueueDepths`](crate::QueueDepths).
    pub worker_queue: u64,
    /// The waiting messages for orchestrations, split into due and delayed. `None`: the store does not split them.
    pub orchestrator_backlog: Option<QueueBacklog>,
    /// The waiting activities, split into due and delayed. `None`: the store does not split them.
    pub worker_backlog: Option<QueueBacklog>,
}

/// The waiting items of a queue, those under a live lease excluded. The sum is the depth of the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueBacklog {
    /// Items that a fetch may take now.
    pub due: u64,
    /// Items that become visible later: timers that have not fired, delayed starts, messages and activities that were abandoned
    /// with a delay.
    pub delayed: u64,
}

impl QueueBacklog {
    /// The backlog of a queue of this depth.
    pub fn of(depth: u64, delayed: u64) -> Self {
        Self { due: depth.saturating_sub(delayed), delayed }
    }
}

/// The result of [`ProviderAdmin::oldest_due`](crate::ProviderAdmin::oldest_due): the longest waits of due items, in milliseconds by the
/// store's clock. An item waits from the time at which it became visible, also while a lease that ended without a commit covered it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OldestDue {
    /// Of the messages for orchestrations; `None` if no message is due.
    pub message_ms: Option<u64>,
    /// Of the activities; `None` if no activity is due.
    pub activity_ms: Option<u64>,
}
