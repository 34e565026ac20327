//! Control messages for an instance that does not exist (yet).

/// How long such messages wait before they are looked at again: the age of the oldest, within these bounds.
const RETRY_MS: (u64, u64) = (1_000, 60_000);

/// How long such a message is kept by default.
pub const DEFAULT_LIFE_MS: u64 = 24 * 60 * 60 * 1_000;

/// When a batch is looked at again, decided by age so that no count has to be kept. The messages of a batch stay
/// together: a queue message that came back alone would be dropped.
pub fn again_at(oldest_available_at: u64, now: u64) -> u64 {
    now.saturating_add(now.saturating_sub(oldest_available_at).clamp(RETRY_MS.0, RETRY_MS.1))
}

/// Whether a message has waited long enough and is set aside.
pub fn is_over(available_at: u64, now: u64, life_ms: u64) -> bool {
    now.saturating_sub(available_at) >= life_ms
}

/// Why an orphan was set aside.
pub fn reason(instance: &str, life_ms: u64) -> String {
    format!("instance '{instance}' did not start within {} s", life_ms / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_with_age_within_bounds() {
        let now = 2_000_000;
        let waits = [0, 5_000, 90_000, 1_999_999].map(|age| again_at(now - age, now) - now);
        assert_eq!(waits, [1_000, 5_000, 60_000, 60_000]);
    }

    #[test]
    fn a_message_lives_for_a_day_and_the_reason_counts_in_seconds() {
        assert_eq!(DEFAULT_LIFE_MS, 86_400_000);
        assert_eq!(reason("i", 90_000), "instance 'i' did not start within 90 s");
    }

    #[test]
    fn a_life_ends() {
        assert_eq!([999, 1_000].map(|age| is_over(5_000 - age, 5_000, 1_000)), [false, true]);
    }
}
