//! Decides which migrations a store needs, and whether a store of a newer release can be used. Does not access the store.

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
    /// The oldest schema version whose releases can use a store with this migration: its own version, or an earlier one if the
    /// migration only adds what these releases do not name. Releases of both versions can then run at the same time.
    pub usable_from: u32,
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
    /// The oldest schema version whose releases can use the store.
    pub usable_from: u32,
    /// Checksum of the text that was applied.
    pub checksum: String,
}

/// Why a store is not migrated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MigrationRefusal {
    /// A newer release migrated the store, and this release cannot use it.
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
    /// The state of a store with these applied migrations, for which these are due.
    pub fn of(bundled: &[Migration], applied: &[Applied], due: &[Migration]) -> Self {
        Self {
            applied: newest(applied),
            known: bundled.last().map_or(0, |migration| migration.version),
            due: due.iter().map(|migration| (migration.version, migration.name)).collect(),
        }
    }
}

fn newest(applied: &[Applied]) -> u32 {
    applied.iter().map(|row| row.version).max().unwrap_or(0)
}

/// The migrations that are not applied yet, in order. Nothing is due in a store of a newer release whose further migrations this
/// release can use.
///
/// # Errors
///
/// If this release cannot use a further migration. If the applied migrations are not the first of the bundled list, with the same
/// texts, or do not go on after the list without gaps.
pub fn pending<'a>(
    bundled: &'a [Migration],
    applied: &[Applied],
) -> Result<&'a [Migration], MigrationRefusal> {
    let known = bundled.last().map_or(0, |migration| migration.version);
    if applied.iter().any(|row| row.version > known && row.usable_from > known) {
        return Err(MigrationRefusal::Newer { found: newest(applied), known });
    }
    for (row, place) in applied.iter().zip(1..) {
        let damaged = |what: String| Err(MigrationRefusal::Damaged { what });
        let version = row.version;
        if version <= known && place > known {
            return damaged(format!("version {version} comes twice"));
        }
        if version != place {
            return damaged(format!("found version {version} where {place} belongs"));
        }
        match bundled.iter().find(|expected| expected.version == version) {
            Some(expected) if expected.checksum() != row.checksum => {
                return damaged(format!("version {version} was applied with another text"));
            }
            Some(expected) if expected.usable_from != row.usable_from => {
                let usable_from = row.usable_from;
                return damaged(format!("version {version} is marked as usable from version {usable_from}"));
            }
            Some(_) | None => {}
        }
    }
    Ok(bundled.get(applied.len()..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUNDLED: [Migration; 3] = [
        Migration { version: 1, name: "one", usable_from: 1, sql: "a" },
        Migration { version: 2, name: "two", usable_from: 1, sql: "b" },
        Migration { version: 3, name: "three", usable_from: 3, sql: "c" },
    ];

    /// The rows of these versions. A version above the bundled ones can be used by its own release only.
    fn applied(versions: &[u32]) -> Vec<Applied> {
        versions.iter().map(|version| row(*version, *version)).collect()
    }

    fn row(version: u32, usable_from: u32) -> Applied {
        match BUNDLED.iter().find(|migration| migration.version == version) {
            Some(known) => Applied { version, usable_from: known.usable_from, checksum: known.checksum() },
            None => Applied { version, usable_from, checksum: "?".to_string() },
        }
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
            (&[0], "found version 0 where 1 belongs"),
            (&[1, 2, 3, 3], "version 3 comes twice"),
        ];
        for (damaged, what) in cases {
            let what = what.to_string();
            assert_eq!(next(damaged), Err(MigrationRefusal::Damaged { what }), "{damaged:?}");
        }
    }

    #[test]
    fn store_of_a_newer_release_is_used_if_each_further_migration_allows_it() {
        let opened = |further: &[(u32, u32)]| {
            let mut rows = applied(&[1, 2, 3]);
            rows.extend(further.iter().map(|(version, usable_from)| row(*version, *usable_from)));
            pending(&BUNDLED, &rows).map(<[Migration]>::len)
        };
        for usable in [&[(4, 3)][..], &[(4, 1)], &[(4, 3), (5, 2)]] {
            assert_eq!(opened(usable), Ok(0), "{usable:?}");
        }
        for newer in [&[(4, 4)][..], &[(4, 3), (5, 4)], &[(4, 5), (5, 3)]] {
            let found = newer.last().unwrap().0;
            assert_eq!(opened(newer), Err(MigrationRefusal::Newer { found, known: 3 }), "{newer:?}");
        }
        for damaged in [&[(5, 3)][..], &[(4, 3), (4, 3)], &[(5, 3), (4, 3)]] {
            let refusal = opened(damaged).unwrap_err();
            assert!(matches!(refusal, MigrationRefusal::Damaged { .. }), "{damaged:?}: {refusal}");
        }
        let rows = [row(1, 1), row(2, 1), row(4, 1)];
        assert!(pending(&BUNDLED, &rows).is_err(), "a known migration is missing");
    }

    #[test]
    fn state_has_the_applied_version_and_the_due_migrations() {
        let state = |versions: &[u32], from: usize| {
            let state = SchemaState::of(&BUNDLED, &applied(versions), &BUNDLED[from..]);
            (state.applied, state.known, state.due)
        };
        assert_eq!(state(&[], 0), (0, 3, vec![(1, "one"), (2, "two"), (3, "three")]));
        assert_eq!(state(&[1, 2], 2), (2, 3, vec![(3, "three")]));
        assert_eq!(state(&[1, 2, 3], 3), (3, 3, vec![]));
        assert_eq!(state(&[1, 2, 3, 4], 3), (4, 3, vec![]));
    }

    #[test]
    fn the_checksum_of_a_text_does_not_change_between_releases() {
        let expected = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
        assert_eq!(BUNDLED[0].checksum(), expected);
    }

    #[test]
    fn a_migration_with_a_changed_text_or_mark_is_rejected() {
        let cases = [
            (Applied { checksum: "other".to_string(), ..row(1, 1) }, "another text"),
            (Applied { usable_from: 0, ..row(1, 1) }, "marked as usable from version 0"),
        ];
        for (changed, what) in cases {
            let refusal = pending(&BUNDLED, &[changed]).unwrap_err();
            assert!(refusal.to_string().contains(what), "{refusal}");
        }
    }
}
