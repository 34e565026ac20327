//! Equivalent mutants of statements: mutants that do not change the results, each with its reason.

use super::conditions::Change;
use super::dialect::Dialect;
use super::name;

/// A statement of the SQLite store, the change, and the reason why the results stay the same.
const EQUIVALENT: &[(&str, &str, &str)] = &[
    ("abandon_messages", "replace instance_id = ?1 with true", FENCED),
    ("delete_covered_messages", "replace instance_id = ?1 with true", FENCED),
    (
        "queue_depths",
        "replace q.lock_token IS NULL with false",
        "no lease has the token of a message without one; knowing that spares the look for it",
    ),
    ("renew_messages", "replace instance_id = ?1 with true", FENCED),
    (
        "renew_messages",
        "replace lock_token = ?2 with true",
        "an instance has one lease, and the maximum of its end and of no end is none",
    ),
    ("undo_cover", "replace instance_id = ?1 with true", FENCED),
];

const FENCED: &str =
    "the fence went before, for this instance and this token, and no two leases share a token";

/// A file of the PostgreSQL store, a text of the line, the change, and the reason why the results stay the same.
const POSTGRES: &[(&str, &str, &str, &str)] = &[
    (
        "migrations/functions/commit_body.sql",
        "IF v_sessions",
        "replace v_sessions IS NOT NULL with true in commit_1",
        NO_SESSIONS,
    ),
    (
        "migrations/functions/commit_body.sql",
        "IF v_sessions",
        "replace v_sessions IS NOT NULL with true in commit_alone_1",
        NO_SESSIONS,
    ),
    (
        "migrations/functions/renew.sql",
        "IF v_sessions",
        "replace v_sessions IS NOT NULL with true",
        NO_SESSIONS,
    ),
    (
        "migrations/functions/commit_body.sql",
        "WHERE {m.kind} = {KIND_TURN} AND v_turn[m.member]",
        "replace v_partial IS NULL with true",
        PARTIAL,
    ),
    (
        "migrations/functions/commit_body.sql",
        "WHERE {m.kind} = {KIND_TURN} AND v_turn[m.member]",
        "replace m.member <> ALL (v_partial) with true",
        PARTIAL,
    ),
    (
        "migrations/functions/commit_body.sql",
        "WHERE {m.kind} = {KIND_TURN} AND v_turn[m.member]",
        "replace (v_partial IS NULL OR m.member <> ALL (v_partial)) with true",
        PARTIAL,
    ),
];

const PARTIAL: &str = "the messages of a partial lease are those with its token: they are removed here and not by their ids, and the two \
                       differences of the counts cancel out";

const NO_SESSIONS: &str = "without sessions touch_sessions changes no row; the condition spares the call";

pub(super) fn is_listed(file: &str, text: &str, change: &Change) -> bool {
    let line = text.lines().nth(change.line - 1).unwrap_or_default();
    let is_of_postgres = |(path, part, what, _): &(&str, &str, &str, &str)| {
        file.strip_prefix("crates/postgres/") == Some(path) && line.contains(part) && change.what == *what
    };
    match Dialect::of(file) {
        Some(Dialect::Postgres) => POSTGRES.iter().any(is_of_postgres),
        _ => EQUIVALENT.iter().any(|(statement, what, _)| *statement == name(file) && *what == change.what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_toolkit::{files, process};

    #[test]
    fn every_listed_name_is_a_mutant() {
        for (name, change, reason) in EQUIVALENT {
            let file = format!("{}{name}.sql", Dialect::Sqlite.folders()[0]);
            let text = files::read(&process::root().join(&file)).unwrap();
            let changes = Dialect::Sqlite.changes(&file, &text);
            assert!(changes.iter().any(|made| made.what == *change), "{name}: {change}");
            assert!(!reason.is_empty());
        }
        for (path, part, change, reason) in POSTGRES {
            let text = files::read(&process::root().join("crates/postgres").join(path)).unwrap();
            let mut changes = Dialect::Postgres.changes(path, &text).into_iter();
            let is_there = |made: &Change| {
                made.what == *change
                    && text.lines().nth(made.line - 1).is_some_and(|line| line.contains(part))
            };
            assert!(changes.any(|made| is_there(&made)), "{path}: {part}: {change}");
            assert!(!reason.is_empty());
        }
    }
}
