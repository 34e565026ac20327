//! Lock tokens. A token holds the key of the locked row, so that the store finds the row without an index on tokens.

use outlast_model::defect::{self, Defect};
use outlast_provider::Entropy;
use std::fmt;

/// The random part of a token, which a store compares to accept the token.
pub type Secret = [u8; 16];

/// An open store object, named in the secret of every lease that it takes: a store that finds an owner dead finds its leases by
/// this name, without a column and without a write per lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner([u8; 8]);

impl Owner {
    /// A name that no other owner has.
    pub fn draw(entropy: &dyn Entropy) -> Self {
        Self::of(entropy.next_u128())
    }

    /// The owner whose name is the first half of these random bits.
    pub fn of(random: u128) -> Self {
        let [first, _] = halves(random);
        Self(first)
    }

    /// The first bytes of the secrets of this owner.
    pub fn bytes(self) -> [u8; 8] {
        self.0
    }

    /// The name as a number.
    pub fn number(self) -> i64 {
        i64::from_be_bytes(self.0)
    }

    /// The owner that `to_string` wrote; `None` for another text.
    pub fn parse(text: &str) -> Option<Self> {
        let number = u64::from_str_radix(text, 16).ok().map(|number| Self(number.to_be_bytes()))?;
        (number.to_string() == text).then_some(number)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

/// Random bits for a new lease. With an owner, the first half is its name, and 64 bits stay random.
pub fn draw_secret(owner: Option<Owner>, entropy: &dyn Entropy) -> Secret {
    let random = if defect::is_on(Defect::SecretRepeats) { 7 } else { entropy.next_u128() };
    let [first, second] = halves(random);
    let mut secret = [0; 16];
    secret[..8].copy_from_slice(&owner.map_or(first, Owner::bytes));
    secret[8..].copy_from_slice(&second);
    secret
}

fn halves(value: u128) -> [[u8; 8]; 2] {
    #[allow(clippy::cast_possible_truncation, reason = "each half of the value is wanted")]
    [((value >> 64) as u64).to_be_bytes(), (value as u64).to_be_bytes()]
}

/// `lock_`, the 128 bits of the secret, a dot, and the key of the locked row. Only the secret makes a token valid; the key is a
/// hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The bits that the store keeps in the locked row.
    pub secret: Secret,
    /// The text that the caller of a fetch gets.
    pub text: String,
}

impl Token {
    /// Creates a token for a key.
    pub fn mint(entropy: &dyn Entropy, key: impl fmt::Display) -> Self {
        Self::mint_for(None, entropy, key)
    }

    /// Creates a token for a key, whose secret names the owner of the lease.
    pub fn mint_for(owner: Option<Owner>, entropy: &dyn Entropy, key: impl fmt::Display) -> Self {
        let secret = draw_secret(owner, entropy);
        Self { secret, text: format!("lock_{:032x}.{key}", u128::from_be_bytes(secret)) }
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
    fn owner_is_the_first_half_of_its_secrets_and_round_trips_as_text() {
        let owner = Owner::draw(&OsEntropy);
        let tokens = [0, 1].map(|_| Token::mint_for(Some(owner), &OsEntropy, "k"));
        for token in &tokens {
            assert_eq!(token.secret[..8], owner.bytes());
            assert_eq!(parse(&token.text), Some((token.secret, "k")));
        }
        assert_ne!(tokens[0], tokens[1]);
        assert_eq!(Owner::parse(&owner.to_string()), Some(owner));
        assert_eq!(owner.number().to_be_bytes(), owner.bytes());
        for text in ["", "+00000000000001f", "1f", "00000000000000zz", "00000000000000001f"] {
            assert_eq!(Owner::parse(text), None, "{text}");
        }
    }

    #[test]
    fn two_tokens_for_one_key_differ() {
        assert_ne!(Token::mint(&OsEntropy, "k"), Token::mint(&OsEntropy, "k"));
    }
}
