//! Texts in addresses.

use std::fmt::Write;

/// Percent-encodes all characters but letters, digits and `-._~`.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            // Writing to a String cannot fail.
            byte => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

/// The parameters after `?`, without those that have no value.
pub(crate) fn query<'a>(pairs: impl IntoIterator<Item = (&'a str, Option<String>)>) -> String {
    let given =
        pairs.into_iter().filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?)));
    given.map(|(name, value)| format!("{name}={}", encoded(&value))).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_special_characters_are_encoded() {
        assert_eq!(encoded("a/b?ü\"<%"), "a%2Fb%3F%C3%BC%22%3C%25");
        assert_eq!(query([("a", Some("1 2".into())), ("b", None), ("c", Some(String::new()))]), "a=1%202");
    }
}
