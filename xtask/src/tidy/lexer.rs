//! Splits a Rust file into code and literals.

/// A string literal.
#[derive(Debug, PartialEq)]
pub(super) struct Literal {
    /// The offset of its opening quote.
    pub(super) offset: usize,
    /// The text between the quotes, with its escapes.
    pub(super) text: String,
}

/// The text with comments and the inside of literals replaced by spaces, and the string literals.
/// The code is as long as the text, line for line and byte for byte.
pub(super) fn split(text: &str) -> (String, Vec<Literal>) {
    let mut lexer = Lexer { text, at: 0, code: Vec::with_capacity(text.len()), literals: Vec::new() };
    while lexer.at < text.len() {
        lexer.token();
    }
    (String::from_utf8_lossy(&lexer.code).into_owned(), lexer.literals)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    code: Vec<u8>,
    literals: Vec<Literal>,
}

impl Lexer<'_> {
    fn token(&mut self) {
        let rest = self.rest();
        if rest.starts_with(b"//") {
            let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            self.blank(length);
        } else if rest.starts_with(b"/*") {
            self.blank(block_comment(rest));
        } else if let Some(hashes) = self.raw_string() {
            self.keep(1 + hashes);
            self.string(|rest| raw_end(rest, hashes));
        } else if rest.starts_with(b"\"") {
            self.string(escaped_end);
        } else if rest.starts_with(b"'") {
            let inside = char_literal(rest);
            self.keep(1);
            self.blank(inside.unwrap_or(0));
            self.keep(usize::from(inside.is_some()));
        } else {
            self.keep(1);
        }
    }

    fn rest(&self) -> &[u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn keep(&mut self, length: usize) {
        let end = (self.at + length).min(self.text.len());
        self.code.extend_from_slice(&self.text.as_bytes()[self.at..end]);
        self.at = end;
    }

    fn blank(&mut self, length: usize) {
        let end = (self.at + length).min(self.text.len());
        let blanked =
            self.text.as_bytes()[self.at..end].iter().map(|byte| if *byte == b'\n' { b'\n' } else { b' ' });
        self.code.extend(blanked);
        self.at = end;
    }

    /// At an opening quote: blanks the text up to the closing quote, whose offset `end` returns.
    fn string(&mut self, end: impl Fn(&[u8]) -> usize) {
        let offset = self.at;
        self.keep(1);
        let length = end(self.rest());
        let text = self.text.get(self.at..self.at + length).unwrap_or_default().to_string();
        self.literals.push(Literal { offset, text });
        self.blank(length);
        self.keep(1);
    }

    /// The number of `#` between the `r` here and a quote, if this starts a raw string.
    fn raw_string(&self) -> Option<usize> {
        let after = self.rest().strip_prefix(b"r")?;
        let hashes = after.iter().take_while(|byte| **byte == b'#').count();
        let mut before = self.text.as_bytes()[..self.at].iter().rev().copied().peekable();
        // `br` and `cr` start one as well.
        before.next_if(|byte| matches!(byte, b'b' | b'c'));
        let inside_word = before.peek().is_some_and(|byte| super::source::is_word(*byte));
        (after.get(hashes) == Some(&b'"') && !inside_word).then_some(hashes)
    }
}

/// The length of the comment that starts here. Block comments nest.
fn block_comment(text: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < text.len() {
        if text[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn raw_end(text: &[u8], hashes: usize) -> usize {
    let closes = |at: &usize| {
        let after = &text[at + 1..];
        text[*at] == b'"' && after.len() >= hashes && after[..hashes].iter().all(|byte| *byte == b'#')
    };
    (0..text.len()).find(closes).unwrap_or(text.len())
}

fn escaped_end(text: &[u8]) -> usize {
    let mut at = 0;
    while at < text.len() && text[at] != b'"' {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    at.min(text.len())
}

/// The length of the text between the quotes, or `None` for a lifetime.
fn char_literal(text: &[u8]) -> Option<usize> {
    let inside = text.get(1..)?;
    if inside.first() == Some(&b'\\') {
        // The byte after the backslash may itself be a quote.
        return inside.iter().skip(2).position(|byte| *byte == b'\'').map(|at| at + 2);
    }
    let width = 1 + inside.iter().skip(1).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
    (inside.get(width) == Some(&b'\'')).then_some(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, code: &str, literals: &[&str]) {
        let (found, strings) = split(text);
        assert_eq!(found, code, "{text}");
        assert_eq!(
            strings.iter().map(|literal| literal.text.as_str()).collect::<Vec<_>>(),
            literals,
            "{text}"
        );
    }

    #[test]
    fn comments_are_blanked() {
        check("a // b\nc", "a     \nc", &[]);
        check("a /* b /* c */ \n */ d", "a              \n    d", &[]);
        check("a /* open", "a        ", &[]);
    }

    #[test]
    fn strings_are_taken_out() {
        check(r#"f("a // b") // c"#, r#"f("      ")     "#, &["a // b"]);
        check(r#"f("a\"b", "c\\") d"#, r#"f("    ", "   ") d"#, &[r#"a\"b"#, r"c\\"]);
        check(r##"r#"a"b"# c"##, r##"r#"   "# c"##, &[r#"a"b"#]);
        check(r#"br"a\" b"#, r#"br"  " b"#, &[r"a\"]);
        check(r##"r#fn for"a""##, r##"r#fn for" ""##, &["a"]);
        check("\"open", "\"    ", &["open"]);
    }

    #[test]
    fn characters_are_not_lifetimes() {
        check("f('{', '\\'', '\u{e9}', b'\"') x", "f(' ', '  ', '  ', b' ') x", &[]);
        check("fn f<'a>(x: &'a str) { '\\u{7b}' }", "fn f<'a>(x: &'a str) { '      ' }", &[]);
    }
}
