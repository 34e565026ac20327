//! Lock tokens that carry the key of what they lock, so that finding it needs no index.

use outlast_provider::Entropy;
use std::fmt;

/// `lock_`, 128 random bits, a dot, and the key of the locked row. Only the random part makes it valid; the key
/// saves a look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A fresh token for a key.
    pub fn mint(entropy: &dyn Entropy, key: impl fmt::Display) -> Self {
        Self(format!("{}{key}", prefix(entropy)))
    }

    /// The text that callers hold.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text that callers hold.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// A fresh token up to its key, for stores that append the key themselves.
pub fn prefix(entropy: &dyn Entropy) -> String {
    format!("lock_{:032x}.", entropy.next_u128())
}

/// The key inside a token; `None` for a text that was never a token.
pub fn key_of(token: &str) -> Option<&str> {
    let (random, key) = token.strip_prefix("lock_")?.split_once('.')?;
    (random.len() == 32 && !key.is_empty()).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_provider::OsEntropy;

    #[test]
    fn the_key_comes_back_even_if_it_looks_like_a_token() {
        for key in ["7", "a.b", "lock_1.x", "naïve 🦀"] {
            assert_eq!(key_of(Token::mint(&OsEntropy, key).as_str()), Some(key));
        }
    }

    #[test]
    fn other_texts_are_no_tokens() {
        for text in ["", "lock_", "lock_12.3", "bogus", "lock_00000000000000000000000000000000."] {
            assert_eq!(key_of(text), None, "{text}");
        }
    }

    #[test]
    fn two_tokens_for_one_key_differ() {
        assert_ne!(Token::mint(&OsEntropy, "k"), Token::mint(&OsEntropy, "k"));
    }
}
