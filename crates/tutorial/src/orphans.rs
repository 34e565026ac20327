//! Step 3: messages for an instance that does not exist.

use crate::state::State;
use outlast_provider_kit::orphans;

// guide: orphans
impl State {
    /// When the start of the instance becomes visible, if one waits.
    pub(crate) fn start_due(&self, instance: &str) -> Option<u64> {
        let of_instance = self.messages.values().filter(|message| message.instance == instance);
        of_instance.filter(|message| message.begins).map(|start| start.visible_at).min()
    }

    /// The start was delayed. The messages become visible together with it.
    pub(crate) fn wait_for_start(&mut self, instance: &str, ordinals: &[u64], now: u64) {
        let due = self.start_due(instance).unwrap_or(now).max(now.saturating_add(1));
        self.hide(ordinals, due);
    }

    /// No start waits. The messages are kept in case the instance starts, for a day at most.
    pub(crate) fn put_off(&mut self, ordinals: &[u64], now: u64) {
        let available_at = |ordinal: &u64| self.messages.get(ordinal).map(|message| message.available_at);
        let oldest = ordinals.iter().filter_map(available_at).min().unwrap_or(now);
        self.hide(ordinals, orphans::retry_at(oldest, now));
        for ordinal in ordinals {
            let Some(message) = self.messages.get(ordinal) else { continue };
            if orphans::has_expired(message.available_at, now, orphans::DEFAULT_LIFE_MS) {
                let reason = orphans::reason(&message.instance, orphans::DEFAULT_LIFE_MS);
                self.move_message_to_dead_letters(*ordinal, reason, now);
            }
        }
    }

    fn hide(&mut self, ordinals: &[u64], visible_at: u64) {
        for ordinal in ordinals {
            if let Some(message) = self.messages.get_mut(ordinal) {
                message.token = None;
                message.visible_at = visible_at;
            }
        }
    }
}
// guide: end
