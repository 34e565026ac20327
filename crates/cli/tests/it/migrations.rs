//! `outlast migrate` on SQLite files. `postgres.rs` has it on PostgreSQL.

use crate::support::{damage, run};
use outlast::providers::sqlite::SqliteProvider;
use sha2::{Digest, Sha256};
use std::path::Path;

const INITIAL: &str = include_str!("../../../sqlite/migrations/0001_initial.sql");
const LEDGER: &str = include_str!("../../../sqlite/src/sql/create_ledger.sql");

/// A store of the first release, which has one migration.
fn first_release(path: &Path) {
    let file = rusqlite::Connection::open(path).unwrap();
    file.pragma_update(None, "auto_vacuum", "INCREMENTAL").unwrap();
    file.pragma_update(None, "journal_mode", "wal").unwrap();
    file.execute_batch(LEDGER).unwrap();
    file.execute_batch(INITIAL).unwrap();
    let checksum: String = Sha256::digest(INITIAL).iter().map(|byte| format!("{byte:02x}")).collect();
    file.execute("INSERT INTO outlast_migrations VALUES (1, 'initial', ?1, 0)", [checksum]).unwrap();
    file.pragma_update(None, "application_id", 0x4F75_746C_i64).unwrap();
}

fn version(path: &Path) -> u32 {
    let file = rusqlite::Connection::open(path).unwrap();
    file.query_row("SELECT max(version) FROM outlast_migrations", [], |row| row.get(0)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn store_of_an_earlier_release_is_migrated_by_this_command_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    first_release(&path);
    let store = path.to_str().unwrap();
    for command in
        [&["instance", "list"][..], &["instance", "cancel", "i"], &["instance", "start", "Leaf", "i"]]
    {
        let refused = run(command.iter().chain(&["--store", store])).failed();
        assert!(
            refused.contains("has schema version 1") && refused.contains("`outlast migrate`"),
            "{command:?}: {refused}"
        );
    }
    assert_eq!(version(&path), 1, "other commands do not migrate");
    let migrate = |more: &[&str]| run(["migrate", "--store", store].iter().chain(more));
    for flag in ["--check", "--dry-run"] {
        let behind = migrate(&[flag]);
        assert_eq!((behind.code, behind.err.as_str()), (Some(1), ""), "{behind:?}");
        assert!(
            behind.out.contains("has schema version 1, this release has ")
                && behind.out.contains("Nothing was changed.\n  2 message_keys\n"),
            "{behind:?}"
        );
    }
    assert_eq!(version(&path), 1, "a dry run changes nothing");
    let done = migrate(&[]).fine();
    let now = version(&path);
    assert!(now > 1);
    assert!(
        done.contains(&format!("schema version 1 before, {now} now."))
            && done.contains("\n  2 message_keys\n"),
        "{done}"
    );
    let current = migrate(&["--check"]).fine();
    assert_eq!(current, format!("{store} has schema version {now}, which is that of this release.\n"));
    assert_eq!(migrate(&[]).fine(), current, "a second run has nothing to do");
    assert_eq!(run(["instance", "list", "--store", store]).fine(), "No instance matches.\n");
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
    damage(&path, "INSERT INTO outlast_migrations VALUES (99, 'later', 'x', 0)");
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
