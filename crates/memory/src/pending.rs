//! The messages and activities that wait for one instance, and those of a whole queue.

use crate::queue::{Activity, Message};
use crate::rules::AdminRules;
use crate::state::{Lease, State, refuse};
use outlast_provider::model::json;
use outlast_provider::{
    DeadLetterQueue, InstanceItem, PendingWork, ProviderError, QueuePage, QueuedItem, TagDepth,
};
use std::collections::BTreeMap;
use std::ops::Bound;

impl State {
    pub(crate) fn pending(&self, instance: &str, limit: usize, now: u64) -> PendingWork {
        let mut ordinals = self.messages.of_instance(instance, |_| true);
        ordinals.sort_by_key(|ordinal| (self.messages.get(*ordinal).map(|row| row.available_at), *ordinal));
        let messages = ordinals.iter().filter_map(|ordinal| self.messages.get(*ordinal));
        let messages: Vec<_> = messages.map(|row| self.queued_message(row, now)).collect();
        let activities = self.activities.rows.values();
        let activities = activities.filter(|row| self.rules.is_pending(row, instance, now));
        let activities: Vec<_> = activities.map(|row| self.queued_activity(row, now)).collect();
        let (message_count, activity_count) = (messages.len() as u64, activities.len() as u64);
        PendingWork {
            now_ms: now,
            turn_locked_until: self.turn_lease(instance, now).map(|lease| lease.locked_until),
            messages: messages.into_iter().take(limit).collect(),
            message_count,
            activities: activities.into_iter().take(limit).collect(),
            activity_count,
        }
    }

    /// The lease of a turn of an instance. A held instance has none.
    fn turn_lease(&self, instance: &str, now: u64) -> Option<&Lease> {
        self.live_lease(instance, now).filter(|_| !self.holds.contains_key(instance))
    }

    fn queued_message(&self, row: &Message, now: u64) -> QueuedItem {
        let lease = self.turn_lease(&row.instance, now);
        let covered = lease.filter(|lease| row.token.as_ref() == Some(&lease.token));
        QueuedItem {
            visible_at: row.visible_at,
            locked_until: covered.map(|lease| lease.locked_until),
            attempt_count: row.attempts,
            ..queued(&row.text)
        }
    }

    fn queued_activity(&self, row: &Activity, now: u64) -> QueuedItem {
        QueuedItem {
            visible_at: row.visible_at,
            locked_until: row.is_leased(now).then_some(row.locked_until),
            attempt_count: row.attempts,
            failures: self.rules.pending_failures(row),
            tag: row.tag.clone(),
            session_id: row.session_id.clone(),
            ..queued(&row.text)
        }
    }

    /// A page in the order of arrival. A position is the number of the last row.
    pub(crate) fn queue_page(
        &self,
        queue: DeadLetterQueue,
        after: Option<&str>,
        limit: usize,
        now: u64,
    ) -> Result<QueuePage, ProviderError> {
        let Ok(after) = after.map_or(Ok(0), str::parse) else {
            return refuse("queue_page", "the position of the page is unknown");
        };
        let item = |instance: &String, item| InstanceItem { instance_id: instance.clone(), item };
        let mut rows: Vec<(u64, InstanceItem)> = match queue {
            DeadLetterQueue::Orchestrator => {
                let rows = self.messages.after(after).take(limit.saturating_add(1));
                rows.map(|(at, row)| (at, item(&row.instance, self.queued_message(row, now)))).collect()
            }
            DeadLetterQueue::Worker => {
                let later = (Bound::Excluded(after), Bound::Unbounded);
                let rows = self.activities.rows.range(later);
                let rows = rows.filter(|(_, row)| self.rules.is_on_queue_page(row, now));
                let rows = rows.take(limit.saturating_add(1));
                rows.map(|(at, row)| (*at, item(&row.instance, self.queued_activity(row, now)))).collect()
            }
        };
        let is_cut = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().map(|(at, _)| at.to_string()).filter(|_| is_cut);
        Ok(QueuePage { now_ms: now, items: rows.into_iter().map(|(_, item)| item).collect(), next })
    }

    pub(crate) fn tag_depths(&self, limit: usize, now: u64) -> Vec<TagDepth> {
        let mut tags: BTreeMap<Option<String>, TagDepth> = BTreeMap::new();
        for row in self.activities.rows.values() {
            let empty = || TagDepth { tag: row.tag.clone(), ..TagDepth::default() };
            let depth = tags.entry(row.tag.clone()).or_insert_with(empty);
            if self.rules.counts_as_leased(row, now) {
                depth.leased += 1;
            } else if row.visible_at > now {
                depth.delayed += 1;
            } else {
                depth.due += 1;
                depth.oldest_ms = depth.oldest_ms.max(Some(now - row.visible_at));
            }
        }
        tags.into_values().take(limit).collect()
    }
}

/// The kind, name and ids of a stored item. A text that does not decode has none.
fn queued(text: &str) -> QueuedItem {
    let head = json::decode_work_item(text).ok().map(|item| item.head());
    QueuedItem { stored_bytes: text.len() as u64, ..QueuedItem::of(head) }
}
