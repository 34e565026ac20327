//! Numbers with their nouns.

use std::fmt::Display;

/// A number with its noun: `1 message`, `2 messages`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// The number of repetitions: `once`, `2 times`.
pub fn times<N: Display + PartialEq + From<u8>>(count: N) -> String {
    if count == N::from(1) { "once".to_string() } else { format!("{count} times") }
}

/// The digits of a number in groups of three: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_has_a_noun_in_the_singular() {
        assert_eq!([0_u64, 1, 2].map(|count| counted(count, "call")), ["0 calls", "1 call", "2 calls"]);
        assert_eq!([0_u32, 1, 2].map(times), ["0 times", "once", "2 times"]);
    }

    #[test]
    fn digits_are_in_groups_of_three() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
