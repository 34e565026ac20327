//! Orphans: messages for an instance that does not exist (yet), other than queue messages alone.

/// The shortest and the longest delay of orphans; between them the delay is the age of the oldest message.
const RETRY_MS: (u64, u64) = (1_000, 60_000);

/// The default time after which an orphan becomes a dead letter.
pub const DEFAULT_LIFE_MS: u64 = 24 * 60 * 60 * 1_000;

/// The time until which a batch of orphans is delayed. It depends on the age of the batch, so the store keeps no count. All messages
/// of a batch get the same time: a queue message that became visible alone would be dropped.
pub fn retry_at(oldest_available_at: u64, now: u64) -> u64 {
    now.saturating_add(now.saturating_sub(oldest_available_at).clamp(RETRY_MS.0, RETRY_MS.1))
}

/// Whether an orphan has reached its age limit and becomes a dead letter.
pub fn has_expired(available_at: u64, now: u64, life_ms: u64) -> bool {
    now.saturating_sub(available_at) >= life_ms
}

/// The reason that the dead letter of an orphan holds.
pub fn reason(instance: &str, life_ms: u64) -> String {
    format!("instance '{instance}' did not start within {} s", life_ms / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_grows_with_age_within_its_bounds() {
        let now = 2_000_000;
        let waits = [0, 5_000, 90_000, 1_999_999].map(|age| retry_at(now - age, now) - now);
        assert_eq!(waits, [1_000, 5_000, 60_000, 60_000]);
    }

    #[test]
    fn the_default_life_is_a_day_and_the_reason_is_in_seconds() {
        assert_eq!(DEFAULT_LIFE_MS, 86_400_000);
        assert_eq!(reason("i", 90_000), "instance 'i' did not start within 90 s");
    }

    #[test]
    fn an_orphan_expires_at_exactly_its_age_limit() {
        assert_eq!([999, 1_000].map(|age| has_expired(5_000 - age, 5_000, 1_000)), [false, true]);
    }
}
