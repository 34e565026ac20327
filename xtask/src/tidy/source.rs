//! A Rust file, separated into code and string literals.

use std::ops::Range;

use super::lexer::{self, Literal};
use super::test_code;

/// A Rust file that was read by a lexer, which accepts code that does not parse.
pub(super) struct Source {
    /// The file with comments and the inside of literals blanked. Offsets are those of the file.
    pub(super) code: String,
    pub(super) literals: Vec<Literal>,
    /// Modules that `#[cfg(test)] mod name;` declares.
    pub(super) outlined_tests: Vec<String>,
    tests: Vec<Range<usize>>,
    line_starts: Vec<usize>,
}

impl Source {
    pub(super) fn parse(text: &str) -> Self {
        let (code, literals) = lexer::split(text);
        let test_code::Found { ranges: tests, outlined: outlined_tests } = test_code::find(&code);
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { code, literals, outlined_tests, tests, line_starts }
    }

    /// The line of an offset, counted from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset)
    }

    pub(super) fn is_test_at(&self, offset: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&offset))
    }

    /// The offsets of `words` in the code, where they are not parts of longer words.
    pub(super) fn find(&self, words: &str) -> impl Iterator<Item = usize> {
        find_words(&self.code, words)
    }
}

/// The offsets of `words` in `text` without a letter, digit or underscore before or after them.
pub(super) fn find_words(text: &str, words: &str) -> impl Iterator<Item = usize> {
    let continues = |byte: Option<&u8>| byte.is_some_and(|byte| is_word(*byte));
    let bytes = text.as_bytes();
    let (starts, ends) = (continues(words.as_bytes().first()), continues(words.as_bytes().last()));
    text.match_indices(words).map(|(at, _)| at).filter(move |at| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let after = bytes.get(at + words.len());
        !(starts && continues(before) || ends && continues(after))
    })
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_are_found() {
        let found = |text: &str, words: &str| find_words(text, words).collect::<Vec<_>>();
        assert_eq!(found("a::now() now_ms know::now", "now"), [3, 22]);
        assert_eq!(found("rand::rngs rand::rng() grand::rng()", "rand::rng"), [11]);
        assert_eq!(found("sleep(a) nosleep(b) x.sleep(c)", "sleep("), [0, 22]);
    }

    #[test]
    fn lines_count_from_one() {
        let source = Source::parse("a\nb\n");
        assert_eq!([0, 1, 2, 3].map(|at| source.line(at)), [1, 1, 2, 2]);
    }
}
