//! Times and durations in text form.

/// Milliseconds since the Unix epoch as `2026-03-01 12:34:56.789` (UTC).
pub fn moment(ms: u64) -> String {
    let (days, of_day) = (ms / 86_400_000, ms % 86_400_000);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{:03}", of_day % 1_000)
}

/// Year, month and day of a day since the epoch, in the Gregorian calendar. Years are counted from March, so that the leap
/// day is the last one of its year.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // From 0000-03-01 to 1970-01-01.
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// A duration in its two largest units: `3d 4h`, `12m 5s`, `1.5s`, `40ms`.
pub fn span(ms: u64) -> String {
    let two = |large: u64, large_unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large}{large_unit}"),
        small => format!("{large}{large_unit} {small}{small_unit}"),
    };
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => two(ms / 60_000, "m", ms / 1_000 % 60, "s"),
        3_600_000..86_400_000 => two(ms / 3_600_000, "h", ms / 60_000 % 60, "m"),
        _ => two(ms / 86_400_000, "d", ms / 3_600_000 % 24, "h"),
    }
}
