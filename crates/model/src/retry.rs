//! Retry policies of activities: number of attempts, and the wait between them.

use std::time::Duration;

/// The wait between attempts.
#[derive(Debug, Clone)]
pub enum BackoffStrategy {
    /// No wait.
    None,
    /// Always the same wait.
    Fixed {
        /// The wait.
        delay: Duration,
    },
    /// A wait that grows by `base` each time.
    Linear {
        /// First wait, and growth.
        base: Duration,
        /// Longest wait.
        max: Duration,
    },
    /// A wait that is multiplied each time.
    Exponential {
        /// First wait.
        base: Duration,
        /// Growth factor.
        multiplier: f64,
        /// Longest wait.
        max: Duration,
    },
}

impl Default for BackoffStrategy {
    fn default() -> Self {
        Self::Exponential { base: Duration::from_millis(100), multiplier: 2.0, max: Duration::from_secs(30) }
    }
}

impl BackoffStrategy {
    /// The wait after failed attempt number `attempt` (the first is 1). Never overflows.
    pub fn delay_for_attempt(&self, attempt: u32) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Fixed { delay } => *delay,
            Self::Linear { base, max } => base.saturating_mul(attempt).min(*max),
            Self::Exponential { base, multiplier, max } => {
                let growth = multiplier.powi(i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX));
                // `as` saturates at the ends of u64 and maps NaN to 0; both are right for a delay.
                let nanos = (base.as_nanos() as f64 * growth) as u64;
                Duration::from_nanos(nanos).min(*max)
            }
        }
    }
}

/// The number of attempts, and the wait between them.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// Number of attempts, the first one included.
    pub max_attempts: u32,
    /// The wait between attempts.
    pub backoff: BackoffStrategy,
    /// Time limit of one attempt; an attempt that exceeds it is not retried.
    pub timeout: Option<Duration>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 3, backoff: BackoffStrategy::default(), timeout: None }
    }
}

/// This many attempts with the default wait; 0 is taken as 1.
impl From<u32> for RetryPolicy {
    fn from(max_attempts: u32) -> Self {
        Self { max_attempts: max_attempts.max(1), ..Self::default() }
    }
}

impl RetryPolicy {
    /// A policy with this many attempts and the default wait.
    ///
    /// # Panics
    /// With 0 attempts. [`RetryPolicy::try_new`] returns an error instead.
    pub fn new(max_attempts: u32) -> Self {
        assert!(max_attempts >= 1, "max_attempts must be at least 1");
        Self { max_attempts, ..Self::default() }
    }

    /// [`RetryPolicy::new`], with an error for 0 attempts.
    pub fn try_new(max_attempts: u32) -> Result<Self, String> {
        if max_attempts == 0 {
            return Err(
                "max_attempts must be at least 1, got 0: the first try counts as an attempt".to_string()
            );
        }
        Ok(Self { max_attempts, ..Self::default() })
    }

    /// Limits each attempt.
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Same as [`RetryPolicy::with_timeout`], under its older name.
    #[doc(hidden)]
    pub fn with_total_timeout(self, timeout: Duration) -> Self {
        self.with_timeout(timeout)
    }

    /// Chooses the wait between attempts.
    pub fn with_backoff(self, backoff: BackoffStrategy) -> Self {
        Self { backoff, ..self }
    }

    /// The wait after failed attempt number `attempt` (the first is 1).
    pub fn delay_for_attempt(&self, attempt: u32) -> Duration {
        self.backoff.delay_for_attempt(attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn delays_follow_the_table_and_never_overflow() {
        let exponential = BackoffStrategy::Exponential { base: MS(100), multiplier: 2.0, max: MS(30_000) };
        let linear = BackoffStrategy::Linear { base: MS(10), max: MS(35) };
        let cases = [
            (BackoffStrategy::None, 7, MS(0)),
            (BackoffStrategy::Fixed { delay: MS(5) }, 9, MS(5)),
            (linear.clone(), 1, MS(10)),
            (linear.clone(), 3, MS(30)),
            (linear, u32::MAX, MS(35)),
            (exponential.clone(), 1, MS(100)),
            (exponential.clone(), 4, MS(800)),
            (exponential, u32::MAX, MS(30_000)),
            (BackoffStrategy::Exponential { base: MS(0), multiplier: 9.0, max: MS(1) }, u32::MAX, MS(0)),
            (BackoffStrategy::Exponential { base: MS(3), multiplier: 1.0, max: MS(9) }, 1_000, MS(3)),
        ];
        for (strategy, attempt, expected) in cases {
            assert_eq!(strategy.delay_for_attempt(attempt), expected, "{strategy:?} attempt {attempt}");
        }
    }

    #[test]
    #[should_panic(expected = "max_attempts must be at least 1")]
    fn zero_attempts_panic() {
        let _ = RetryPolicy::new(0);
    }

    #[test]
    fn zero_attempts_are_an_error_in_the_fallible_form() {
        assert!(RetryPolicy::try_new(0).unwrap_err().contains("at least 1"));
        assert_eq!(RetryPolicy::try_new(4).unwrap().with_timeout(MS(5)).timeout, Some(MS(5)));
    }
}
