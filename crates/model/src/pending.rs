//! The messages and activities that wait for one instance, and those of a whole queue.

/// The queued messages, the queued activities and the lease of an instance at one time, without payloads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PendingWork {
    /// The time, by the store's clock.
    pub now_ms: u64,
    /// When the lease of the turn ends; `None` without a lease.
    pub turn_locked_until: Option<u64>,
    /// Messages in the order of delivery, at most the requested number.
    pub messages: Vec<QueuedItem>,
    /// The number of all messages.
    pub message_count: u64,
    /// Activities, oldest first, at most the requested number.
    pub activities: Vec<QueuedItem>,
    /// The number of all activities.
    pub activity_count: u64,
}

/// A message or an activity in a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueuedItem {
    /// The variant of [`WorkItem`](crate::WorkItem); `None` if the stored text does not decode.
    pub kind: Option<String>,
    /// The name of the activity, orchestration, event or queue, if the item has one.
    pub name: Option<String>,
    /// The execution that the item belongs to, if any.
    pub execution_id: Option<u64>,
    /// The id of the event that scheduled the activity, timer or child.
    pub id: Option<u64>,
    /// The size of the stored text.
    pub stored_bytes: u64,
    /// When the item becomes visible.
    pub visible_at: u64,
    /// When the lease ends: for a message that of its instance, for an activity its own. `None` without a lease.
    pub locked_until: Option<u64>,
    /// The number of deliveries.
    pub attempt_count: u32,
    /// The number of failures that the handler of an activity has reported, apart from the deliveries.
    pub failures: u32,
    /// The tag of an activity.
    pub tag: Option<String>,
    /// The session of an activity.
    pub session_id: Option<String>,
}

impl QueuedItem {
    /// An item with the kind, name and ids of its head.
    pub fn of(head: Option<crate::WorkItemHead>) -> Self {
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

/// A page of the items of a queue, without payloads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueuePage {
    /// The time, by the store's clock.
    pub now_ms: u64,
    /// The items, at most the requested number.
    pub items: Vec<InstanceItem>,
    /// The position after the last item; `None` if no item follows.
    pub next: Option<String>,
}

/// An item of a queue with its instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceItem {
    /// The instance.
    pub instance_id: String,
    /// The message or the activity.
    pub item: QueuedItem,
}

/// The activities in the queue that have one tag.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TagDepth {
    /// The tag; `None` for the activities without a tag.
    pub tag: Option<String>,
    /// Activities that a worker may take now.
    pub due: u64,
    /// Activities that become visible later.
    pub delayed: u64,
    /// Activities under a live lease.
    pub leased: u64,
    /// The longest wait of a due activity, in milliseconds by the store's clock; `None` if no activity is due.
    pub oldest_ms: Option<u64>,
}
