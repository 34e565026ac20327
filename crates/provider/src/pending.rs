//! What waits for one instance.

/// The queues and the lease of an instance at a moment. Payloads stay in the store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PendingWork {
    /// The moment, by the store's clock.
    pub now_ms: u64,
    /// Until when the instance is leased for a turn; `None` if it is not.
    pub turn_locked_until: Option<u64>,
    /// Messages, in the order in which they are delivered, as many as were asked for.
    pub messages: Vec<QueuedItem>,
    /// How many messages there are.
    pub message_count: u64,
    /// Activities, oldest first, as many as were asked for.
    pub activities: Vec<QueuedItem>,
    /// How many activities there are.
    pub activity_count: u64,
}

/// A message or an activity in a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueuedItem {
    /// The variant of [`WorkItem`](crate::WorkItem); `None` if the stored text does not decode.
    pub kind: Option<String>,
    /// Of the activity, orchestration, event or queue, where it has one.
    pub name: Option<String>,
    /// The execution that it belongs to, where it belongs to one.
    pub execution_id: Option<u64>,
    /// The event that scheduled what it runs or answers.
    pub id: Option<u64>,
    /// The size of the stored text.
    pub stored_bytes: u64,
    /// From when on it can be fetched.
    pub visible_at: u64,
    /// Until when it is leased: a message with its instance, an activity by itself. `None` if it is not.
    pub locked_until: Option<u64>,
    /// How often it was delivered.
    pub attempt_count: u32,
    /// The tag of an activity.
    pub tag: Option<String>,
    /// The session of an activity.
    pub session_id: Option<String>,
}

impl QueuedItem {
    /// An item by what its text says it is.
    pub fn of(head: Option<outlast_model::WorkItemHead>) -> Self {
        match head {
            Some(head) => Self {
                kind: Some(head.kind),
                name: head.name,
                execution_id: head.execution_id,
                id: head.id,
                ..Self::default()
            },
            None => Self::default(),
        }
    }
}
