//! The messages and activities that wait for one instance.

use crate::rules::AdminRules;
use crate::state::State;
use outlast_provider::model::json;
use outlast_provider::{PendingWork, QueuedItem};

impl State {
    pub(crate) fn pending(&self, instance: &str, limit: usize, now: u64) -> PendingWork {
        let lease = self.live_lease(instance, now).filter(|_| !self.holds.contains_key(instance));
        let queued = |text: &str| QueuedItem {
            stored_bytes: text.len() as u64,
            ..QueuedItem::of(json::decode_work_item(text).ok().map(|item| item.head()))
        };
        let mut ordinals = self.messages.of_instance(instance, |_| true);
        ordinals.sort_by_key(|ordinal| (self.messages.get(*ordinal).map(|row| row.available_at), *ordinal));
        let messages = ordinals.iter().filter_map(|ordinal| self.messages.get(*ordinal)).map(|row| {
            let covered = lease.filter(|lease| row.token.as_ref() == Some(&lease.token));
            QueuedItem {
                visible_at: row.visible_at,
                locked_until: covered.map(|lease| lease.locked_until),
                attempt_count: row.attempts,
                ..queued(&row.text)
            }
        });
        let activities = self.activities.rows.values();
        let activities =
            activities.filter(|row| self.rules.is_pending(row, instance, now)).map(|row| QueuedItem {
                visible_at: row.visible_at,
                locked_until: row.is_leased(now).then_some(row.locked_until),
                attempt_count: row.attempts,
                failures: self.rules.pending_failures(row),
                tag: row.tag.clone(),
                session_id: row.session_id.clone(),
                ..queued(&row.text)
            });
        let (messages, activities): (Vec<_>, Vec<_>) = (messages.collect(), activities.collect());
        let (message_count, activity_count) = (messages.len() as u64, activities.len() as u64);
        PendingWork {
            now_ms: now,
            turn_locked_until: lease.map(|lease| lease.locked_until),
            messages: messages.into_iter().take(limit).collect(),
            message_count,
            activities: activities.into_iter().take(limit).collect(),
            activity_count,
        }
    }
}
