//! Chance, from a seed.

/// splitmix64: small, fast, and good enough to choose what breaks.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        let mut mixed = Self(seed);
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

    /// From 0 to `n - 1`, for indices.
    pub(crate) fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).unwrap_or(0)
    }

    pub(crate) fn per_mille(&mut self, chances: u64) -> bool {
        self.below(1_000) < chances
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.index(of.len())]
    }

    /// From 1 to `most`, small numbers as often as large ones.
    pub(crate) fn scale(&mut self, most: u64) -> u64 {
        let digits = u64::from(64 - most.max(1).leading_zeros());
        let ceiling = 1 << (1 + self.below(digits));
        1 + self.below(ceiling.min(most))
    }
}
