//! Messages and activities that cannot be delivered.

/// The queue of a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeadLetterQueue {
    /// The orchestrator queue.
    Orchestrator,
    /// The worker queue.
    Worker,
}

impl DeadLetterQueue {
    /// The stored name of the queue.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Orchestrator => "orchestrator",
            Self::Worker => "worker",
        }
    }
}

/// A message or activity that was removed from its queue and kept unchanged, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The queue that the message was removed from.
    pub queue: DeadLetterQueue,
    /// The instance that the message was for, if known.
    pub instance_id: Option<String>,
    /// The stored text.
    pub work_item: String,
    /// The reason why the message was not delivered.
    pub reason: String,
    /// The number of deliveries.
    pub attempt_count: u32,
    /// When the message was removed from its queue.
    pub dead_at: u64,
}

/// A dead letter as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterRecord {
    /// The number of the dead letter. Later dead letters have higher numbers.
    pub id: u64,
    /// The dead letter.
    pub letter: DeadLetter,
}
