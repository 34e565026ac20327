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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_has_a_noun_in_the_singular() {
        assert_eq!([0_u64, 1, 2].map(|count| counted(count, "call")), ["0 calls", "1 call", "2 calls"]);
        assert_eq!([0_u32, 1, 2].map(times), ["0 times", "once", "2 times"]);
    }
}
