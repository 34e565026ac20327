//! The queued messages and activities of an instance, without payloads.

use super::rfc3339;
use crate::app::App;
use crate::problem::{Code, Problem};
use outlast::providers::{PendingWork, QueuedItem};
use serde::Serialize;
use utoipa::ToSchema;

/// The most messages and the most activities of an answer.
const MOST: usize = 200;

/// The queued messages and activities of an instance, and the lease of its turn.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Pending {
    pub(crate) instance: String,
    /// The store's time.
    pub(crate) now: String,
    pub(crate) now_ms: u64,
    /// The end of the lease of a running turn.
    pub(crate) turn_lease_until_ms: Option<u64>,
    pub(crate) messages: Vec<Queued>,
    pub(crate) message_count: u64,
    pub(crate) activities: Vec<Queued>,
    pub(crate) activity_count: u64,
}

/// A queued message or activity.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Queued {
    /// Null for a text that does not decode.
    pub(crate) kind: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) execution: Option<u64>,
    /// The event that the item answers, or that scheduled it.
    pub(crate) of_event: Option<u64>,
    pub(crate) bytes: u64,
    pub(crate) visible_at: String,
    pub(crate) visible_at_ms: u64,
    pub(crate) lease_until_ms: Option<u64>,
    pub(crate) deliveries: u32,
    /// The failures that the handler of an activity has reported, apart from the deliveries.
    pub(crate) failures: u32,
    pub(crate) tag: Option<String>,
    pub(crate) session: Option<String>,
}

impl From<QueuedItem> for Queued {
    fn from(item: QueuedItem) -> Self {
        Self {
            kind: item.kind,
            name: item.name,
            execution: item.execution_id,
            of_event: item.id,
            bytes: item.stored_bytes,
            visible_at: rfc3339(item.visible_at),
            visible_at_ms: item.visible_at,
            lease_until_ms: item.locked_until,
            deliveries: item.attempt_count,
            failures: item.failures,
            tag: item.tag,
            session: item.session_id,
        }
    }
}

impl Queued {
    /// The state for pages: `leased`, `delayed` or `due`.
    pub(crate) fn state(&self, now_ms: &u64) -> &'static str {
        match self.lease_until_ms {
            Some(until) if until > *now_ms => "leased",
            _ if self.visible_at_ms > *now_ms => "delayed",
            _ => "due",
        }
    }
}

/// The queues of an instance. An instance that was started and waits for its first turn has a message.
pub(crate) async fn pending(app: &App, id: &str) -> Result<Pending, Problem> {
    let Some(found) = app.client.pending_work(id, MOST).await? else {
        return Err(Problem::new(Code::UNSUPPORTED, "the store does not report the queues of one instance"));
    };
    if found.message_count == 0 && found.activity_count == 0 {
        super::info(&app.client, id).await?;
    }
    let PendingWork { now_ms, turn_locked_until, messages, message_count, activities, activity_count } =
        found;
    Ok(Pending {
        instance: id.to_string(),
        now: rfc3339(now_ms),
        now_ms,
        turn_lease_until_ms: turn_locked_until,
        messages: messages.into_iter().map(Queued::from).collect(),
        message_count,
        activities: activities.into_iter().map(Queued::from).collect(),
        activity_count,
    })
}
