//! The tokens of shipped texts, without comments and white space, for a hash.

use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};

use crate::source::{is_punct, is_test_condition};

/// The tokens of a Rust text without comments, documentation and modules for tests, one after the other. A text that cannot
/// be read as tokens is returned as it is.
pub(crate) fn rust(text: &str) -> String {
    let mut out = String::new();
    match text.parse::<TokenStream>() {
        Ok(tokens) => write_shipped(tokens, &mut out),
        Err(_) => out.push_str(text),
    }
    out
}

/// Writes the tokens without documentation and modules for tests.
fn write_shipped(tokens: TokenStream, out: &mut String) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut rest = &tokens[..];
    while let [token, after @ ..] = rest {
        let unshipped = unshipped(rest);
        if unshipped > 0 {
            rest = rest.get(unshipped..).unwrap_or_default();
            continue;
        }
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("( ", ") "),
                    Delimiter::Brace => ("{ ", "} "),
                    Delimiter::Bracket => ("[ ", "] "),
                    Delimiter::None => ("", ""),
                };
                out.push_str(open);
                write_shipped(group.stream(), out);
                out.push_str(close);
            }
            // `&&` and `& &` are different tokens.
            TokenTree::Punct(punct) => {
                let next = after.first().filter(|_| punct.spacing() == Spacing::Joint);
                out.push(punct.as_char());
                if !next.is_some_and(|next| is_punct(next, ['&', '|', '=', '>', '<', '.', ':'])) {
                    out.push(' ');
                }
            }
            TokenTree::Ident(_) | TokenTree::Literal(_) => {
                out.push_str(&token.to_string());
                out.push(' ');
            }
        }
        rest = after;
    }
}

/// The number of tokens at this place that are documentation or a module for tests. Other items for tests are shipped
/// here: their ends are not certain.
fn unshipped(tokens: &[TokenTree]) -> usize {
    let (mut at, mut is_test) = (0, false);
    while let Some((length, attribute)) = attribute(&tokens[at..]) {
        let is_documentation =
            attribute.stream().into_iter().next().is_some_and(|token| token.to_string() == "doc");
        if at == 0 && is_documentation {
            return length;
        }
        is_test |= is_test_condition(attribute);
        // `#![cfg(test)]` is about the whole file.
        if length == 3 && is_test {
            return tokens.len();
        }
        at += length;
    }
    let is_word =
        |at: usize, word: &str| matches!(tokens.get(at), Some(TokenTree::Ident(ident)) if ident == word);
    if is_word(at, "pub") {
        let scope = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis);
        at += if tokens.get(at + 1).is_some_and(scope) { 2 } else { 1 };
    }
    // `mod name;` or `mod name { }`
    if is_test && is_word(at, "mod") { at + 3 } else { 0 }
}

/// The attribute at this place, and the number of its tokens.
fn attribute(tokens: &[TokenTree]) -> Option<(usize, &Group)> {
    let is_group = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket);
    let length = match tokens {
        [hash, group, ..] if is_punct(hash, ['#']) && is_group(group) => 2,
        [hash, inner, group, ..] if is_punct(hash, ['#']) && is_punct(inner, ['!']) && is_group(group) => 3,
        _ => return None,
    };
    match &tokens[length - 1] {
        TokenTree::Group(group) => Some((length, group)),
        _ => None,
    }
}

/// The words, signs and literals of an SQL text without comments, separated by spaces.
pub(crate) fn sql(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        let length = match first {
            _ if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '\'' | '"' => after.find(first).map_or(rest.len(), |end| end + 2),
            _ if is_word(first) => rest.find(|char| !is_word(char)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, later) = rest.split_at(length);
        if !token.starts_with("--") && !token.starts_with("/*") && !first.is_whitespace() {
            out.push_str(token);
            out.push(' ');
        }
        rest = later;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_tokens_change_with_a_token_and_not_with_a_comment_or_a_test() {
        let code = "pub fn f(a: &'static str) -> u8 { if a && b { 1 } else { 2 } }";
        for same in [
            "//! A file.\n/// Text.\npub  fn f(a: &'static str)\n-> u8 { /* c */ if a && b { 1 } else { 2 } } // d",
            "#[doc = \"Text.\"] pub fn f(a: &'static str) -> u8 { if a && b { 1 } else { 2 } }",
            "pub fn f(a: &'static str) -> u8 { if a && b { 1 } else { 2 } } #[cfg(test)] mod tests { fn g() {} }",
            "#[cfg(test)] #[path = \"x\"] pub(crate) mod kit; #[cfg(all(test, unix))] mod t; pub fn f(a: &'static str) -> u8 { if a && b { 1 } else { 2 } }",
        ] {
            assert_eq!(rust(same), rust(code), "{same}");
        }
        for (old, new) in [
            ("&& b", "& &b"),
            ("{ 1 }", "{ 3 }"),
            ("static", "other"),
            ("pub fn", "fn"),
            ("else { 2 }", "else { }"),
            ("pub fn", "mod tests { } pub fn"),
            ("pub fn", "#[cfg(not(test))] mod tests { } pub fn"),
            ("pub fn", "#[inline] pub fn"),
        ] {
            assert!(code.contains(old), "{old}");
            assert_ne!(rust(&code.replace(old, new)), rust(code), "{new}");
        }
        assert_eq!(rust("//! Kit.\n#![cfg(test)] fn f() {}"), "");
        assert_eq!(rust("open { // text"), "open { // text");
    }

    #[test]
    fn sql_tokens_change_with_a_token_and_not_with_a_comment() {
        let text = "SELECT a1, 'it''s -- no comment' FROM t WHERE a<=?1;";
        let same = "-- Why.\nSELECT a1 ,\n  'it''s -- no comment' /* c */ FROM t\nWHERE a <= ?1; -- end";
        assert_eq!(sql(text), sql(same));
        for (old, new) in [("a1", "a 1"), ("no comment", "no  comment"), ("<=", "<"), ("FROM t", "FROM tt")] {
            assert_ne!(sql(&text.replace(old, new)), sql(text), "{new}");
        }
        assert_eq!(sql("'open"), "'open ");
    }
}
