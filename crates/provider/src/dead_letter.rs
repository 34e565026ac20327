//! Messages that could not be delivered to anybody.

/// Where a dead letter came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeadLetterQueue {
    /// The orchestrator queue.
    Orchestrator,
    /// The worker queue.
    Worker,
}

impl DeadLetterQueue {
    /// The name under which it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Orchestrator => "orchestrator",
            Self::Worker => "worker",
        }
    }
}

/// A stored message that was set aside, exactly as it was, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The queue that it was removed from.
    pub queue: DeadLetterQueue,
    /// The instance it was meant for, where that is known.
    pub instance_id: Option<String>,
    /// The stored text.
    pub work_item: String,
    /// Why it could not be delivered.
    pub reason: String,
    /// How often delivery had been tried.
    pub attempt_count: u32,
    /// When it was set aside.
    pub dead_at: u64,
}
