//! Holds of instances.

use crate::queue::Message;
use crate::rules::{Fence, HoldRules, LeaseRules, Purpose, StartRules};
use crate::state::{State, refuse};
use outlast_provider::model::json;
use outlast_provider::{
    HeldCounts, HeldInstance, Hold, HoldOutcome, PausedOrchestration, ProviderError, ReleaseOutcome,
};

const HOLD_TURN: &str = "hold_turn";

impl State {
    /// Holds an instance, unless a turn of it runs.
    pub(crate) fn hold(&mut self, instance: &str, hold: &Hold, now: u64) -> HoldOutcome {
        if self.holds.contains_key(instance) {
            return HoldOutcome::AlreadyHeld;
        }
        let rules = self.rules;
        if !rules.is_taken(self, instance) {
            return HoldOutcome::NotFound;
        }
        if self.has_ended(instance) {
            return HoldOutcome::Ended;
        }
        if self.is_cancelled(instance) {
            return HoldOutcome::Cancelled;
        }
        if let Some(locked_until_ms) = rules.runs_until(self, instance, now) {
            return HoldOutcome::InTurn { locked_until_ms };
        }
        // A rest stays: after the release it still keeps messages from overtaking delayed ones.
        if self.leases.get(instance).is_some_and(|lease| !lease.is_rest) {
            self.leases.remove(instance);
            self.uncover(instance);
        }
        self.insert_hold(instance, hold, now);
        HoldOutcome::Held
    }

    /// Gives back a turn with its deliveries uncounted, and holds its instance.
    pub(crate) fn hold_turn(
        &mut self,
        token: &str,
        hold: &Hold,
        now: u64,
    ) -> Result<HoldOutcome, ProviderError> {
        let rules = self.rules;
        let instance = match rules.hold_fence(rules.turn_fence(Purpose::Commit, self, token, now)) {
            Fence::Holds(instance) => instance,
            Fence::Expired(_) | Fence::Unknown => {
                return refuse(HOLD_TURN, format!("Invalid lock token '{token}': the lease is over"));
            }
        };
        if self.is_cancelled(&instance) {
            return Ok(HoldOutcome::Cancelled);
        }
        let covered = self.messages.tagged(&instance, token);
        self.abandon_turn(token, None, false, now)?;
        for ordinal in covered {
            self.messages
                .update(ordinal, |message| message.attempts = rules.attempts_after_hold(message.attempts));
        }
        self.insert_hold(&instance, hold, now);
        Ok(HoldOutcome::Held)
    }

    /// Whether a cancellation waits for the instance.
    pub(crate) fn is_cancelled(&self, instance: &str) -> bool {
        let cancels = |message: &Message| {
            json::decode_work_item(&message.text).is_ok_and(|item| self.rules.ends_hold(&item))
        };
        !self.messages.of_instance(instance, cancels).is_empty()
    }

    fn insert_hold(&mut self, instance: &str, hold: &Hold, now: u64) {
        let held = HeldInstance { instance_id: instance.to_string(), hold: hold.clone(), held_at_ms: now };
        self.holds.insert(instance.to_string(), held);
    }

    /// Ends the hold of an instance.
    pub(crate) fn release(&mut self, instance: &str) -> ReleaseOutcome {
        match self.holds.remove(instance) {
            Some(held) => {
                let rules = self.rules;
                rules.return_messages(self, &held);
                ReleaseOutcome::Released
            }
            None => ReleaseOutcome::NotHeld,
        }
    }

    /// Adds an orchestration to the paused ones.
    pub(crate) fn pause(&mut self, orchestration: &str, actor: &str, reason: &str, now: u64) -> HoldOutcome {
        if self.rules.is_paused(self, orchestration) {
            return HoldOutcome::AlreadyHeld;
        }
        let paused = PausedOrchestration {
            orchestration: orchestration.to_string(),
            actor: actor.to_string(),
            reason: reason.to_string(),
            paused_at_ms: now,
        };
        self.paused.insert(orchestration.to_string(), paused);
        HoldOutcome::Held
    }

    /// Removes an orchestration from the paused ones.
    pub(crate) fn resume(&mut self, orchestration: &str) -> ReleaseOutcome {
        let rules = self.rules;
        match rules.remove_pause(self, orchestration) {
            true => ReleaseOutcome::Released,
            false => ReleaseOutcome::NotHeld,
        }
    }

    /// The numbers of held instances and of their messages.
    pub(crate) fn held_counts(&self) -> HeldCounts {
        let messages = self.messages.iter().filter(|message| self.holds.contains_key(&message.instance));
        HeldCounts { instances: self.holds.len() as u64, messages: messages.count() as u64 }
    }

    /// Held instances by ascending id.
    pub(crate) fn list_held(&self, after: Option<&str>, limit: usize) -> Vec<HeldInstance> {
        let is_after = |held: &&HeldInstance| after.is_none_or(|after| held.instance_id.as_str() > after);
        self.holds.values().filter(is_after).take(limit).cloned().collect()
    }
}
