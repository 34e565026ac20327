//! Step 3: a fetch leases one instance and returns its visible messages.

use crate::state::{DeadRow, Lease, Message, State};
use outlast_provider::model::{WorkItem, json};
use outlast_provider::{DispatcherCapabilityFilter, OrchestrationItem};
use outlast_provider_kit::{Context, resolve};
use semver::Version;
use std::time::Duration;

/// The instance's messages, its lock token and the highest attempt count among the messages.
pub(crate) type Turn = (OrchestrationItem, String, u32);

impl State {
    // guide: fetch-turn
    pub(crate) fn fetch_turn(
        &mut self,
        now: u64,
        lock_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Option<Turn> {
        for instance in self.waiting_instances(now) {
            // The filter comes before anything is locked, counted or decoded.
            if !self.is_admitted(&instance, filter) {
                continue;
            }
            // An instance without a deliverable message must not hide the instances behind it.
            if let Some(turn) = self.try_instance(&instance, now, lock_timeout) {
                return Some(turn);
            }
        }
        None
    }

    /// Instances with a visible message and without a held lease, in the order of their oldest visible message.
    fn waiting_instances(&self, now: u64) -> Vec<String> {
        let is_locked = |instance: &str| self.leases.get(instance).is_some_and(|lease| lease.is_held(now));
        let waiting = self.messages.iter().filter(|(_, message)| message.visible_at <= now);
        let mut waiting: Vec<_> = waiting.filter(|(_, message)| !is_locked(&message.instance)).collect();
        waiting.sort_by_key(|(ordinal, message)| (message.visible_at, **ordinal));
        waiting.into_iter().map(|(_, message)| message.instance.clone()).collect()
    }
    // guide: end

    // guide: filter
    fn is_admitted(&self, instance: &str, filter: Option<&DispatcherCapabilityFilter>) -> bool {
        let Some(filter) = filter else { return true };
        let pinned = self.current_execution(instance).and_then(|execution| execution.pinned_version.as_ref());
        match pinned {
            Some(pinned) => Version::parse(pinned).is_ok_and(|version| filter.is_compatible(&version)),
            None => !filter.supported_duroxide_versions.is_empty(),
        }
    }
    // guide: end

    // guide: try-instance
    fn try_instance(&mut self, instance: &str, now: u64, lock_timeout: Duration) -> Option<Turn> {
        // A lease that is over is removed: its token cannot commit, renew or abandon any more.
        self.leases.remove(instance);
        let batch = self.decode_batch(instance, now);
        let (ordinals, messages): (Vec<u64>, Vec<WorkItem>) = batch.into_iter().unzip();
        if messages.is_empty() {
            return None;
        }
        let (name, version, execution_id, has_history) = match self.context(instance, &messages) {
            Context::Known { name, version, execution_id, has_history } => {
                (name, version, execution_id, has_history)
            }
            Context::QueueOrphan | Context::ControlOrphan if self.start_due(instance).is_some() => {
                self.wait_for_start(instance, &ordinals, now);
                return None;
            }
            Context::QueueOrphan => {
                self.messages.retain(|ordinal, _| !ordinals.contains(ordinal));
                return None;
            }
            Context::ControlOrphan => {
                self.put_off(&ordinals, now);
                return None;
            }
        };
        let lease = Lease::begin(now, lock_timeout);
        let attempt_count = self.cover(&ordinals, &lease.token);
        let token = lease.token.clone();
        self.leases.insert(instance.to_string(), lease);
        // A history that does not decode is reported under the lease. It is not an error of the fetch.
        let history = if has_history { self.events(instance, execution_id) } else { Ok(Vec::new()) };
        let (history, history_error) =
            history.map_or_else(|e| (Vec::new(), Some(e)), |events| (events, None));
        let item = OrchestrationItem {
            instance: instance.to_string(),
            orchestration_name: name,
            execution_id,
            version,
            history,
            messages,
            history_error,
            kv_snapshot: self.snapshot(instance),
        };
        Some((item, token, attempt_count))
    }
    // guide: end

    // guide: context
    /// Whether the batch belongs to a known instance, starts one, or is orphaned.
    fn context(&self, instance: &str, messages: &[WorkItem]) -> Context {
        if let Some(row) = self.instances.get(instance) {
            return Context::Known {
                name: row.orchestration_name.clone(),
                version: row.orchestration_version.clone(),
                execution_id: row.current_execution,
                has_history: true,
            };
        }
        let newest = self.newest_execution(instance);
        let history = self.events(instance, newest);
        resolve(messages, newest, history.as_deref().map_err(String::as_str))
    }
    // guide: end

    // guide: decode-batch
    /// The visible messages in the order of their availability. A message that does not decode becomes a dead letter.
    fn decode_batch(&mut self, instance: &str, now: u64) -> Vec<(u64, WorkItem)> {
        let of_instance = |message: &Message| message.instance == instance && message.visible_at <= now;
        let visible = self.messages.iter().filter(|(_, message)| of_instance(message));
        let mut visible: Vec<(u64, Message)> = visible.map(|(n, message)| (*n, message.clone())).collect();
        visible.sort_by_key(|(ordinal, message)| (message.available_at, *ordinal));
        let mut batch = Vec::new();
        for (ordinal, message) in visible {
            match json::decode_work_item(&message.text) {
                Ok(item) => batch.push((ordinal, item)),
                Err(reason) => self.move_message_to_dead_letters(ordinal, reason.to_string(), now),
            }
        }
        batch
    }

    /// Covers the messages with the token and counts the delivery. Returns the highest count.
    fn cover(&mut self, ordinals: &[u64], token: &str) -> u32 {
        let mut highest = 0;
        for ordinal in ordinals {
            if let Some(message) = self.messages.get_mut(ordinal) {
                message.token = Some(token.to_string());
                message.attempts += 1;
                highest = highest.max(message.attempts);
            }
        }
        highest
    }
    // guide: end

    pub(crate) fn move_message_to_dead_letters(&mut self, ordinal: u64, reason: String, now: u64) {
        if let Some(Message { instance, text, attempts, .. }) = self.messages.remove(&ordinal) {
            self.dead_letters.push(DeadRow {
                is_activity: false,
                instance,
                text,
                reason,
                attempts,
                dead_at: now,
            });
        }
    }
}
