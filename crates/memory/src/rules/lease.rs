//! Leases of turns and activities.

use crate::state::{Lease, State, refuse};
use outlast_provider::{Entropy, ProviderError, saturating_ms};
use std::time::Duration;

/// The call that presents a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A commit of a turn, or a completion of an activity.
    Commit,
    Abandon,
    Renew,
}

/// The row that a token holds.
pub(crate) enum Fence<T> {
    /// The lease is live.
    Holds(T),
    /// The lease is over, and no other caller has taken the row.
    Expired(T),
    /// The token holds no row: the lease was released or taken over.
    Unknown,
}

pub(crate) trait LeaseRules {
    /// Every lease has its own random token.
    fn token(&self, entropy: &dyn Entropy) -> String {
        format!("lock_{:032x}", entropy.next_u128())
    }

    /// A lease starts when the row is claimed, however long the fetch has waited.
    fn lease_start(&self, _called_at: u64, claimed_at: u64) -> u64 {
        claimed_at
    }

    /// A new lease on an instance replaces the lease that is over.
    fn take_over(&self, state: &mut State, instance: &str, lease: Lease) {
        state.leases.insert(instance.to_string(), lease);
    }

    /// A token holds an instance until its lease is released or taken over. The lease is live while
    /// `locked_until > now`.
    fn turn_fence(&self, _purpose: Purpose, state: &State, token: &str, now: u64) -> Fence<String> {
        match state.instance_of_token(token) {
            Some(instance) if state.live_lease(&instance, now).is_some() => Fence::Holds(instance),
            Some(instance) => Fence::Expired(instance),
            None => Fence::Unknown,
        }
    }

    /// A token holds an activity under the same conditions as [`LeaseRules::turn_fence`].
    fn activity_fence(&self, _purpose: Purpose, state: &State, token: &str, now: u64) -> Fence<u64> {
        match state.activities.by_token(token) {
            Some((ordinal, activity)) if activity.is_leased(now) => Fence::Holds(ordinal),
            Some((ordinal, _)) => Fence::Expired(ordinal),
            None => Fence::Unknown,
        }
    }

    /// A call with a token that holds no row is refused.
    fn unknown_token(&self, operation: &str, message: String) -> Result<(), ProviderError> {
        refuse(operation, message)
    }

    /// A renewal never moves the end of a lease closer.
    fn renewed(&self, locked_until: u64, extend_for: Duration, now: u64) -> u64 {
        now.saturating_add(saturating_ms(extend_for)).max(locked_until)
    }

    /// An abandon with `ignore_attempt` takes the delivery off the count, never below zero.
    fn attempts_after_abandon(&self, attempts: u32, ignore_attempt: bool) -> u32 {
        if ignore_attempt { attempts.saturating_sub(1) } else { attempts }
    }
}
