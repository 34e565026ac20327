//! Decides which migrations a store needs. Does not access the store.

use sha2::{Digest, Sha256};
use std::fmt;
use std::fmt::Write;

/// A bundled migration. The text of a released one never changes.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Position, from 1, without gaps.
    pub version: u32,
    /// A short name.
    pub name: &'static str,
    /// The statements.
    pub sql: &'static str,
}

impl Migration {
    /// The checksum of the statements, which the store's migration table keeps.
    pub fn checksum(&self) -> String {
        Sha256::digest(self.sql.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

/// A row of the store's migration table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Position.
    pub version: u32,
    /// Checksum of the text that was applied.
    pub checksum: String,
}

/// Why a store is not migrated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MigrationRefusal {
    /// The store was written by a newer release.
    Newer {
        /// The newest version in the migration table.
        found: u32,
        /// The newest version of this release.
        known: u32,
    },
    /// The migration table is not a prefix of the bundled list.
    Damaged {
        /// The first difference.
        what: String,
    },
    /// The store does not exist, and the caller may not create one.
    Missing,
    /// Migrations are due, and the caller may not apply them.
    Older {
        /// The newest version in the migration table.
        found: u32,
        /// The newest version of this release.
        known: u32,
    },
}

impl fmt::Display for MigrationRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer { found, known } => write!(
                f,
                "the store has schema version {found}, this release knows up to {known}: use a newer release"
            ),
            Self::Damaged { what } => {
                write!(f, "the migration table is damaged ({what}): restore it from a backup")
            }
            Self::Missing => f.write_str(
                "it holds no Outlast store: check the name, or start the program that makes the store first",
            ),
            Self::Older { found, known } => write!(
                f,
                "the store has schema version {found}, this release needs {known}: run `outlast migrate`, start a program \
                 of this release with a role that may create tables, or use the release of that version"
            ),
        }
    }
}

impl std::error::Error for MigrationRefusal {}

/// The schema of a store beside the schema of this release.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaState {
    /// The newest version that is applied; 0 if the store does not exist.
    pub applied: u32,
    /// The newest version of this release.
    pub known: u32,
    /// The versions and names of the migrations that are due, in order.
    pub due: Vec<(u32, &'static str)>,
}

impl SchemaState {
    /// The state of a store for which these migrations are due.
    pub fn of(bundled: &[Migration], due: &[Migration]) -> Self {
        let known = bundled.last().map_or(0, |migration| migration.version);
        let applied = due.first().map_or(known, |first| first.version - 1);
        Self {
            applied,
            known,
            due: due.iter().map(|migration| (migration.version, migration.name)).collect(),
        }
    }
}

/// The migrations that are not applied yet, in order. Returns an error unless the applied migrations are a prefix of the
/// bundled list with the same checksums.
pub fn pending<'a>(
    bundled: &'a [Migration],
    applied: &[Applied],
) -> Result<&'a [Migration], MigrationRefusal> {
    let known = bundled.last().map_or(0, |migration| migration.version);
    let newest = applied.iter().map(|row| row.version).max().unwrap_or(0);
    if newest > known {
        return Err(MigrationRefusal::Newer { found: newest, known });
    }
    for (index, row) in applied.iter().enumerate() {
        let damaged = |what: String| Err(MigrationRefusal::Damaged { what });
        match bundled.get(index) {
            Some(expected) if expected.version != row.version => {
                return damaged(format!("found version {} where {} belongs", row.version, expected.version));
            }
            Some(expected) if expected.checksum() != row.checksum => {
                return damaged(format!("version {} was applied with another text", row.version));
            }
            Some(_) => {}
            None => return damaged(format!("version {} comes twice", row.version)),
        }
    }
    Ok(bundled.get(applied.len()..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUNDLED: [Migration; 3] = [
        Migration { version: 1, name: "one", sql: "a" },
        Migration { version: 2, name: "two", sql: "b" },
        Migration { version: 3, name: "three", sql: "c" },
    ];

    fn applied(versions: &[u32]) -> Vec<Applied> {
        let text =
            |version: u32| BUNDLED.get(version as usize - 1).map_or("?".to_string(), Migration::checksum);
        versions.iter().map(|version| Applied { version: *version, checksum: text(*version) }).collect()
    }

    #[test]
    fn a_prefix_of_the_bundled_migrations_is_continued_and_any_other_table_is_rejected() {
        let next = |versions: &[u32]| {
            pending(&BUNDLED, &applied(versions))
                .map(|rest| rest.iter().map(|m| m.version).collect::<Vec<_>>())
        };
        assert_eq!(next(&[]), Ok(vec![1, 2, 3]));
        assert_eq!(next(&[1, 2]), Ok(vec![3]));
        assert_eq!(next(&[1, 2, 3]), Ok(vec![]));
        assert_eq!(next(&[1, 2, 3, 4]), Err(MigrationRefusal::Newer { found: 4, known: 3 }));
        let cases = [
            (&[2][..], "found version 2 where 1 belongs"),
            (&[1, 3], "found version 3 where 2 belongs"),
            (&[2, 1], "found version 2 where 1 belongs"),
            (&[1, 1], "found version 1 where 2 belongs"),
            (&[1, 2, 3, 3], "version 3 comes twice"),
        ];
        for (damaged, what) in cases {
            let what = what.to_string();
            assert_eq!(next(damaged), Err(MigrationRefusal::Damaged { what }), "{damaged:?}");
        }
    }

    #[test]
    fn state_has_the_applied_version_and_the_due_migrations() {
        let state = |from: usize| {
            let state = SchemaState::of(&BUNDLED, &BUNDLED[from..]);
            (state.applied, state.known, state.due)
        };
        assert_eq!(state(0), (0, 3, vec![(1, "one"), (2, "two"), (3, "three")]));
        assert_eq!(state(2), (2, 3, vec![(3, "three")]));
        assert_eq!(state(3), (3, 3, vec![]));
    }

    #[test]
    fn the_checksum_of_a_text_does_not_change_between_releases() {
        let expected = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
        assert_eq!(BUNDLED[0].checksum(), expected);
    }

    #[test]
    fn a_migration_with_a_changed_text_is_rejected() {
        let changed = [Applied { version: 1, checksum: "other".to_string() }];
        let refusal = pending(&BUNDLED, &changed).unwrap_err();
        assert!(refusal.to_string().contains("another text"), "{refusal}");
    }
}
