//! Times and durations.

use outlast_lens::{moment, span};

#[test]
fn times_are_formatted_as_calendar_dates() {
    for (ms, expected) in [
        (0, "1970-01-01 00:00:00.000"),
        (951_782_399_999, "2000-02-28 23:59:59.999"),
        (951_782_400_000, "2000-02-29 00:00:00.000"),
        (1_709_251_200_000, "2024-03-01 00:00:00.000"),
        (4_107_542_400_000, "2100-03-01 00:00:00.000"),
    ] {
        assert_eq!(moment(ms), expected);
    }
    assert!(moment(u64::MAX).starts_with("584556019-"));
}

#[test]
fn durations_are_shown_with_at_most_two_units() {
    for (ms, expected) in [
        (40, "40ms"),
        (1_540, "1.5s"),
        (60_000, "1m"),
        (725_000, "12m 5s"),
        (7_260_000, "2h 1m"),
        (273_600_000, "3d 4h"),
    ] {
        assert_eq!(span(ms), expected);
    }
}
