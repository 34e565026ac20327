//! Finds the items that are compiled for tests only.

use std::ops::Range;

/// The items with `#[cfg(test)]`.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Found {
    /// The ranges of the items, including their attributes.
    pub(super) ranges: Vec<Range<usize>>,
    /// The names of modules whose code is in another file.
    pub(super) outlined: Vec<String>,
}

/// Searches code whose comments and literals are blanked.
pub(super) fn find(code: &str) -> Found {
    let mut found = Found::default();
    for (start, _) in code.match_indices("#[cfg(").chain(code.match_indices("#![cfg(")) {
        let Some(length) = code[start..].find(']') else { continue };
        let attribute: String = code[start..start + length].split_whitespace().collect();
        if attribute == "#![cfg(test)" {
            found.ranges.push(0..code.len());
        } else if attribute == "#[cfg(test)" || attribute.starts_with("#[cfg(all(test,") {
            let end = item_end(code, start + length + 1);
            found.outlined.extend(outlined_module(&code[start + length + 1..end]));
            found.ranges.push(start..end);
        }
    }
    found
}

/// The end of the item that starts here: after its block, or after its semicolon.
pub(super) fn item_end(code: &str, start: usize) -> usize {
    // Semicolons in `[u8; 4]` and braces in arguments end nothing.
    let mut nested = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'(' | b'[' => nested += 1,
            b')' | b']' => nested = nested.saturating_sub(1),
            b'{' if nested == 0 => return block_end(code, at),
            b';' | b'}' if nested == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// The end of the block that opens here.
fn block_end(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

fn outlined_module(item: &str) -> Option<String> {
    let mut words = item.strip_suffix(';')?.split_whitespace().skip_while(|word| *word != "mod").skip(1);
    words.next().map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: &str, items: &[&str], outlined: &[&str]) {
        let found = find(code);
        assert_eq!(
            found.ranges.iter().map(|range| &code[range.clone()]).collect::<Vec<_>>(),
            items,
            "{code}"
        );
        assert_eq!(found.outlined, outlined, "{code}");
    }

    #[test]
    fn items_end_with_their_block_or_semicolon() {
        check("a #[cfg(test)] mod t { fn a() { {} } } b", &["#[cfg(test)] mod t { fn a() { {} } }"], &[]);
        check("#[cfg(test)]\nuse a;\nb", &["#[cfg(test)]\nuse a;"], &[]);
        check(
            "#[cfg(test)] #[x(y)] fn f(a: [u8; 4]) {} b",
            &["#[cfg(test)] #[x(y)] fn f(a: [u8; 4]) {}"],
            &[],
        );
        check("#[cfg(all(test, unix))] mod t {} b", &["#[cfg(all(test, unix))] mod t {}"], &[]);
        check("struct S { #[cfg(test)] a: u8 } b", &["#[cfg(test)] a: u8 }"], &[]);
        check("#![cfg(test)] a", &["#![cfg(test)] a"], &[]);
    }

    #[test]
    fn shipped_code_is_not_test_code() {
        check("#[cfg(not(test))] mod a {} #[cfg(any(test, x))] mod b {} #[cfg(unix)] mod c {}", &[], &[]);
    }

    #[test]
    fn modules_in_other_files_are_named() {
        check("#[cfg(test)]\npub(crate) mod kit;\n", &["#[cfg(test)]\npub(crate) mod kit;"], &["kit"]);
    }
}
