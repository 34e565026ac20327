//! The figures of a store that a runtime shows as gauges.

/// What [`ProviderAdmin::get_gauges`](crate::ProviderAdmin::get_gauges) answers: figures of the whole store, whichever process works
/// on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreGauges {
    /// Instances whose current execution runs, as in [`SystemMetrics`](crate::SystemMetrics).
    pub running_instances: u64,
    /// Waiting messages for orchestrations, as in [`QueueDepths`](crate::QueueDepths).
    pub orchestrator_queue: u64,
    /// Waiting activities, as in [`QueueDepths`](crate::QueueDepths).
    pub worker_queue: u64,
    /// How many of the waiting messages for orchestrations are due. `None`: the store does not count them apart.
    pub orchestrator_backlog: Option<QueueBacklog>,
    /// How many of the waiting activities are due. `None`: the store does not count them apart.
    pub worker_backlog: Option<QueueBacklog>,
}

/// The waiting messages of a queue, those under a live lease excluded. The sum is the depth of the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueBacklog {
    /// Messages that a fetch may take now.
    pub due: u64,
    /// Messages whose time has not come: timers that have not fired, delayed starts, work that was given back with a delay.
    pub delayed: u64,
}

impl QueueBacklog {
    /// The backlog of a queue of this depth.
    pub fn of(depth: u64, delayed: u64) -> Self {
        Self { due: depth.saturating_sub(delayed), delayed }
    }
}
