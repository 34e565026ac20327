//! Makes choices from the bytes of an input. After the last byte every choice is the first one.

pub(crate) struct Choices<'a> {
    rest: &'a [u8],
}

impl<'a> Choices<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        match self.rest.split_first() {
            Some((first, rest)) => {
                self.rest = rest;
                *first
            }
            None => 0,
        }
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let wide = bound > 256;
        let drawn = usize::from(self.byte()) | if wide { usize::from(self.byte()) << 8 } else { 0 };
        if bound == 0 { 0 } else { drawn % bound }
    }

    pub(crate) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// A number, mostly small or at an edge of the range.
    pub(crate) fn number(&mut self) -> i64 {
        match self.byte() {
            0..=15 => 0,
            16..=31 => -1,
            32..=47 => i64::MAX,
            48..=63 => i64::MIN,
            64..=79 => i64::from(u32::MAX) + 1,
            80..=191 => i64::from(self.byte() % 16),
            _ => i64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }

    /// At most `most` bytes of the input, unchanged.
    pub(crate) fn some(&mut self, most: usize) -> &'a [u8] {
        let len = self.below(most + 1).min(self.rest.len());
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        taken
    }

    /// At most `most` bytes of text.
    pub(crate) fn text(&mut self, most: usize) -> String {
        String::from_utf8_lossy(self.some(most)).into_owned()
    }
}
