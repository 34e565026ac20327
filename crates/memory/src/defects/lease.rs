//! Broken leases.

use super::{Defect, Rules};
use crate::rules::{Contract, Fence, LeaseRules, Purpose};
use crate::state::{Lease, State};
use outlast_provider::{Entropy, ProviderError, saturating_ms};
use std::time::Duration;

impl LeaseRules for Rules {
    fn token(&self, entropy: &dyn Entropy) -> String {
        match self.defect {
            Some(Defect::TokensRepeat) => "lock_1".to_string(),
            _ => Contract.token(entropy),
        }
    }

    fn lease_start(&self, called_at: u64, claimed_at: u64) -> u64 {
        match self.defect {
            Some(Defect::LeaseStartsAtCall) => called_at,
            _ => Contract.lease_start(called_at, claimed_at),
        }
    }

    /// The older token is kept for the defects that still honour it.
    fn take_over(&self, state: &mut State, instance: &str, lease: Lease) {
        if let Some(old) = state.leases.get(instance) {
            state.lost_leases.insert(old.token.clone(), instance.to_string());
        }
        Contract.take_over(state, instance, lease);
    }

    fn turn_fence(&self, purpose: Purpose, state: &State, token: &str, now: u64) -> Fence<String> {
        let fence = Contract.turn_fence(purpose, state, token, now);
        match (self.defect, purpose, fence) {
            (Some(Defect::AckAfterTakeover), Purpose::Commit, Fence::Unknown)
            | (Some(Defect::AbandonAfterTakeover), Purpose::Abandon, Fence::Unknown) => {
                state.lost_leases.get(token).map_or(Fence::Unknown, |instance| Fence::Holds(instance.clone()))
            }
            (Some(Defect::AckIgnoresExpiry), Purpose::Commit, Fence::Expired(instance))
            | (Some(Defect::RenewRevives), Purpose::Renew, Fence::Expired(instance)) => {
                Fence::Holds(instance)
            }
            (_, _, fence) => fence,
        }
    }

    fn activity_fence(&self, purpose: Purpose, state: &State, token: &str, now: u64) -> Fence<u64> {
        let fence = Contract.activity_fence(purpose, state, token, now);
        match (self.defect, purpose, fence) {
            (Some(Defect::WorkAckIgnoresExpiry), Purpose::Commit, Fence::Expired(ordinal))
            | (Some(Defect::WorkRenewRevives), Purpose::Renew, Fence::Expired(ordinal)) => {
                Fence::Holds(ordinal)
            }
            (_, _, fence) => fence,
        }
    }

    fn unknown_token(&self, operation: &str, message: String) -> Result<(), ProviderError> {
        match (self.defect, operation) {
            (Some(Defect::AckSkipsTokenCheck), "ack_orchestration_item")
            | (Some(Defect::WorkAckUnknownTokenOk), "ack_work_item")
            | (Some(Defect::NoteUnknownTokenOk), "abandon_work_noted")
            | (Some(Defect::AbandonUnknownTokenOk), "abandon_orchestration_item" | "abandon_work_item") => {
                Ok(())
            }
            _ => Contract.unknown_token(operation, message),
        }
    }

    fn renewed(&self, locked_until: u64, extend_for: Duration, now: u64) -> u64 {
        let seconds = Duration::from_secs(extend_for.as_secs());
        match self.defect {
            Some(Defect::RenewShortens) => now.saturating_add(saturating_ms(extend_for)),
            Some(Defect::RenewTruncatesToSeconds) => now.saturating_add(saturating_ms(seconds)),
            _ => Contract.renewed(locked_until, extend_for, now),
        }
    }

    fn attempts_after_abandon(&self, attempts: u32, ignore_attempt: bool) -> u32 {
        match self.defect {
            Some(Defect::IgnoreAttemptIgnored) => attempts,
            Some(Defect::AttemptBelowZero) if ignore_attempt => attempts.wrapping_sub(2),
            _ => Contract.attempts_after_abandon(attempts, ignore_attempt),
        }
    }
}
