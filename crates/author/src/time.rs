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

/// This many seconds.
pub const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// This many minutes.
pub const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count.saturating_mul(60))
}

/// This many hours.
pub const fn hours(count: u64) -> Duration {
    Duration::from_secs(count.saturating_mul(3_600))
}

/// This many days of 24 hours.
pub const fn days(count: u64) -> Duration {
    Duration::from_secs(count.saturating_mul(86_400))
}
