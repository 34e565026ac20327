//! Helpers that check the tables of golden texts.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fmt::Debug;

/// A value and its JSON text.
pub(crate) type Row<T> = (T, String);

/// The value encodes to the text and the text decodes to the value, for every row.
pub(crate) fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(rows: &[Row<T>]) {
    for (value, text) in rows {
        assert_eq!(serde_json::to_string(value).unwrap(), *text, "encoding of {value:?}");
        assert_eq!(serde_json::from_str::<T>(text).unwrap(), *value, "decoding of {text}");
    }
}

/// An enum whose every variant must have a golden row. Implemented by [`variants!`].
pub(crate) trait Variants {
    const ALL: &'static [&'static str];
    fn variant(&self) -> &'static str;
}

/// Every variant of the enum occurs among these values.
pub(crate) fn assert_covered<'a, T: Variants + 'a>(values: impl IntoIterator<Item = &'a T>) {
    let found: BTreeSet<&str> = values.into_iter().map(T::variant).collect();
    let missing: Vec<&&str> = T::ALL.iter().filter(|variant| !found.contains(**variant)).collect();
    assert!(missing.is_empty(), "variants without a golden row: {missing:?}");
}

/// Lists the variants of an enum once, for two uses: names that must have a golden row, and a match without a
/// wildcard. So a new variant does not compile until it is listed here, and fails the test until it has a row.
macro_rules! variants {
    ($type:ident: $($(#[$cfg:meta])? $variant:ident),+ $(,)?) => {
        impl crate::golden::Variants for $type {
            const ALL: &'static [&'static str] = &[$($(#[$cfg])? stringify!($variant)),+];

            fn variant(&self) -> &'static str {
                match self {
                    $($(#[$cfg])? Self::$variant { .. } => stringify!($variant),)+
                }
            }
        }
    };
}
pub(crate) use variants;
