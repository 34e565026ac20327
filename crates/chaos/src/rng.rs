//! All chance of a run comes from its seed. When a kill lands still depends on the machine.

/// splitmix64: small, fast, and good enough to choose victims with.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// What a seed alone decides.
    pub fn new(seed: u64) -> Self {
        let mut mixed = Self(seed);
        Self(mixed.next())
    }

    /// An independent stream, so that one more draw here changes nothing there.
    pub fn stream(seed: u64, label: &str) -> Self {
        Self::new(seed ^ digest(DIGEST_START, label.as_bytes()))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `n - 1`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// From 0 to `n - 1`, for indices.
    pub fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).unwrap_or(0)
    }

    /// Both ends included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
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

/// What a digest begins with.
pub const DIGEST_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a: a digest that is the same in every process and in every run.
pub fn digest(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
