//! Texts in addresses.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All characters but letters, digits and `-._~`.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The text as a segment of a path or as the value of a parameter.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
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
