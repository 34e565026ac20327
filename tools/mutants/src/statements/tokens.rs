//! The words of a statement.

use std::collections::BTreeSet;
use std::ops::Range;

/// Words, operators, parentheses, texts and names in braces; comments are left out.
pub(super) struct Tokens<'a> {
    pub(super) text: &'a str,
    ranges: Vec<Range<usize>>,
    /// Tokens with the begin or the end of a section of one form before them.
    edges: BTreeSet<usize>,
}

/// Marks of the sections of one form of a commit (`functions.rs` of the PostgreSQL store).
pub(super) const MARKS: [&str; 3] = ["{batch}", "{alone}", "{end}"];

impl<'a> Tokens<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let mut tokens = Self { text, ranges: Vec::new(), edges: BTreeSet::new() };
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let length = length(rest);
            if MARKS.contains(&&rest[..length]) {
                tokens.edges.insert(tokens.ranges.len());
            } else if !rest.starts_with("--") && !rest.starts_with(char::is_whitespace) {
                tokens.ranges.push(at..at + length);
            }
            at += length;
        }
        tokens
    }

    pub(super) fn count(&self) -> usize {
        self.ranges.len()
    }

    /// The token in capital letters; empty behind the last one.
    pub(super) fn word(&self, at: usize) -> String {
        self.ranges.get(at).map(|token| self.text[token.clone()].to_ascii_uppercase()).unwrap_or_default()
    }

    /// The word before this one.
    pub(super) fn before(&self, at: usize) -> String {
        at.checked_sub(1).map(|at| self.word(at)).unwrap_or_default()
    }

    /// The bytes of some tokens.
    pub(super) fn place(&self, within: Range<usize>) -> Range<usize> {
        self.ranges[within.start].start..self.ranges[within.end - 1].end
    }

    /// Whether a section of one form begins or ends before this token.
    pub(super) fn is_edge(&self, at: usize) -> bool {
        self.edges.contains(&at)
    }

    /// Whether these tokens are all in one section, or all in none.
    pub(super) fn is_whole(&self, within: &Range<usize>) -> bool {
        self.edges.range(within.start + 1..within.end).next().is_none()
    }

    /// The parenthesis that closes this one.
    pub(super) fn closing(&self, open: usize) -> usize {
        let mut depth = 0;
        for (at, token) in self.ranges.iter().enumerate().skip(open) {
            match &self.text[token.clone()] {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return at;
            }
        }
        self.ranges.len()
    }

    /// The first of these words that is in no parentheses which begin after `from`, or the end.
    pub(super) fn first_of(&self, from: usize, words: &[&str]) -> usize {
        let mut at = from;
        while at < self.count() {
            let word = self.word(at);
            if words.contains(&word.as_str()) {
                return at;
            }
            at = if word == "(" { self.closing(at) + 1 } else { at + 1 };
        }
        self.count()
    }
}

/// The bytes up to the next token, comment or blank.
fn length(rest: &str) -> usize {
    const OPERATORS: [&str; 8] = ["<=", ">=", "<>", "!=", "||", "->", ":=", "::"];
    let first = rest.chars().next().unwrap_or_default();
    if rest.starts_with("--") {
        rest.find('\n').unwrap_or(rest.len())
    } else if first == '\'' {
        rest[1..].find('\'').map_or(rest.len(), |end| end + 2)
    } else if first == '{' {
        rest.find('}').map_or(rest.len(), |end| end + 1)
    } else if OPERATORS.iter().any(|operator| rest.starts_with(operator)) {
        2
    } else if is_part(first) {
        rest.find(|char| !is_part(char)).unwrap_or(rest.len())
    } else {
        first.len_utf8()
    }
}

fn is_part(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '.' | '?' | '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_braces_are_words_and_marks_are_edges() {
        let tokens = Tokens::of("IF {batch}a >= $1{end} -- not b\n AND {m.kind} = 'x y' THEN");
        let words: Vec<String> = (0..tokens.count()).map(|at| tokens.word(at)).collect();
        assert_eq!(words, ["IF", "A", ">=", "$1", "AND", "{M.KIND}", "=", "'X Y'", "THEN"]);
        assert_eq!((0..9).filter(|at| tokens.is_edge(*at)).collect::<Vec<_>>(), [1, 4]);
        assert!(tokens.is_whole(&(1..4)) && !tokens.is_whole(&(0..4)));
    }

    #[test]
    fn words_in_parentheses_are_skipped() {
        let tokens = Tokens::of("SELECT (SELECT a FROM b) FROM c");
        assert_eq!(tokens.first_of(1, &["FROM"]), 7);
        assert_eq!(tokens.first_of(8, &["FROM"]), tokens.count());
    }
}
