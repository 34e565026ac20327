//! Messages that are stored at most once.

use crate::commit::visible_at;
use crate::rules::{OnceRules, StartRules};
use crate::state::{State, refuse};
use outlast_provider::model::WorkItem;
use outlast_provider::model::limits::MAX_MESSAGE_KEY_BYTES;
use outlast_provider::{EnqueueOnce, ProviderError};

impl State {
    pub(crate) fn enqueue_once(
        &mut self,
        item: &WorkItem,
        key: &str,
        most_waiting: usize,
        now: u64,
    ) -> Result<EnqueueOnce, ProviderError> {
        if key.is_empty() || key.len() > MAX_MESSAGE_KEY_BYTES {
            return refuse("enqueue_once", format!("a message key has 1 to {MAX_MESSAGE_KEY_BYTES} bytes"));
        }
        let rules = self.rules;
        let instance = item.target_instance();
        if rules.is_repeated(self, instance, key) {
            return Ok(EnqueueOnce::Repeated);
        }
        if self.has_ended(instance) {
            return Ok(EnqueueOnce::Ended);
        }
        if !rules.is_taken(self, instance) {
            return Ok(EnqueueOnce::NotFound);
        }
        if self.messages.of_instance(instance, |_| true).len() >= most_waiting {
            rules.refuse_key(self, instance, key);
            return Ok(EnqueueOnce::Full);
        }
        self.keep_key(instance, key);
        self.push_message(item, visible_at(item, now, None))?;
        Ok(EnqueueOnce::Stored)
    }

    pub(crate) fn keep_key(&mut self, instance: &str, key: &str) {
        self.message_keys.entry(instance.to_string()).or_default().insert(key.to_string());
    }
}
