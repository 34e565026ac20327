//! Files and URLs that the store refuses, without a change of any file.

use crate::factory::raw;
use crate::support::*;
use outlast_provider::Provider;
use outlast_provider_kit::migrations::MigrationRefusal;
use outlast_sqlite::{SqliteError, SqliteProvider};
use std::path::Path;

async fn refusal(url: &str) -> SqliteError {
    match SqliteProvider::new(url, None).await {
        Ok(_) => panic!("{url} was opened"),
        Err(error) => error,
    }
}

/// Asserts that opening fails and that the files of the folder stay as they were.
pub(crate) async fn untouched(path: &Path, options: &str) -> SqliteError {
    let folder = path.parent().unwrap();
    let before = files(folder);
    let error = refusal(&format!("{}{options}", url(path))).await;
    let mut after = files(folder);
    if options == "?mode=ro" {
        // A read-only connection cannot remove the log and its index when it closes.
        for left in [beside(path, "-wal"), beside(path, "-shm")] {
            assert!(size(&left) == 0 || left.to_string_lossy().ends_with("-shm"), "the log holds pages");
            after.remove(&*left.file_name().unwrap().to_string_lossy());
            let _ = std::fs::remove_file(left);
        }
    }
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>(), "{error}");
    assert!(after == before, "the files were changed: {error}");
    assert!(
        error.to_string().contains(&*path.to_string_lossy()),
        "the error does not name the file: {error}"
    );
    assert!(!error.is_retryable(), "the error is not permanent: {error}");
    error
}

#[tokio::test]
async fn invalid_urls_are_refused_with_their_text() {
    let (folder, path) = fresh();
    let path = path.display();
    let cases = [
        (format!("sqlite:{path}?mode=rwx"), "unknown mode: use"),
        (format!("sqlite:{path}?journal_mode=off"), "journal_mode=...': unknown option"),
        (format!("sqlite:{path}?mode=rw&immutable=1"), "immutable=...': unknown option"),
        (format!("sqlite:file:{path}"), "file:"),
        (format!("{path}"), "sqlite:PATH"),
        (format!("mysql://{path}"), "sqlite:PATH"),
        ("sqlite:".to_string(), "empty"),
    ];
    for (url, expected) in cases {
        let error = refusal(&url).await;
        assert!(matches!(error, SqliteError::InvalidUrl { .. }), "{error:?}");
        let text = error.to_string();
        // Values of options may be secrets.
        let place = url.split('?').next().unwrap();
        assert!(text.contains(place) && text.contains(expected), "{text}");
    }
    assert!(files(folder.path()).is_empty());
}

#[tokio::test]
async fn unusable_folders_are_refused_with_their_path() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plain");
    std::fs::write(&file, "x").unwrap();
    let missing = folder.path().join("missing/store.db");
    let below_a_file = file.join("store.db");
    for (path, says) in
        [(missing.as_path(), "No such file"), (&below_a_file, "Not a directory"), (folder.path(), "")]
    {
        for options in ["", "?mode=rw", "?mode=ro"] {
            let error = refusal(&format!("{}{options}", url(path))).await;
            assert!(matches!(error, SqliteError::CannotOpen { .. }), "{error:?}");
            let text = error.to_string();
            assert!(text.contains(&*path.to_string_lossy()), "{text}");
            assert!(!options.is_empty() || text.contains(says), "{text}");
            assert!(!error.is_retryable());
        }
    }
    assert_eq!(files(folder.path()).into_keys().collect::<Vec<_>>(), ["plain"]);
}

#[tokio::test]
async fn files_of_other_formats_are_refused() {
    for content in ["x".to_string(), "hello, world\n".repeat(1_000), "SQLite format 3\0".to_string()] {
        let (_folder, path) = fresh();
        std::fs::write(&path, content).unwrap();
        for options in ["", "?mode=rw", "?mode=ro"] {
            let error = untouched(&path, options).await;
            assert!(
                matches!(&error, SqliteError::Foreign { found, .. } if found.contains("not a SQLite")),
                "{error:?}"
            );
        }
    }
}

#[tokio::test]
async fn an_empty_file_becomes_a_store() {
    let (_folder, path) = fresh();
    std::fs::write(&path, "").unwrap();
    let error = untouched(&path, "?mode=ro").await;
    assert!(matches!(&error, SqliteError::Foreign { found, .. } if found.contains("empty")), "{error:?}");
    hello(&open(&path).await, "i").await;
    assert_eq!(open(&path).await.read("i").await.unwrap().len(), 4);
}

#[tokio::test]
async fn truncated_stores_are_refused() {
    let (_folder, path) = fresh();
    used(&path).await;
    let whole = std::fs::read(&path).unwrap();
    for left in [whole.len() - 1, whole.len() - 4_096, whole.len() / 2, 8_192, 4_096, 1_000] {
        std::fs::write(&path, &whole[..left]).unwrap();
        for options in ["", "?mode=rw", "?mode=ro"] {
            let error = untouched(&path, options).await;
            assert!(matches!(error, SqliteError::Damaged { .. }), "{left} bytes: {error:?}");
        }
    }
    // The header itself is cut off, so no byte shows that the file was a database.
    std::fs::write(&path, &whole[..60]).unwrap();
    assert!(matches!(untouched(&path, "").await, SqliteError::Foreign { .. }));
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(open(&path).await.read("i7").await.unwrap().len(), 4, "the whole file is a store");
}

#[tokio::test]
async fn databases_of_other_applications_are_refused() {
    let durable =
        "CREATE TABLE instances (instance_id TEXT); CREATE TABLE _sqlx_migrations (version INTEGER);
                   INSERT INTO instances VALUES ('theirs')";
    let cases = [
        ("CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('theirs')", "'songs'"),
        (durable, "another durable-execution library"),
        ("PRAGMA application_id = 7; CREATE TABLE songs (title TEXT)", "0x7"),
        ("PRAGMA application_id = 7", "0x7"),
        ("CREATE VIEW v AS SELECT 1", "'v'"),
    ];
    for (sql, expected) in cases {
        for journal in ["DELETE", "WAL"] {
            let (_folder, path) = fresh();
            let conn = raw(&path);
            conn.query_row(&format!("PRAGMA journal_mode = {journal}"), [], |_| Ok(())).unwrap();
            conn.execute_batch(sql).unwrap();
            drop(conn);
            for options in ["", "?mode=rw"] {
                let error = untouched(&path, options).await;
                let text = error.to_string();
                assert!(
                    matches!(error, SqliteError::Foreign { .. }) && text.contains(expected),
                    "{journal}: {text}"
                );
            }
        }
    }
}

/// The process of the foreign database crashed or is still running: its log stays beside the file.
#[tokio::test]
async fn the_log_of_a_foreign_database_is_not_checkpointed() {
    let (folder, path) = fresh();
    let conn = raw(&path);
    conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
    conn.execute_batch("CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('theirs')").unwrap();
    // A copy of the files has the state after a crash.
    let crashed = tempfile::tempdir().unwrap();
    for (name, bytes) in files(folder.path()) {
        if !name.ends_with("-shm") {
            std::fs::write(crashed.path().join(name), bytes).unwrap();
        }
    }
    let copy = crashed.path().join("store.db");
    let before = files(crashed.path());
    assert!(before["store.db-wal"].len() > 4_096, "the rows are in the log");
    assert!(matches!(refusal(&url(&copy)).await, SqliteError::Foreign { .. }));
    let mut after = files(crashed.path());
    after.remove("store.db-shm");
    assert!(after == before, "the log was moved into the database");
    drop(conn);
}

#[tokio::test]
async fn newer_and_damaged_migration_tables_are_refused() {
    let newer = "INSERT INTO outlast_migrations VALUES (99, 'later', 'abc', 99, 1)";
    let damaged = [
        ("UPDATE outlast_migrations SET checksum = 'abc'", "another text"),
        ("DELETE FROM outlast_migrations", "version 1"),
        ("UPDATE outlast_migrations SET version = 0 WHERE version = 1", "version 0"),
        ("UPDATE outlast_migrations SET version = -1 WHERE version = 1", "cannot be read"),
        ("INSERT INTO outlast_migrations VALUES (0, 'early', 'abc', 0, 1)", "version 0"),
        ("UPDATE outlast_migrations SET checksum = x'00ff'", "cannot be read"),
        ("UPDATE outlast_migrations SET usable_from = 0", "usable from version 0"),
        ("UPDATE outlast_migrations SET usable_from = 'all'", "cannot be read"),
        (
            "INSERT INTO outlast_migrations VALUES (99, 'later', 'abc', 1, 1)",
            "found version 99 where 2 belongs",
        ),
        ("DROP TABLE outlast_migrations", "no such table"),
    ];
    let cases = std::iter::once((newer, "schema version 99")).chain(damaged);
    for (sql, expected) in cases {
        let (_folder, path) = fresh();
        used(&path).await;
        raw(&path).execute_batch(sql).unwrap();
        for options in ["", "?mode=rw", "?mode=ro"] {
            let before = rows(&path);
            let error = untouched(&path, options).await;
            let text = error.to_string();
            assert!(text.contains(expected), "{sql}: {text}");
            let SqliteError::Schema { refusal, .. } = error else { panic!("{sql}: {error:?}") };
            assert_eq!(matches!(refusal, MigrationRefusal::Newer { .. }), sql == newer, "{refusal:?}");
            assert_eq!(rows(&path), before);
        }
    }
}
