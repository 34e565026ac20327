//! Stores that released versions wrote: every later version ends their unfinished instances.
//!
//! `testdata/stores/VERSION` holds a SQLite file and a dump of PostgreSQL. `OUTLAST_FREEZE=1` writes the files of this version that
//! are missing; a file that exists is never written. A later version copies the programs of a version whose programs it changes.

pub(crate) mod finish;
pub(crate) mod next;
pub(crate) mod programs;
pub(crate) mod write;

use finish::finish;
use outlast::RuntimeOptions;
use outlast::providers::Provider;
use outlast::providers::sqlite::{SqliteOptions, SqliteProvider};
use programs::{Build, Runs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// The versions that wrote stores.
pub(crate) const VERSIONS: [&str; 1] = ["0.2.0"];

pub(crate) fn file(version: &str, name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/stores").join(version).join(name)
}

/// Held while a file may be written, which several tests need.
pub(crate) static WRITING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Whether the file is missing and shall be written.
pub(crate) fn is_due(path: &Path) -> bool {
    match (path.exists(), std::env::var_os("OUTLAST_FREEZE").is_some()) {
        (true, _) => false,
        (false, true) => true,
        (false, false) => panic!("{} is missing: OUTLAST_FREEZE=1 writes it", path.display()),
    }
}

async fn open(path: &Path, options: SqliteOptions) -> Arc<dyn Provider> {
    let url = format!("sqlite:{}", path.display());
    Arc::new(SqliteProvider::new(&url, Some(options)).await.unwrap())
}

/// A copy of the frozen file of a version.
async fn copy(version: &str) -> (TempDir, PathBuf) {
    let _one_writes = WRITING.lock().await;
    let (frozen, folder) = (file(version, "sqlite.db"), tempfile::tempdir().unwrap());
    let copy = folder.path().join("store.db");
    if is_due(&frozen) {
        write_file(&copy).await;
        std::fs::create_dir_all(frozen.parent().unwrap()).unwrap();
        std::fs::copy(&copy, &frozen).unwrap();
    }
    std::fs::copy(&frozen, &copy).unwrap();
    (folder, copy)
}

async fn write_file(path: &Path) {
    let store = open(path, SqliteOptions::default()).await;
    let damage = async || {
        let change = "UPDATE orchestrator_queue SET work_item = 'damaged' WHERE instance_id = 'damaged'";
        assert_eq!(rusqlite::Connection::open(path).unwrap().execute(change, []).unwrap(), 1);
    };
    write::write(&store, damage).await;
    drop(store);
    assert!(!path.with_file_name("store.db-wal").exists(), "a closed store is one file");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_instances_of_each_released_version_end_once_on_sqlite() {
    for version in VERSIONS {
        let (_folder, path) = copy(version).await;
        let texts = "SELECT count(*) FROM message_texts";
        let texts: i64 =
            rusqlite::Connection::open(&path).unwrap().query_row(texts, [], |row| row.get(0)).unwrap();
        assert_eq!(texts, 1, "the file has a message whose text is apart");
        let store = open(&path, SqliteOptions::default()).await;
        finish(&store, Build::First, |_: &mut RuntimeOptions| (), &Runs::default()).await;
        drop(store);
        let rows = rusqlite::Connection::open(&path).unwrap();
        let check: String = rows.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
    }
}
