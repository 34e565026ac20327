//! Opening a store: the files and URLs that become a store, and the modes of opening.

use crate::factory::raw;
use crate::refusing::untouched;
use crate::support::*;
use outlast_provider::{Provider, ProviderAdmin};
use outlast_provider_kit::migrations::{Migration, MigrationRefusal};
use outlast_sqlite::{SqliteError, SqliteOptions, SqliteProvider};
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

#[tokio::test]
async fn statements_of_the_page_of_this_store_are_executed() {
    let (_folder, path) = fresh();
    hello(&SqliteProvider::new(&url(&path), None).await.unwrap(), "order-1").await;
    let page = include_str!("../../../../docs/sqlite.md");
    let connection = raw(&path);
    let mut executed = 0;
    for block in page.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        for statement in block.split_inclusive(';').filter(|statement| statement.contains(';')) {
            let prepared = connection.prepare(statement);
            let mut prepared = prepared.unwrap_or_else(|error| panic!("{statement}: {error}"));
            let rows = prepared.query_map([], |_| Ok(())).unwrap().count();
            assert!(rows > 0 || !statement.contains("history"), "{statement}");
            executed += 1;
        }
    }
    assert!(executed >= 5, "{executed} statements");
}

#[tokio::test]
async fn plain_urls_create_a_store_and_mode_rw_requires_one() {
    let (folder, path) = fresh();
    for options in ["?mode=rw", "?mode=ro"] {
        let error = untouched(&path, options).await;
        assert!(matches!(error, SqliteError::CannotOpen { .. }), "{error:?}");
    }
    let plain = [
        url(&path),
        format!("sqlite://{}", folder.path().join("slashes.db").display()),
        format!("sqlite:{}?mode=rwc", folder.path().join("create.db").display()),
        format!("sqlite:{}?cache=private", folder.path().join("a%20b%3F.db").display()),
    ];
    for url in &plain {
        hello(&SqliteProvider::new(url, None).await.unwrap(), "i").await;
    }
    let names: Vec<String> = files(folder.path()).into_keys().collect();
    assert_eq!(names, ["a b?.db", "create.db", "slashes.db", "store.db"]);
    let provider = SqliteProvider::new(&format!("{}?mode=rw", url(&path)), None).await.unwrap();
    assert_eq!(provider.read("i").await.unwrap().len(), 4);
}

/// Other tools leave such files: databases with pages and without tables.
#[tokio::test]
async fn an_empty_database_becomes_a_store() {
    for sql in
        ["PRAGMA journal_mode = WAL", "CREATE TABLE gone (a); DROP TABLE gone", "PRAGMA user_version = 3"]
    {
        let (_folder, path) = fresh();
        raw(&path).execute_batch(sql).unwrap();
        assert!(size(&path) > 0, "{sql}");
        hello(&open(&path).await, "i").await;
        assert_eq!(count(&path, "PRAGMA auto_vacuum"), 2, "{sql}");
        assert_eq!(open(&path).await.read("i").await.unwrap().len(), 4);
    }
}

#[tokio::test]
async fn a_removed_store_is_not_created_again() {
    let (_folder, path) = fresh();
    let provider = open(&path).await;
    hello(&provider, "i").await;
    for file in [path.clone(), beside(&path, "-wal"), beside(&path, "-shm")] {
        std::fs::remove_file(file).unwrap();
    }
    let error = provider.backup_to(path.with_extension("copy")).await.unwrap_err();
    assert!(matches!(&error, SqliteError::CannotOpen { path: missing, .. } if *missing == path), "{error:?}");
    assert!(!path.exists() && !path.with_extension("copy").exists());
}

#[tokio::test]
async fn a_read_only_store_reads_and_refuses_to_write() {
    let (_folder, path) = fresh();
    used(&path).await;
    open(&path).await.enqueue_for_orchestrator(start("waiting"), None).await.unwrap();
    let before = std::fs::read(&path).unwrap();
    let provider = SqliteProvider::new(&format!("{}?mode=ro", url(&path)), None).await.unwrap();
    assert_eq!(provider.read("i7").await.unwrap().len(), 4);
    let admin = provider.as_management_capability().unwrap();
    assert_eq!(admin.list_instances().await.unwrap().len(), 50);
    assert_eq!(provider.integrity_check().await.unwrap(), [""; 0]);
    let refused = [
        provider.enqueue_for_orchestrator(start("new"), None).await.unwrap_err(),
        provider.append_with_execution("i7", 1, vec![ended("i7", 9)]).await.unwrap_err(),
        admin.delete_instance("i7", true).await.unwrap_err(),
        provider.fetch_orchestration_item(LONG, NO_WAIT, None).await.unwrap_err(),
        provider.fetch_orchestration_item(LONG, PATIENCE, None).await.unwrap_err(),
    ];
    for error in &refused {
        assert!(error.message.contains("read-only") && !error.is_retryable(), "{error:?}");
    }
    assert_eq!(provider.read("i7").await.unwrap().len(), 4, "a refused write does not end reads");
    drop(provider);
    assert!(std::fs::read(&path).unwrap() == before, "the file was changed");
}

#[tokio::test]
async fn a_read_only_store_changes_no_file_of_a_closed_store() {
    let (folder, path) = fresh();
    used(&path).await;
    let before = files(folder.path());
    let read_only = format!("{}?mode=ro", url(&path));
    let provider = SqliteProvider::new(&read_only, None).await.unwrap();
    assert_eq!(provider.read("i7").await.unwrap().len(), 4);
    drop(provider);
    SqliteProvider::schema_state(&read_only).unwrap();
    assert!(files(folder.path()) == before, "{:?}", files(folder.path()).keys());
}

#[tokio::test]
async fn a_read_only_store_does_not_empty_the_log_of_a_store_in_use() {
    let (folder, path) = fresh();
    let in_use = open(&path).await;
    create(&in_use, "running").await;
    let read_only = format!("{}?mode=ro", url(&path));
    drop(SqliteProvider::new(&read_only, None).await.unwrap());
    assert!(size(&beside(&path, "-wal")) > 0 && files(folder.path()).len() >= 3);
    create(&in_use, "later").await;
    let reader = SqliteProvider::new(&read_only, None).await.unwrap();
    assert_eq!(reader.as_management_capability().unwrap().list_instances().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_copy_without_its_log_is_refused_with_the_name_of_the_log() {
    let (_folder, path) = fresh();
    let in_use = open(&path).await;
    create(&in_use, "running").await;
    let copy = path.with_file_name("copy.db");
    std::fs::copy(&path, &copy).unwrap();
    let refused = SqliteProvider::new(&format!("{}?mode=ro", url(&copy)), None).await.map(drop).unwrap_err();
    let state = SqliteProvider::schema_state(&format!("{}?mode=ro", url(&copy))).unwrap_err();
    for text in [refused.to_string(), state.to_string()] {
        assert!(text.contains("it is empty, and its log is missing"), "{text}");
        assert!(text.contains("a copy of a store in use needs its file 'copy.db-wal'"), "{text}");
    }
    std::fs::copy(beside(&path, "-wal"), beside(&copy, "-wal")).unwrap();
    let whole = SqliteProvider::new(&format!("{}?mode=ro", url(&copy)), None).await.unwrap();
    assert_eq!(whole.as_management_capability().unwrap().list_instances().await.unwrap(), ["running"]);
}

#[tokio::test]
async fn refusal_of_an_empty_file_names_no_log() {
    let (_folder, path) = fresh();
    std::fs::write(&path, "").unwrap();
    let refused = SqliteProvider::new(&format!("{}?mode=ro", url(&path)), None).await.map(drop).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("(it is empty)") && !text.contains("wal"), "{text}");
}

#[tokio::test]
async fn stores_in_memory_are_private() {
    let shared = "sqlite::memory:?cache=shared";
    let providers = [
        SqliteProvider::new_in_memory().await.unwrap(),
        SqliteProvider::new_in_memory().await.unwrap(),
        SqliteProvider::new(shared, None).await.unwrap(),
        SqliteProvider::new(shared, None).await.unwrap(),
        SqliteProvider::new("sqlite:x?mode=memory", None).await.unwrap(),
    ];
    for (n, provider) in providers.iter().enumerate() {
        hello(provider, &format!("i{n}")).await;
    }
    for (n, provider) in providers.iter().enumerate() {
        let found = provider.as_management_capability().unwrap().list_instances().await.unwrap();
        assert_eq!(found, [format!("i{n}")]);
    }
    assert!(!Path::new("x").exists());
}

#[cfg(unix)]
#[tokio::test]
async fn new_files_are_readable_by_their_owner_only() {
    const TEST: &str = "opening::new_files_are_readable_by_their_owner_only";
    if let Some(path) = role(TEST) {
        let provider = open(&path).await;
        hello(&provider, "i").await;
        let copy = path.with_extension("copy");
        provider.backup_to(&copy).await.unwrap();
        for file in [beside(&path, "-wal"), beside(&path, "-shm"), path, copy] {
            let mode = file.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{} has mode {mode:o}", file.display());
        }
        return;
    }
    let (_folder, path) = fresh();
    let inner = child(TEST, &path);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(inner.get_program()).args(inner.get_args());
    shell.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = shell.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The owner of an existing file has set its mode, so the store keeps it.
#[cfg(unix)]
#[tokio::test]
async fn an_existing_file_keeps_its_mode() {
    let (_folder, path) = fresh();
    drop(open(&path).await);
    for mode in [0o644, 0o660, 0o600] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let provider = open(&path).await;
        hello(&provider, &format!("{mode:o}")).await;
        for file in [path.clone(), beside(&path, "-wal"), beside(&path, "-shm")] {
            let found = file.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(found, mode, "{} has mode {found:o}", file.display());
        }
    }
}

#[tokio::test]
async fn reopening_keeps_rows_and_leases() {
    let (_folder, path) = fresh();
    used(&path).await;
    let provider = open(&path).await;
    create(&provider, "kv").await;
    provider.enqueue_for_orchestrator(start("leased"), None).await.unwrap();
    let (_, turn_token, _) = turn(&provider).await;
    provider.enqueue_for_worker(activity("kv", 9)).await.unwrap();
    let (_, work_token, _) = work(&provider).await;
    provider.enqueue_for_orchestrator(start("later"), Some(LONG)).await.unwrap();
    let (before, dump) = (rows(&path), provider.debug_dump().await);
    drop(provider);
    assert_eq!(size(&beside(&path, "-wal")), 0, "a store that is closed leaves no log");
    let provider = open(&path).await;
    assert_eq!(rows(&path), before);
    assert_eq!(provider.debug_dump().await, dump);
    assert!(
        provider.fetch_orchestration_item(LONG, NO_WAIT, None).await.unwrap().is_none(),
        "both turns are leased or delayed"
    );
    ack(&provider, &turn_token, vec![started("leased")], vec![], named()).await.unwrap();
    provider.ack_work_item(&work_token, None).await.unwrap();
}

#[tokio::test]
async fn a_closed_store_is_one_file() {
    let (folder, path) = fresh();
    for n in 0..50 {
        let provider = open(&path).await;
        provider.enqueue_for_worker(activity("i", n)).await.unwrap();
        assert!(provider.read("i").await.unwrap().is_empty());
        drop(provider);
        assert_eq!(files(folder.path()).into_keys().collect::<Vec<_>>(), ["store.db"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_concurrent_opens_create_one_store() {
    for _ in 0..40 {
        let (_folder, path) = fresh();
        let opening: Vec<_> = (0..10)
            .map(|n| {
                let path = path.clone();
                tokio::spawn(async move {
                    let provider = SqliteProvider::new(&url(&path), None).await.unwrap();
                    provider.enqueue_for_orchestrator(start(&format!("i{n}")), None).await.unwrap();
                    provider
                })
            })
            .collect();
        let mut providers = Vec::new();
        for opened in opening {
            providers.push(opened.await.unwrap());
        }
        assert_eq!(count(&path, "SELECT count(*) FROM outlast_migrations"), 1);
        assert_eq!(count(&path, "SELECT count(*) FROM orchestrator_queue"), 10);
    }
}

#[tokio::test]
async fn stores_without_readers_or_threads_run_an_orchestration() {
    for (inline, reader_connections) in [(false, 0), (true, 2)] {
        let (_folder, path) = fresh();
        let provider =
            open_with(&path, SqliteOptions { inline, reader_connections, ..Default::default() }).await;
        hello(&provider, "i").await;
        assert_eq!(provider.read("i").await.unwrap().len(), 4);
        provider.checkpoint().await.unwrap();
        assert_eq!(provider.integrity_check().await.unwrap(), [""; 0]);
    }
}

/// Options of a later release, which has one more migration.
fn later(usable_from: u32) -> SqliteOptions {
    let sql = "CREATE TABLE added (x INTEGER)";
    let next = Migration { version: 2, name: "next", usable_from, sql };
    SqliteOptions { further_migrations: vec![next], ..SqliteOptions::default() }
}

#[tokio::test]
async fn a_store_of_an_earlier_release_is_migrated_and_keeps_its_rows() {
    let (_folder, path) = fresh();
    let store = open(&path).await;
    create(&store, "old").await;
    drop(store);
    let read_only = format!("{}?mode=ro", url(&path));
    let refused = SqliteProvider::new(&read_only, Some(later(1))).await.map(drop).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("the store has schema version 1, this release needs 2"), "{text}");
    let store = open_with(&path, later(1)).await;
    assert_eq!(count(&path, "SELECT count(*) FROM outlast_migrations"), 2);
    assert_eq!(count(&path, "SELECT count(*) FROM added"), 0);
    assert_eq!(store.list_instances().await.unwrap(), ["old"]);
}

#[tokio::test]
async fn a_store_of_a_later_release_is_opened_if_its_migration_is_usable_from_this_version() {
    let (_folder, path) = fresh();
    drop(open_with(&path, later(1)).await);
    let store = open(&path).await;
    create(&store, "new").await;
    let reader = SqliteProvider::new(&format!("{}?mode=ro", url(&path)), None).await.unwrap();
    assert_eq!(reader.list_instances().await.unwrap(), ["new"]);
    let state = SqliteProvider::schema_state(&url(&path)).unwrap();
    assert_eq!((state.applied, state.known, state.due), (2, 1, vec![]));
}

#[tokio::test]
async fn a_store_of_a_later_release_is_refused_if_its_migration_is_usable_from_its_own_version() {
    let (_folder, path) = fresh();
    drop(open_with(&path, later(2)).await);
    for options in ["", "?mode=rw", "?mode=ro"] {
        let error = untouched(&path, options).await;
        let newer = MigrationRefusal::Newer { found: 2, known: 1 };
        assert!(matches!(&error, SqliteError::Schema { refusal, .. } if *refusal == newer), "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_in_use_works_on_while_a_later_release_migrates_the_file() {
    let (_folder, path) = fresh();
    let old = open(&path).await;
    create(&old, "before").await;
    old.enqueue_for_orchestrator(start("leased"), None).await.unwrap();
    let (_, token, _) = turn(&old).await;
    let new = open_with(&path, later(1)).await;
    ack(&old, &token, vec![started("leased")], vec![], named()).await.unwrap();
    create(&old, "after").await;
    create(&new, "new").await;
    for store in [&old, &new] {
        let mut listed = store.list_instances().await.unwrap();
        listed.sort();
        assert_eq!(listed, ["after", "before", "leased", "new"]);
    }
}
