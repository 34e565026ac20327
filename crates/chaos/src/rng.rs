//! All chance of a run comes from its seed. When a kill lands still depends on the machine.

/// splitmix64: small, fast, and good enough to choose victims with.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    /// An independent stream, so that one more draw here changes nothing there.
    pub(crate) fn stream(seed: u64, label: &str) -> Self {
        let mut mixed = Self(seed ^ digest(DIGEST_START, label.as_bytes()));
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

    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }
}

pub(crate) const DIGEST_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a: a digest that is the same in every process and in every run.
pub(crate) fn digest(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
