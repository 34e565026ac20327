//! Texts in a form that the server can store: without a NUL character.
//!
//! JSON escapes NUL itself; texts that are stored directly (keys, values, outputs, tags, names) go through this module. NUL is
//! written as U+0001 and `0`, and U+0001 itself as U+0001 and `1`, so that nothing else changes and no two texts become one.

use std::borrow::Cow;

const ESCAPE: char = '\u{1}';

/// The text as it is stored.
pub(crate) fn stored(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte < 2) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match letter {
            '\0' => escaped.extend([ESCAPE, '0']),
            ESCAPE => escaped.extend([ESCAPE, '1']),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

/// The stored text, owned.
pub(crate) fn owned(text: &str) -> String {
    stored(text).into_owned()
}

/// The stored form of an optional text.
pub(crate) fn owned_option(text: Option<&String>) -> Option<String> {
    text.map(|text| owned(text))
}

/// The text as it was before it was stored.
pub(crate) fn read(text: String) -> String {
    if !text.contains(ESCAPE) {
        return text;
    }
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ESCAPE => plain.push(if letters.next() == Some('0') { '\0' } else { ESCAPE }),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_text_is_read_back_and_holds_no_nul() {
        for text in ["", "plain", "a\0b", "\u{1}", "\u{1}0", "\0\u{1}\0", "naïve 🦀\0"] {
            let kept = owned(text);
            assert!(!kept.contains('\0'));
            assert_eq!(read(kept), text);
        }
        assert!(matches!(stored("plain"), Cow::Borrowed("plain")));
    }
}
