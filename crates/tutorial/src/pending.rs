//! Step 9: the messages and activities that wait for one instance.

use crate::state::State;
use outlast_provider::model::json;
use outlast_provider::{PendingWork, QueuedItem};

impl State {
    // guide: pending
    /// The queues and the lease of an instance, without payloads.
    pub(crate) fn pending(&self, instance: &str, limit: usize, now: u64) -> PendingWork {
        let lease = self.leases.get(instance).filter(|lease| lease.is_held(now));
        let mut messages: Vec<_> =
            self.messages.iter().filter(|(_, message)| message.instance == instance).collect();
        messages.sort_by_key(|(ordinal, message)| (message.available_at, **ordinal));
        let messages = messages.into_iter().map(|(_, message)| {
            let covered = lease.filter(|lease| message.token.as_ref() == Some(&lease.token));
            QueuedItem {
                visible_at: message.visible_at,
                locked_until: covered.map(|lease| lease.locked_until),
                attempt_count: message.attempts,
                ..queued(&message.text)
            }
        });
        let activities =
            self.activities.values().filter(|activity| activity.instance == instance).map(|activity| {
                QueuedItem {
                    visible_at: activity.visible_at,
                    locked_until: activity
                        .lease
                        .as_ref()
                        .filter(|lease| lease.is_held(now))
                        .map(|lease| lease.locked_until),
                    attempt_count: activity.attempts,
                    tag: activity.tag.clone(),
                    session_id: activity.session.clone(),
                    ..queued(&activity.text)
                }
            });
        let (messages, activities): (Vec<_>, Vec<_>) = (messages.collect(), activities.collect());
        PendingWork {
            now_ms: now,
            turn_locked_until: lease.map(|lease| lease.locked_until),
            message_count: messages.len() as u64,
            activity_count: activities.len() as u64,
            messages: messages.into_iter().take(limit).collect(),
            activities: activities.into_iter().take(limit).collect(),
        }
    }
    // guide: end
}

/// The kind, name and ids of a stored item. A text that does not decode is counted and has no kind.
fn queued(text: &str) -> QueuedItem {
    let head = json::decode_work_item(text).ok().map(|item| item.head());
    QueuedItem { stored_bytes: text.len() as u64, ..QueuedItem::of(head) }
}
