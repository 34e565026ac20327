//! The message queue and the activity queue, in the orders that fetches need.

use outlast_provider::WorkNotes;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// A waiting orchestrator message.
#[derive(Clone)]
pub(crate) struct Message {
    pub(crate) instance: String,
    pub(crate) text: String,
    /// When the message first became visible. Never changes; decides the order within a batch.
    pub(crate) available_at: u64,
    pub(crate) visible_at: u64,
    /// When the message can be fetched: `visible_at`, or the end of the lease that covers it.
    pub(crate) fetch_at: u64,
    pub(crate) token: Option<String>,
    pub(crate) attempts: u32,
}

/// Messages by ordinal, in the order in which they become fetchable, and by instance.
#[derive(Default)]
pub(crate) struct MessageQueue {
    rows: BTreeMap<u64, Message>,
    by_fetch_time: BTreeSet<(u64, u64)>,
    by_instance: BTreeMap<String, BTreeSet<u64>>,
    last_ordinal: u64,
}

impl MessageQueue {
    /// Adds a message, and returns its ordinal.
    pub(crate) fn push(&mut self, instance: &str, text: String, visible_at: u64) -> u64 {
        self.last_ordinal += 1;
        let message = Message {
            instance: instance.to_string(),
            text,
            available_at: visible_at,
            visible_at,
            fetch_at: visible_at,
            token: None,
            attempts: 0,
        };
        self.by_fetch_time.insert((visible_at, self.last_ordinal));
        self.by_instance.entry(instance.to_string()).or_default().insert(self.last_ordinal);
        self.rows.insert(self.last_ordinal, message);
        self.last_ordinal
    }

    /// Instances with fetchable messages, ordered by the time at which their messages became visible. An instance may occur
    /// more than once.
    pub(crate) fn due_instances(&self, now: u64) -> Vec<String> {
        let due = self.by_fetch_time.range(..=(now, u64::MAX));
        let mut due: Vec<(u64, u64, &Message)> = due
            .filter_map(|(_, ordinal)| self.rows.get(ordinal).map(|row| (row.visible_at, *ordinal, row)))
            .collect();
        due.sort_by_key(|(visible_at, ordinal, _)| (*visible_at, *ordinal));
        due.into_iter().map(|(_, _, row)| row.instance.clone()).collect()
    }

    /// Ordinals of an instance's visible messages.
    pub(crate) fn visible(&self, instance: &str, now: u64) -> Vec<u64> {
        self.of_instance(instance, |message| message.visible_at <= now)
    }

    /// Ordinals of the messages that a lease covers.
    pub(crate) fn tagged(&self, instance: &str, token: &str) -> Vec<u64> {
        self.of_instance(instance, |message| message.token.as_deref() == Some(token))
    }

    pub(crate) fn of_instance(&self, instance: &str, wanted: impl Fn(&Message) -> bool) -> Vec<u64> {
        let ordinals = self.by_instance.get(instance).into_iter().flatten().copied();
        ordinals.filter(|ordinal| self.rows.get(ordinal).is_some_and(&wanted)).collect()
    }

    /// Messages with their ordinals, in the order of arrival, after this ordinal.
    pub(crate) fn after(&self, ordinal: u64) -> impl Iterator<Item = (u64, &Message)> {
        let later = (Bound::Excluded(ordinal), Bound::Unbounded);
        self.rows.range(later).map(|(ordinal, row)| (*ordinal, row))
    }

    pub(crate) fn get(&self, ordinal: u64) -> Option<&Message> {
        self.rows.get(&ordinal)
    }

    /// Changes a message and updates the fetch order.
    pub(crate) fn update(&mut self, ordinal: u64, change: impl FnOnce(&mut Message)) {
        if let Some(message) = self.rows.get_mut(&ordinal) {
            self.by_fetch_time.remove(&(message.fetch_at, ordinal));
            change(message);
            self.by_fetch_time.insert((message.fetch_at, ordinal));
        }
    }

    pub(crate) fn remove(&mut self, ordinal: u64) -> Option<Message> {
        let message = self.rows.remove(&ordinal)?;
        self.by_fetch_time.remove(&(message.fetch_at, ordinal));
        if let Some(ordinals) = self.by_instance.get_mut(&message.instance) {
            ordinals.remove(&ordinal);
            if ordinals.is_empty() {
                self.by_instance.remove(&message.instance);
            }
        }
        Some(message)
    }

    /// When the next message that cannot be fetched yet becomes fetchable.
    pub(crate) fn next_due(&self, now: u64) -> Option<u64> {
        self.by_fetch_time.range((now + 1, 0)..).next().map(|(at, _)| *at)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Message> {
        self.rows.values()
    }
}

/// A waiting activity.
#[derive(Clone)]
pub(crate) struct Activity {
    pub(crate) text: String,
    pub(crate) visible_at: u64,
    pub(crate) token: Option<String>,
    pub(crate) locked_until: u64,
    pub(crate) attempts: u32,
    pub(crate) notes: WorkNotes,
    pub(crate) instance: String,
    pub(crate) execution_id: u64,
    pub(crate) activity_id: u64,
    pub(crate) session_id: Option<String>,
    pub(crate) tag: Option<String>,
}

impl Activity {
    pub(crate) fn is_leased(&self, now: u64) -> bool {
        self.token.is_some() && self.locked_until > now
    }
}

/// Activities by ordinal.
#[derive(Default)]
pub(crate) struct ActivityQueue {
    pub(crate) rows: BTreeMap<u64, Activity>,
    by_token: BTreeMap<String, u64>,
    last_ordinal: u64,
}

impl ActivityQueue {
    pub(crate) fn push(&mut self, activity: Activity) {
        self.last_ordinal += 1;
        self.rows.insert(self.last_ordinal, activity);
    }

    pub(crate) fn lease(&mut self, ordinal: u64, token: &str, locked_until: u64) {
        if let Some(activity) = self.rows.get_mut(&ordinal) {
            if let Some(old) = activity.token.replace(token.to_string()) {
                self.by_token.remove(&old);
            }
            activity.locked_until = locked_until;
            self.by_token.insert(token.to_string(), ordinal);
        }
    }

    pub(crate) fn by_token(&self, token: &str) -> Option<(u64, &Activity)> {
        let ordinal = *self.by_token.get(token)?;
        Some((ordinal, self.rows.get(&ordinal)?))
    }

    /// Removes the token and the lease of a row.
    pub(crate) fn release(&mut self, token: &str) -> Option<&mut Activity> {
        let ordinal = self.by_token.remove(token)?;
        let activity = self.rows.get_mut(&ordinal)?;
        activity.token = None;
        activity.locked_until = 0;
        Some(activity)
    }

    pub(crate) fn remove(&mut self, ordinal: u64) -> Option<Activity> {
        let activity = self.rows.remove(&ordinal)?;
        if let Some(token) = &activity.token {
            self.by_token.remove(token);
        }
        Some(activity)
    }

    /// Removes the rows that match; returns how many.
    pub(crate) fn remove_where(&mut self, matches: impl Fn(&Activity) -> bool) -> u64 {
        let gone: Vec<u64> =
            self.rows.iter().filter(|(_, activity)| matches(activity)).map(|(n, _)| *n).collect();
        gone.iter().for_each(|ordinal| drop(self.remove(*ordinal)));
        gone.len() as u64
    }

    /// When the next row that cannot be fetched yet becomes fetchable.
    pub(crate) fn next_due(&self, now: u64) -> Option<u64> {
        self.rows
            .values()
            .map(|activity| activity.visible_at.max(activity.locked_until))
            .filter(|at| *at > now)
            .min()
    }
}
