//! Lock tokens that carry the key of what they lock, so that finding it needs no index.

use outlast_provider::Entropy;
use std::fmt;

/// The part of a token that makes it valid; this is what a store keeps.
pub type Secret = [u8; 16];

/// `lock_`, 128 random bits, a dot, and the key of the locked row. Only the random bits make it valid; the key saves a
/// look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What the store keeps.
    pub secret: Secret,
    /// What the caller holds.
    pub text: String,
}

impl Token {
    /// A fresh token for a key.
    pub fn mint(entropy: &dyn Entropy, key: impl fmt::Display) -> Self {
        let random = entropy.next_u128();
        Self { secret: random.to_be_bytes(), text: format!("lock_{random:032x}.{key}") }
    }
}

/// The secret and the key of a token; `None` for a text that was never one.
pub fn parse(token: &str) -> Option<(Secret, &str)> {
    let (random, key) = token.strip_prefix("lock_")?.split_once('.')?;
    // Signs and other lengths would be read as numbers too, but were never written.
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
    fn secret_and_key_come_back_even_if_the_key_looks_like_a_token() {
        for key in ["7", "a.b", "lock_1.x", "naïve 🦀"] {
            let token = Token::mint(&OsEntropy, key);
            assert_eq!(parse(&token.text), Some((token.secret, key)));
        }
    }

    #[test]
    fn other_texts_are_no_tokens() {
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
