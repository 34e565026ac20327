//! Backoff of an attempt that is worth its cost only if it mostly succeeds.

/// Decides on which occasions an attempt is made. Each failure in a row doubles the number of occasions without an attempt.
#[derive(Debug, Default)]
pub(super) struct Skip {
    /// Failures in a row.
    failures: u32,
    /// Occasions until the next attempt.
    left: u32,
}

impl Skip {
    const MOST_DOUBLINGS: u32 = 10;

    /// Whether an attempt is made on this occasion.
    pub(super) fn may_try(&mut self) -> bool {
        let may_try = self.left == 0;
        self.left = self.left.saturating_sub(1);
        may_try
    }

    /// The attempt failed.
    pub(super) fn on_failure(&mut self) {
        self.failures = self.failures.saturating_add(1);
        self.left = (1 << self.failures.min(Self::MOST_DOUBLINGS)) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_doubles_the_occasions_without_an_attempt_up_to_a_limit() {
        let mut skip = Skip::default();
        let mut skipped = Vec::new();
        for _ in 0..12 {
            assert_eq!(skip.left, 0);
            assert!(skip.may_try());
            skip.on_failure();
            let mut occasions = 0;
            while skip.left > 0 {
                assert!(!skip.may_try());
                occasions += 1;
            }
            skipped.push(occasions);
        }
        assert_eq!(skipped, [1, 3, 7, 15, 31, 63, 127, 255, 511, 1_023, 1_023, 1_023]);
    }
}
