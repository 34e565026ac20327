//! A Rust file, separated into code and string literals.

use std::ops::Range;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A Rust file that was read as tokens, so that it need not parse.
#[derive(Default)]
pub struct Source {
    /// The file with comments and the inside of literals blanked. Offsets are those of the file.
    pub code: String,
    /// The string literals.
    pub literals: Vec<Literal>,
    /// The names of the functions, and where they are.
    pub functions: Vec<(String, Range<usize>)>,
    /// Modules that `#[cfg(test)] mod name;` declares.
    outlined_tests: Vec<String>,
    tests: Vec<Range<usize>>,
    line_starts: Vec<usize>,
}

/// A string literal.
pub struct Literal {
    /// The offset of its opening quote.
    pub offset: usize,
    /// The text between the quotes, with its escapes.
    pub text: String,
}

impl Source {
    /// In a file with unbalanced brackets or quotes, everything is code.
    pub fn parse(text: &str) -> Self {
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let mut source = Self { line_starts, ..Self::default() };
        let Ok(tokens) = text.parse::<TokenStream>() else {
            return Self { code: text.to_string(), ..source };
        };
        let mut code = text.bytes().map(|byte| if byte == b'\n' { b'\n' } else { b' ' }).collect::<Vec<u8>>();
        source.read(text, tokens, &mut code);
        Self { code: String::from_utf8_lossy(&code).into_owned(), ..source }
    }

    /// Copies code to `code`, and records literals, functions and tests.
    fn read(&mut self, text: &str, tokens: TokenStream, code: &mut [u8]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut keep = |range: Range<usize>| code[range.clone()].copy_from_slice(&text.as_bytes()[range]);
        let mut groups = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            let range = token.span().byte_range();
            let found = &text[range.clone()];
            match token {
                // The tokens of a doc comment have the range of the comment.
                _ if found.len() > 1 && found.starts_with('/') => {}
                TokenTree::Group(group) => {
                    keep(range.start..range.start + 1);
                    keep(range.end - 1..range.end);
                    self.find_test(&tokens, at, group);
                    groups.push(group.stream());
                }
                TokenTree::Literal(_) => match found.find(['"', '\'']) {
                    Some(open) if found[open..].starts_with('"') => {
                        let inside = found[open + 1..].rsplit_once('"').map_or("", |(inside, _)| inside);
                        self.literals.push(Literal { offset: range.start + open, text: inside.to_string() });
                    }
                    Some(_) => {}
                    None => keep(range),
                },
                TokenTree::Ident(_) | TokenTree::Punct(_) => {
                    if let ("fn", Some(TokenTree::Ident(name))) = (found, tokens.get(at + 1)) {
                        self.functions.push((name.to_string(), range.start..item_end(&tokens[at..])));
                    }
                    keep(range);
                }
            }
        }
        for group in groups {
            self.read(text, group, code);
        }
    }

    /// Records the item behind an attribute `#[cfg(test)]`, or the whole file for `#![cfg(test)]`.
    fn find_test(&mut self, tokens: &[TokenTree], at: usize, attribute: &Group) {
        if attribute.delimiter() != Delimiter::Bracket || at == 0 || !is_punct(&tokens[at - 1], ['#', '!']) {
            return;
        }
        if !is_test_condition(attribute) {
            return;
        }
        if is_punct(&tokens[at - 1], ['!']) {
            self.tests.push(0..usize::MAX);
            return;
        }
        let end = item_end(&tokens[at + 1..]);
        self.tests.push(attribute.span_open().byte_range().start..end);
        let item = tokens[at + 1..].iter().take_while(|token| token.span().byte_range().end <= end);
        if let [.., TokenTree::Ident(keyword), TokenTree::Ident(name), last] = item.collect::<Vec<_>>()[..]
            && keyword == "mod"
            && is_punct(last, [';'])
        {
            self.outlined_tests.push(name.to_string());
        }
    }

    /// The paths, without `.rs`, of the modules for tests that this file declares and other files hold.
    pub fn test_modules(&self, path: &str) -> impl Iterator<Item = String> {
        let stem = path.trim_end_matches(".rs");
        let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
        let base = if matches!(name, "lib" | "main" | "mod") { folder } else { stem };
        self.outlined_tests.iter().map(move |module| format!("{base}/{module}"))
    }

    /// The line of an offset, counted from 1.
    pub fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset)
    }

    /// Whether the offset is in code that is compiled for tests only.
    pub fn is_test_at(&self, offset: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&offset))
    }

    /// The offsets of `words` in the code, where they are not parts of longer words.
    pub fn find(&self, words: &str) -> impl Iterator<Item = usize> {
        find_words(&self.code, words)
    }
}

/// Whether an attribute is `cfg(test)`, perhaps with further conditions.
pub(crate) fn is_test_condition(attribute: &Group) -> bool {
    let condition: String = attribute.stream().to_string().split_whitespace().collect();
    condition == "cfg(test)" || condition.starts_with("cfg(all(test,")
}

/// The end of the item that starts here: after its block, or after its semicolon.
fn item_end(tokens: &[TokenTree]) -> usize {
    let is_block =
        |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
    let last = tokens.iter().find(|token| is_block(token) || is_punct(token, [';'])).or(tokens.last());
    last.map_or(0, |token| token.span().byte_range().end)
}

pub(crate) fn is_punct<const N: usize>(token: &TokenTree, chars: [char; N]) -> bool {
    matches!(token, TokenTree::Punct(punct) if chars.contains(&punct.as_char()))
}

/// Whether a file belongs to a module, whose path has no `.rs`.
pub fn is_in_module(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// The offsets of `words` in `text` without a letter, digit or underscore before or after them.
pub fn find_words(text: &str, words: &str) -> impl Iterator<Item = usize> {
    let continues = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii())
    };
    let bytes = text.as_bytes();
    let (starts, ends) = (continues(words.as_bytes().first()), continues(words.as_bytes().last()));
    text.match_indices(words).map(|(at, _)| at).filter(move |at| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let after = bytes.get(at + words.len());
        !(starts && continues(before) || ends && continues(after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_strings_are_taken_out() {
        for (text, code, literals) in [
            ("/// a\na // b\n/* c */ d", "a d", &[][..]),
            (r#"f("a // b", 7) // c"#, "f( , 7)", &["a // b"]),
            (r#"f("a\"b", "c\\") d"#, "f( , ) d", &[r#"a\"b"#, r"c\\"]),
            (r##"r#"a"b"# br"\" r#fn"##, "r#fn", &[r#"a"b"#, r"\"]),
            ("f('{', '\\'', 'é', b'\"') &'a x", "f( , , , ) &'a x", &[]),
            ("open { // is code", "open { // is code", &[]),
        ] {
            let source = Source::parse(text);
            assert_eq!(source.code.split_whitespace().collect::<Vec<_>>().join(" "), code, "{text}");
            assert_eq!(source.code.len(), text.len(), "{text}");
            assert_eq!(source.literals.iter().map(|found| found.text.as_str()).collect::<Vec<_>>(), literals);
            assert!(source.literals.iter().all(|found| text[found.offset..].starts_with('"')), "{text}");
        }
    }

    #[test]
    fn test_code_ends_with_its_item() {
        for (text, is_test) in [
            ("a #[cfg(test)] mod t { fn a() { {} X } } b", true),
            ("#[cfg(test)]\nuse a; X", false),
            ("#[cfg(test)] #[x(y)] fn f(a: [u8; 4]) { X } b", true),
            ("#[cfg(all(test, unix))] mod t { X } b", true),
            ("#[cfg(all(test, unix))] mod t {} X", false),
            ("struct S { #[cfg(test)] a: X }", true),
            ("#![cfg(test)] X", true),
            ("#[cfg(not(test))] mod a { X } #[cfg(any(test, x))] mod b { }", false),
        ] {
            assert_eq!(Source::parse(text).is_test_at(text.find('X').unwrap()), is_test, "{text}");
        }
        let outlined = "#[cfg(test)]\npub(crate) mod kit;\n#[cfg(test)] mod own {} mod other;";
        let modules = |path: &str| Source::parse(outlined).test_modules(path).collect::<Vec<_>>();
        assert_eq!(modules("src/lib.rs"), ["src/kit"]);
        assert_eq!(modules("src/plan.rs"), ["src/plan/kit"]);
        assert!(is_in_module("src/kit.rs", "src/kit") && is_in_module("src/kit/a.rs", "src/kit"));
        assert!(!is_in_module("src/kitchen.rs", "src/kit"));
    }

    #[test]
    fn functions_are_found_with_their_lines() {
        let text = "fn a(x: fn(u8)) -> [u8; 2] {\n  if x {\n    // }\n  }\n}\ntrait T {\n  fn b(\n  );\n}\n";
        let source = Source::parse(text);
        let lines: Vec<(&str, usize, usize)> = source
            .functions
            .iter()
            .map(|(name, range)| (name.as_str(), source.line(range.start), source.line(range.end - 1)))
            .collect();
        assert_eq!(lines, [("a", 1, 5), ("b", 7, 8)]);
    }

    #[test]
    fn only_whole_words_are_found() {
        let found = |text: &str, words: &str| find_words(text, words).collect::<Vec<_>>();
        assert_eq!(found("a::now() now_ms know::now", "now"), [3, 22]);
        assert_eq!(found("rand::rngs rand::rng() grand::rng()", "rand::rng"), [11]);
        assert_eq!(found("sleep(a) nosleep(b) x.sleep(c)", "sleep("), [0, 22]);
    }
}
