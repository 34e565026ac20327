//! Step 5: the lease on an instance is renewed, or abandoned.

use crate::state::{State, after, refuse};
use outlast_provider::ProviderError;
use outlast_provider_kit::invalid_token;
use std::time::Duration;

// guide: keep-turn
impl State {
    /// Extends a lease that is held. A lease that is over stays over.
    pub(crate) fn renew_turn(
        &mut self,
        token: &str,
        extend_for: Duration,
        now: u64,
    ) -> Result<(), ProviderError> {
        let instance = self.held_instance("renew_orchestration_item_lock", token, now)?;
        if let Some(lease) = self.leases.get_mut(&instance) {
            lease.extend(now, extend_for);
        }
        Ok(())
    }

    /// Releases the messages that this token covers, and no others. A lease that is over can be abandoned too, unless
    /// another fetch has replaced it.
    pub(crate) fn abandon_turn(
        &mut self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
        now: u64,
    ) -> Result<(), ProviderError> {
        let before = self.leases.len();
        self.leases.retain(|_, lease| lease.token != token);
        if self.leases.len() == before {
            return refuse("abandon_orchestration_item", invalid_token(token));
        }
        for message in self.messages.values_mut().filter(|message| message.token.as_deref() == Some(token)) {
            message.token = None;
            // Without a delay `visible_at` stays, so that the instance keeps its place in line.
            if let Some(delay) = delay {
                message.visible_at = after(now, delay);
            }
            if ignore_attempt {
                message.attempts = message.attempts.saturating_sub(1);
            }
        }
        Ok(())
    }
}
// guide: end
