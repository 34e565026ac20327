//! Tokens and ids that are equal in every run.

use crate::rng::Rng;
use outlast_provider::Entropy;
use std::sync::{Mutex, PoisonError};

/// The entropy of a store or a runtime, drawn from a seed.
pub struct SeededEntropy(Mutex<Rng>);

impl SeededEntropy {
    /// The entropy for one purpose; see [`Rng::stream`].
    pub fn new(seed: u64, label: &str) -> Self {
        Self(Mutex::new(Rng::stream(seed, label)))
    }
}

impl Entropy for SeededEntropy {
    fn next_u128(&self) -> u128 {
        let mut rng = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())
    }
}
