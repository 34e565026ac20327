//! The name of a store's schema.

use crate::PostgresError;
use crate::mutant::mutated;

/// The schema of a store that names none.
pub(crate) const DEFAULT: &str = "public";

/// The longest name that the server does not truncate.
const LONGEST: usize = 63;

/// A checked name of a schema, and the names that are derived from it.
#[derive(Debug, Clone)]
pub(crate) struct SchemaName {
    name: String,
}

impl SchemaName {
    /// Checks a name: letters, digits and underscores, a letter or underscore first, and no name of the server. Such a name can end
    /// neither a quoted name nor the body of a function.
    pub(crate) fn checked(name: &str) -> Result<Self, PostgresError> {
        let refuse = |reason: &str| {
            let name = name.chars().take(LONGEST).flat_map(char::escape_default).collect();
            Err(PostgresError::InvalidSchema { name, reason: reason.to_string() })
        };
        let mut letters = name.chars();
        let begins_well = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
        if !begins_well || !letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
            return refuse(
                "use ASCII letters, digits and underscores, and begin with a letter or an underscore",
            );
        }
        if name.len() > LONGEST {
            return refuse("it is longer than 63 bytes");
        }
        let lower = name.to_ascii_lowercase();
        if lower.starts_with("pg_") || lower == "information_schema" {
            return refuse("names of this form belong to the server");
        }
        Ok(Self { name: name.to_string() })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.name
    }

    /// A statement or migration with the schema put in.
    pub(crate) fn put_into(&self, text: &str) -> String {
        let text = mutated(text);
        #[cfg(feature = "test-hooks")]
        let text = crate::defects::broken(&text);
        text.replace("{schema}", &format!("\"{}\"", self.name))
            .replace("{seed}", &self.seed().to_string())
            .replace("{channel}", &self.channel())
    }

    /// The channel for notifications of this store.
    pub(crate) fn channel(&self) -> String {
        format!("outlast_{:016x}", self.seed().cast_unsigned())
    }

    /// The seed that separates the advisory locks of stores in one database: FNV-1a, the same in every build. The seed is below
    /// `i64::MAX`, so that 1 can be added.
    pub(crate) fn seed(&self) -> i64 {
        let hash = self.name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        (hash >> 2).cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_refused() {
        let long = "x".repeat(64);
        let hostile = [
            "",
            " ",
            "1a",
            "a b",
            "a\"b",
            "a;DROP SCHEMA public",
            "a-b",
            "a.b",
            "a'",
            "$$",
            "naïve",
            "a\0b",
            "pg_catalog",
            "PG_x",
            "information_schema",
            &long,
        ];
        for name in hostile {
            let refusal = SchemaName::checked(name).unwrap_err();
            assert!(matches!(refusal, PostgresError::InvalidSchema { .. }), "{name:?}: {refusal}");
        }
        for name in ["public", "_a1", "Orders", &"x".repeat(63)] {
            assert_eq!(SchemaName::checked(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn a_name_is_quoted_and_locks_and_channels_are_its_own() {
        let [a, b] = ["a", "B"].map(|name| SchemaName::checked(name).unwrap());
        assert_eq!(b.put_into("{schema}.t, {schema}.u"), "\"B\".t, \"B\".u");
        assert_ne!(a.seed(), b.seed());
        assert_ne!(a.channel(), b.channel());
        assert!(a.seed() > 0 && a.seed() < i64::MAX);
    }
}
