//! Randomness as a value: a store is given the source of its lock tokens.

/// Where a store takes random bits from.
pub trait Entropy: Send + Sync + 'static {
    /// 128 bits that nobody can predict (outside of a simulation).
    fn next_u128(&self) -> u128;
}

/// The operating system's random source.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    #[allow(clippy::disallowed_methods, reason = "this file is where randomness is read")]
    #[allow(
        clippy::expect_used,
        reason = "an operating system without random bits cannot run a lease protocol"
    )]
    fn next_u128(&self) -> u128 {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the operating system has random bits");
        u128::from_le_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_differ() {
        assert_ne!(OsEntropy.next_u128(), OsEntropy.next_u128());
    }
}
