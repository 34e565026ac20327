//! The stores whose SQL is mutated.

use std::ops::Range;

use super::conditions::{Change, Statement};
use super::{forms, writes};
use outlast_toolkit::process;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// The dialect of a file with SQL of a store.
    pub(crate) fn of(file: &str) -> Option<Self> {
        let has =
            |dialect: &Self| file.ends_with(".sql") && dialect.folders().iter().any(|f| file.starts_with(f));
        [Self::Sqlite, Self::Postgres].into_iter().find(has)
    }

    /// The folders of its files.
    pub(super) fn folders(self) -> &'static [&'static str] {
        match self {
            Self::Sqlite => &["crates/sqlite/src/sql/"],
            Self::Postgres => &["crates/postgres/src/sql/", "crates/postgres/migrations/"],
        }
    }

    /// Its files, in order.
    pub(super) fn files(self) -> Result<Vec<String>, String> {
        let mut files = process::files()?;
        files.retain(|file| Self::of(file) == Some(self));
        files.sort();
        Ok(files)
    }

    /// A condition that always holds, and one that never does.
    pub(super) fn truths(self) -> (&'static str, &'static str) {
        match self {
            Self::Sqlite => ("1", "0"),
            Self::Postgres => ("true", "false"),
        }
    }

    /// All changes of a file.
    pub(super) fn changes(self, file: &str, text: &str) -> Vec<Change> {
        let mut statement = Statement::of(text, self);
        if self == Self::Sqlite {
            return statement.changes();
        }
        writes::add(&mut statement);
        let parts = executed(file, text);
        let mut changes = statement.changes();
        changes.retain(|change| parts.iter().any(|part| part.contains(&change.at.start)));
        // A text that both forms of a commit share can be in a condition of either.
        changes.sort_by(|a, b| (a.at.start, a.at.end, &a.what).cmp(&(b.at.start, b.at.end, &b.what)));
        changes.dedup_by(|a, b| (&a.at, &a.what) == (&b.at, &b.what));
        forms::split(text, changes)
    }
}

/// The parts of a file that a store executes more than once: its statement, or the bodies of its functions and the conditions of its
/// triggers.
fn executed(file: &str, text: &str) -> Vec<Range<usize>> {
    if !text.contains("$$") {
        let makes_objects = text.contains("CREATE ") && !file.contains("/functions/");
        return std::iter::once(0..text.len()).filter(|_| !makes_objects).collect();
    }
    let marks: Vec<usize> = text.match_indices("$$").map(|(at, _)| at).collect();
    let bodies = marks.chunks_exact(2).map(|pair| pair[0]..pair[1]);
    let triggers =
        text.match_indices("FOR EACH ROW").map(|(at, _)| at..at + text[at..].find(';').unwrap_or(0));
    bodies.chain(triggers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_the_store_whose_folder_it_is_in() {
        assert_eq!(Dialect::of("crates/sqlite/src/sql/renew_activity.sql"), Some(Dialect::Sqlite));
        assert_eq!(Dialect::of("crates/postgres/migrations/functions/renew.sql"), Some(Dialect::Postgres));
        assert_eq!(Dialect::of("crates/postgres/src/sql.rs"), None);
    }

    #[test]
    fn only_bodies_of_functions_and_conditions_of_triggers_are_changed_in_a_migration() {
        let text = "CREATE TABLE t (a int) WHERE a > 1;\nCREATE FUNCTION f() SET a = b SET c = d AS $$ IF x THEN NULL; END IF; $$;\n\
                    CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW WHEN (NEW.a = 1) EXECUTE FUNCTION f();";
        let changes = Dialect::Postgres.changes("crates/postgres/migrations/1.sql", text);
        let told: Vec<&str> = changes.iter().map(|change| change.what.as_str()).collect();
        let expected = [
            "replace x with false",
            "replace x with true",
            "replace NEW.a = 1 with false",
            "replace NEW.a = 1 with true",
        ];
        assert_eq!(told.iter().filter(|told| !told.contains('(')).copied().collect::<Vec<_>>(), expected);
    }
}
