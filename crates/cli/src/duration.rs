//! Durations on the command line.

use std::time::Duration;

/// Reads `500ms`, `90s`, `15m`, `2h`, `3d` and sums such as `1h30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "give a number and a unit: ms, s, m, h or d, as in 90s or 1h30m".to_string();
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let ms = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(wrong()),
        };
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let part = number.checked_mul(ms).map(Duration::from_millis);
        total = part.and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        rest = after;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_and_invalid_texts_are_rejected() {
        for (text, ms) in
            [("500ms", 500), ("90s", 90_000), ("1h30m", 5_400_000), ("2d", 172_800_000), ("0s", 0)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "90", "s", "1w", "-1s", "1.5s", "99999999999999999999d", "18446744073709551615d"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
