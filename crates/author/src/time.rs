//! Durations by name.
//!
//! ```
//! use outlast_author::time::{days, hours, minutes, seconds};
//!
//! assert_eq!(days(1), hours(24));
//! assert_eq!(hours(1), minutes(60));
//! assert_eq!(minutes(1), seconds(60));
//! ```

use std::time::Duration;

/// A duration of `count` seconds.
pub const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// A duration of `count` minutes.
pub const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count.saturating_mul(60))
}

/// A duration of `count` hours.
pub const fn hours(count: u64) -> Duration {
    Duration::from_secs(count.saturating_mul(3_600))
}

/// A duration of `count` days of 24 hours.
pub const fn days(count: u64) -> Duration {
    Duration::from_secs(count.saturating_mul(86_400))
}
