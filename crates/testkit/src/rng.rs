//! Random numbers that follow from a seed, and a digest that is equal in every run.

/// The generator splitmix64: small, fast, and random enough to choose faults and programs.
#[derive(Debug, Clone)]
pub struct Rng {
    state: u64,
}

/// The constant that splitmix64 adds to its state before each number.
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

impl Rng {
    /// A generator whose first state is the first number that `seed` yields, so that neighbouring seeds do not yield
    /// overlapping sequences.
    pub fn new(seed: u64) -> Self {
        let mut mixer = Self::with_state(seed);
        Self::with_state(mixer.next_u64())
    }

    /// A generator for one purpose. Generators of different labels are independent: one more draw from one of them leaves
    /// the sequences of the others unchanged.
    pub fn stream(seed: u64, label: &str) -> Self {
        Self::new((seed ^ digest(DIGEST_START, label.as_bytes())).wrapping_add(INCREMENT))
    }

    /// A generator with exactly this state.
    pub fn with_state(state: u64) -> Self {
        Self { state }
    }

    /// The next number of the sequence.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(INCREMENT);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `bound - 1`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound.max(1)
    }

    /// An index from 0 to `bound - 1`; 0 if `bound` is 0.
    pub fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// `true` with a probability of `chances` in a thousand.
    pub fn per_mille(&mut self, chances: u64) -> bool {
        self.below(1_000) < chances
    }

    /// One of `items`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.index(items.len())]
    }

    /// A number from 1 to `most`. Every order of magnitude is equally likely.
    pub fn magnitude(&mut self, most: u64) -> u64 {
        let digits = u64::from(64 - most.max(1).leading_zeros());
        let ceiling = 1 << (1 + self.below(digits));
        1 + self.below(ceiling.min(most))
    }
}

/// The digest of no bytes, with which every [`digest`] begins.
pub const DIGEST_START: u64 = 0xcbf2_9ce4_8422_2325;

/// Adds bytes to a digest (FNV-1a). The result is the same in every process and on every machine.
pub fn digest(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded seeds (testdata/seeds.txt) stand for the worlds of these sequences.
    #[test]
    fn sequences_of_a_seed_stay_the_same() {
        let three = |mut rng: Rng| [(); 3].map(|()| rng.next_u64());
        assert_eq!(three(Rng::with_state(0)), FROM_STATE_0);
        assert_eq!(three(Rng::new(7)), FROM_SEED_7);
        assert_eq!(three(Rng::stream(7, "plan")), FROM_SEED_7_FOR_PLAN);
    }

    /// The reference values of splitmix64 for the state 0.
    const FROM_STATE_0: [u64; 3] = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
    const FROM_SEED_7: [u64; 3] = [0xb8b4_c297_7eab_ce45, 0xa653_05fd_338e_c8fe, 0x8ca3_cbb6_ca63_129b];
    const FROM_SEED_7_FOR_PLAN: [u64; 3] =
        [0xd4c8_427a_9e58_4e14, 0x7010_a6a6_0a65_2cd1, 0x63ea_3607_b2bf_622a];

    #[test]
    fn streams_of_different_labels_differ() {
        assert_ne!(Rng::stream(7, "a").next_u64(), Rng::stream(7, "b").next_u64());
        assert_ne!(Rng::stream(7, "a").next_u64(), Rng::stream(8, "a").next_u64());
    }

    #[test]
    fn draws_stay_within_their_bounds() {
        let mut rng = Rng::new(1);
        for _ in 0..1_000 {
            assert!(rng.below(3) < 3);
            assert!((5..=9).contains(&rng.between(5, 9)));
            assert!((1..=100).contains(&rng.magnitude(100)));
            assert!(!rng.per_mille(0) && rng.per_mille(1_000));
            assert!([4, 8].contains(&rng.pick(&[4, 8])));
        }
        assert_eq!((rng.below(0), rng.index(0)), (0, 0));
    }
}
