//! `outlast migrate` on SQLite files. `postgres.rs` has it on PostgreSQL.

use crate::support::{Said, damage, ended, outlast, run};
use outlast::providers::sqlite::SqliteProvider;
use std::path::Path;

/// Runs a command of a later release, which has one more migration.
fn run_later(args: &[&str]) -> Said {
    ended(outlast(args).env("OUTLAST_TEST_MIGRATION", "CREATE TABLE added (x INTEGER)"))
}

fn version(path: &Path) -> u32 {
    let file = rusqlite::Connection::open(path).unwrap();
    file.query_row("SELECT max(version) FROM outlast_migrations", [], |row| row.get(0)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn store_of_an_earlier_release_is_migrated_by_this_command_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let store = path.to_str().unwrap();
    let created = run(["migrate", "--create", "--store", store]).fine();
    assert_eq!(created, format!("Created {store} with schema version 1.\n"));
    for command in
        [&["instance", "list"][..], &["instance", "cancel", "i"], &["instance", "start", "Leaf", "i"]]
    {
        let refused = run_later(&[command, &["--store", store]].concat()).failed();
        assert!(
            refused.contains("has schema version 1, this release needs 2")
                && refused.contains("`outlast migrate`"),
            "{command:?}: {refused}"
        );
    }
    assert_eq!(version(&path), 1, "other commands do not migrate");
    let migrate = |more: &[&str]| run_later(&[&["migrate", "--store", store], more].concat());
    for flag in ["--check", "--dry-run"] {
        let behind = migrate(&[flag]);
        assert_eq!((behind.code, behind.err.as_str()), (Some(1), ""), "{behind:?}");
        let said =
            "has schema version 1, this release has 2: 1 migration is due. Nothing was changed.\n  2 next\n";
        assert!(behind.out.contains(said), "{behind:?}");
    }
    assert_eq!(version(&path), 1, "a dry run changes nothing");
    let done = migrate(&[]).fine();
    assert_eq!(done, format!("{store}: schema version 1 before, 2 now. Applied 1 migration.\n  2 next\n"));
    assert_eq!(version(&path), 2);
    let current = migrate(&["--check"]).fine();
    assert_eq!(current, format!("{store} has schema version 2, which is that of this release.\n"));
    assert_eq!(migrate(&[]).fine(), current, "a second run has nothing to do");
    assert_eq!(run_later(&["instance", "list", "--store", store]).fine(), "No instance matches.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn store_of_a_later_release_is_used_if_its_migration_allows_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let store = path.to_str().unwrap();
    run_later(&["migrate", "--create", "--store", store]).fine();
    for more in [&[][..], &["--check"]] {
        let said = run([&["migrate", "--store", store], more].concat()).fine();
        let newer = "has schema version 2 of a newer release. This release has 1, and can use it.\n";
        assert_eq!(said, format!("{store} {newer}"));
    }
    run(["instance", "start", "Leaf", "i", "--store", store]).fine();
    damage(&path, "INSERT INTO outlast_migrations VALUES (3, 'later', 'x', 3, 0)");
    let newer = run(["instance", "list", "--store", store]);
    assert_eq!(newer.code, Some(7), "{newer:?}");
    assert!(newer.err.contains("has schema version 3, this release knows up to 1"), "{newer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn store_that_cannot_be_migrated_has_its_exit_status() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let store = path.to_str().unwrap();
    let migrate = |more: &[&str]| run(["migrate", "--store", store].iter().chain(more));
    assert!(migrate(&[]).failed().contains("there is no store at"));
    assert!(!path.exists());
    let created = migrate(&["--create", "-o", "json"]).json();
    assert!(created["before"] == 0 && created["after"] == created["known"], "{created}");
    drop(SqliteProvider::new(&format!("sqlite:{store}"), None).await.unwrap());
    assert!(
        migrate(&["--create"]).fine().contains("which is that of this release"),
        "a store is not created again"
    );
    damage(&path, "INSERT INTO outlast_migrations VALUES (99, 'later', 'x', 99, 0)");
    for more in [&[][..], &["--check"], &["--create"]] {
        let newer = migrate(more);
        assert_eq!((newer.code, newer.out.as_str()), (Some(7), ""), "{newer:?}");
        assert!(newer.err.contains("use a newer release"), "{newer:?}");
    }
    let other = dir.path().join("other.txt");
    std::fs::write(&other, "x".repeat(2_000)).unwrap();
    assert!(run(["migrate", "--store", other.to_str().unwrap()]).failed().contains("not a SQLite database"));
    let away = run(["migrate", "--store", "postgres://me@127.0.0.1:1/db?sslmode=disable"]);
    assert_eq!(away.code, Some(7), "{away:?}");
    let cosmos = run(["migrate", "--store", "cosmos://host/db"]).fine();
    assert_eq!(cosmos, "cosmos://host/db is a Cosmos DB store, which has no migrations.\n");
    assert_eq!(migrate(&["--check", "--create"]).code, Some(2));
}
