//! Selection of activities by tag.

use outlast_model::limits::MAX_WORKER_TAGS;
use std::collections::HashSet;

/// Selects work items by their tag.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TagFilter {
    /// Untagged items only.
    #[default]
    DefaultOnly,
    /// Items with one of these tags, never untagged ones.
    Tags(HashSet<String>),
    /// Untagged items and items with one of these tags.
    DefaultAnd(HashSet<String>),
    /// All items.
    Any,
    /// No item.
    None,
}

impl TagFilter {
    /// Items with one of these tags.
    ///
    /// # Panics
    /// Without a tag, or with more than [`MAX_WORKER_TAGS`]. [`TagFilter::try_tags`] returns an error instead.
    pub fn tags<I, S>(tags: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        Self::Tags(checked(tags, "TagFilter::tags").unwrap_or_else(|message| panic!("{message}")))
    }

    /// Untagged items and items with one of these tags.
    ///
    /// # Panics
    /// As [`TagFilter::tags`]. [`TagFilter::try_default_and`] returns an error instead.
    pub fn default_and<I, S>(tags: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        Self::DefaultAnd(
            checked(tags, "TagFilter::default_and").unwrap_or_else(|message| panic!("{message}")),
        )
    }

    /// [`TagFilter::tags`], with an error for an empty or too large set.
    pub fn try_tags<I, S>(tags: I) -> Result<Self, String>
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        checked(tags, "TagFilter::tags").map(Self::Tags)
    }

    /// [`TagFilter::default_and`], with an error for an empty or too large set.
    pub fn try_default_and<I, S>(tags: I) -> Result<Self, String>
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        checked(tags, "TagFilter::default_and").map(Self::DefaultAnd)
    }

    /// Untagged items only.
    pub fn default_only() -> Self {
        Self::DefaultOnly
    }

    /// No item.
    pub fn none() -> Self {
        Self::None
    }

    /// All items.
    pub fn any() -> Self {
        Self::Any
    }

    /// Whether an item with this tag is selected.
    pub fn matches(&self, tag: Option<&str>) -> bool {
        match (self, tag) {
            (Self::Any, _) | (Self::DefaultOnly | Self::DefaultAnd(_), None) => true,
            (Self::Tags(tags) | Self::DefaultAnd(tags), Some(tag)) => tags.contains(tag),
            (Self::None, _) | (Self::DefaultOnly, Some(_)) | (Self::Tags(_), None) => false,
        }
    }
}

fn checked<I, S>(tags: I, what: &str) -> Result<HashSet<String>, String>
where
    I: IntoIterator<Item = S>,
    S: Into<String>,
{
    let tags: HashSet<String> = tags.into_iter().map(Into::into).collect();
    match tags.len() {
        0 => Err(format!("{what} requires at least one tag")),
        n if n > MAX_WORKER_TAGS => {
            Err(format!("Worker can subscribe to at most {MAX_WORKER_TAGS} tags, got {n}"))
        }
        _ => Ok(tags),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matching_follows_the_table() {
        let tagged = TagFilter::tags(["a", "b"]);
        let both = TagFilter::default_and(["a"]);
        let rows: [(&TagFilter, [bool; 3]); 5] = [
            (&TagFilter::DefaultOnly, [true, false, false]),
            (&tagged, [false, true, false]),
            (&both, [true, true, false]),
            (&TagFilter::Any, [true, true, true]),
            (&TagFilter::None, [false, false, false]),
        ];
        for (filter, expected) in rows {
            assert_eq!([None, Some("a"), Some("x")].map(|tag| filter.matches(tag)), expected, "{filter:?}");
        }
    }

    #[test]
    fn sets_of_the_wrong_size_are_refused() {
        let none: [&str; 0] = [];
        assert!(TagFilter::try_tags(none).unwrap_err().contains("requires at least one tag"));
        assert!(TagFilter::try_default_and("abcdef".chars()).unwrap_err().contains("at most 5 tags, got 6"));
        assert!(TagFilter::try_tags("abcde".chars()).is_ok());
    }

    #[test]
    #[should_panic(expected = "requires at least one tag")]
    fn the_contract_form_panics() {
        let none: [&str; 0] = [];
        let _ = TagFilter::tags(none);
    }
}
