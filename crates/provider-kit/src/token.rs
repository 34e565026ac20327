//! Lock tokens. A token holds the key of the locked row, so that the store finds the row without an index on tokens.

use outlast_provider::Entropy;
use std::fmt;

/// The random part of a token, which a store compares to accept the token.
pub type Secret = [u8; 16];

/// `lock_`, 128 random bits, a dot, and the key of the locked row. Only the random bits make a token valid; the key is a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The random bits, which the store keeps in the locked row.
    pub secret: Secret,
    /// The text that the caller of a fetch gets.
    pub text: String,
}

impl Token {
    /// Creates a token for a key.
    pub fn mint(entropy: &dyn Entropy, key: impl fmt::Display) -> Self {
        let random = entropy.next_u128();
        Self { secret: random.to_be_bytes(), text: format!("lock_{random:032x}.{key}") }
    }
}

/// The secret and the key of a token; `None` for a malformed text.
pub fn parse(token: &str) -> Option<(Secret, &str)> {
    let (random, key) = token.strip_prefix("lock_")?.split_once('.')?;
    // `from_str_radix` accepts signs and other lengths, which `mint` never writes.
    let well_formed = random.len() == 32 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !well_formed || key.is_empty() {
        return None;
    }
    Some((u128::from_str_radix(random, 16).ok()?.to_be_bytes(), key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_provider::OsEntropy;

    #[test]
    fn secret_and_key_round_trip_even_if_the_key_looks_like_a_token() {
        for key in ["7", "a.b", "lock_1.x", "naïve 🦀"] {
            let token = Token::mint(&OsEntropy, key);
            assert_eq!(parse(&token.text), Some((token.secret, key)));
        }
    }

    #[test]
    fn malformed_tokens_are_rejected() {
        let signed = format!("lock_+{:031x}.k", 1);
        for text in ["", "lock_", "lock_12.3", "bogus", "lock_00000000000000000000000000000000.", &signed] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn two_tokens_for_one_key_differ() {
        assert_ne!(Token::mint(&OsEntropy, "k"), Token::mint(&OsEntropy, "k"));
    }
}
