//! All chance of a world comes from its seed.

use outlast_provider::Entropy;
use std::sync::{Mutex, PoisonError};

/// splitmix64: small, fast, and good enough to choose faults with.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    /// An independent stream, so that one more draw here changes nothing there.
    pub(crate) fn stream(seed: u64, label: &str) -> Self {
        let mut mixed = Self(seed ^ digest(FNV_START, label.as_bytes()));
        mixed.next();
        Self(mixed.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `n - 1`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// Both ends included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub(crate) fn per_mille(&mut self, chances: u64) -> bool {
        self.below(1_000) < chances
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        let at = usize::try_from(self.below(of.len() as u64)).unwrap_or(0);
        of[at]
    }
}

pub(crate) const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a: a digest that is the same on every machine and in every run.
pub(crate) fn digest(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The entropy of a store or a runtime.
pub(crate) struct Seeded(Mutex<Rng>);

impl Seeded {
    pub(crate) fn new(seed: u64, label: &str) -> Self {
        Self(Mutex::new(Rng::stream(seed, label)))
    }
}

impl Entropy for Seeded {
    fn next_u128(&self) -> u128 {
        let mut rng = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        u128::from(rng.next()) << 64 | u128::from(rng.next())
    }
}
