//! Control messages for an instance that does not exist (yet).

/// How long such a message waits before it is looked at again: its age, within these bounds.
const RETRY_MS: (u64, u64) = (1_000, 60_000);

/// How long such a message is kept by default.
pub const DEFAULT_LIFE_MS: u64 = 24 * 60 * 60 * 1_000;

/// What happens to an orphan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrphanFate {
    /// It is looked at again at this time; until then it blocks nobody.
    RetryAt(u64),
    /// It has waited long enough and is set aside.
    SetAside,
}

/// Decides by age, so that no count has to be kept.
pub fn fate(available_at: u64, now: u64, life_ms: u64) -> OrphanFate {
    let age = now.saturating_sub(available_at);
    match age >= life_ms {
        true => OrphanFate::SetAside,
        false => OrphanFate::RetryAt(now.saturating_add(age.clamp(RETRY_MS.0, RETRY_MS.1))),
    }
}

/// Why an orphan was set aside.
pub fn reason(instance: &str, life_ms: u64) -> String {
    format!("instance '{instance}' did not start within {} s", life_ms / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_with_age_within_bounds_and_end() {
        use OrphanFate::*;
        let cases = [
            (0, RetryAt(101_000)),
            (5_000, RetryAt(105_000)),
            (90_000, RetryAt(160_000)),
            (999_999, RetryAt(160_000)),
            (1_000_000, SetAside),
        ];
        for (age, expected) in cases {
            let now = 100_000_u64;
            // Ages beyond the clock are made with an older availability, so shift both.
            let (available_at, now) = (2_000_000 - age, now + 1_900_000);
            let expected = match expected {
                RetryAt(at) => RetryAt(at + 1_900_000),
                SetAside => SetAside,
            };
            assert_eq!(fate(available_at, now, 1_000_000), expected, "age {age}");
        }
    }
}
