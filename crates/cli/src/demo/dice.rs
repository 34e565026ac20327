//! Chance that can be repeated: the same seed and the same question give the same answer, also after a restart.

/// A stream of numbers that follows from a seed and a question.
#[derive(Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64, question: &str) -> Self {
        // FNV-1a mixes the question in; it only has to give different values for different questions.
        let mixed = question.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        Self(seed ^ mixed)
    }

    /// The next number (splitmix64).
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// One of the values; the list must not be empty.
    pub(super) fn pick<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[usize::try_from(self.below(things.len() as u64)).unwrap_or_default()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_repeat_and_questions_differ() {
        let five = |seed, question| {
            let mut dice = Dice::new(seed, question);
            [(); 5].map(|()| dice.below(100))
        };
        assert_eq!(five(7, "order"), five(7, "order"));
        assert_ne!(five(7, "order"), five(8, "order"));
        assert_ne!(five(7, "order"), five(7, "gateway"));
    }

    /// A published package cannot depend on `outlast-testkit`, so the demo has a copy of its generator. Both must draw the same numbers.
    #[test]
    fn dice_draw_the_numbers_of_the_testkit() {
        use outlast_testkit::rng::{DIGEST_START, Rng, digest};
        let mut dice = Dice::new(7, "order");
        let mut rng = Rng::with_state(7 ^ digest(DIGEST_START, b"order"));
        for _ in 0..5 {
            assert_eq!(dice.next(), rng.next_u64());
        }
    }
}
