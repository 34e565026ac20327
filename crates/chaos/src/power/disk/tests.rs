//! Tests of the simulated disk, through SQLite and call by call.

use super::*;
use crate::power::stored;
use outlast_model::WorkItem;
use outlast_provider::{Provider, ProviderError};
use outlast_sqlite::{SqliteOptions, SqliteProvider};
use outlast_testkit::rng::Rng;
use rusqlite::Connection;

/// Boots with these files, and opens a database on the disk.
fn boot(images: &Images, cut_time: CutTime) -> (tempfile::TempDir, Arc<Disk>, rusqlite::Result<Connection>) {
    let folder = folder().unwrap();
    let disk = Disk::boot(folder.path(), images, cut_time, false).unwrap();
    let conn = Connection::open(folder.path().join("a.db"));
    (folder, disk, conn)
}

/// The rows of the table after a power cut.
fn found(images: &Images) -> Vec<i64> {
    let (_folder, _disk, conn) = boot(images, CutTime::OnRequest);
    let conn = conn.unwrap();
    let integrity: String = conn.pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
    let Ok(mut statement) = conn.prepare("SELECT n FROM t ORDER BY n") else { return Vec::new() };
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn with_log(synchronous: &str) -> (tempfile::TempDir, Arc<Disk>, Connection) {
    let (folder, disk, conn) = boot(&Images::new(), CutTime::OnRequest);
    let conn = conn.unwrap();
    conn.pragma_update(None, "journal_mode", "wal").unwrap();
    conn.pragma_update(None, "synchronous", synchronous).unwrap();
    conn.execute_batch("CREATE TABLE t (n)").unwrap();
    (folder, disk, conn)
}

#[test]
fn synced_rows_survive_every_cut() {
    let (_folder, disk, conn) = with_log("full");
    for n in 0..20 {
        conn.execute("INSERT INTO t VALUES (?)", [n]).unwrap();
    }
    disk.cut_power();
    for seed in 0..50 {
        let after_power_cut = disk.after_power_cut(&mut Rng::new(seed));
        assert_eq!(found(&after_power_cut.images), (0..20).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn unsynced_rows_are_lost_from_some_row_on() {
    let (_folder, disk, conn) = with_log("normal");
    for n in 0..20 {
        conn.execute("INSERT INTO t VALUES (?)", [n]).unwrap();
    }
    disk.cut_power();
    let mut lengths = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let found = found(&disk.after_power_cut(&mut Rng::new(seed)).images);
        assert_eq!(found, (0..found.len() as i64).collect::<Vec<_>>(), "seed {seed}");
        lengths.insert(found.len());
    }
    assert!(lengths.contains(&0) && lengths.contains(&20) && lengths.len() > 4, "{lengths:?}");
}

#[test]
fn a_name_is_durable_after_a_folder_sync() {
    let folder = folder().unwrap();
    let disk = Disk::boot(folder.path(), &Images::new(), CutTime::OnRequest, false).unwrap();
    let mut log = disk.open_file("log", FileUse::Log).unwrap();
    let mut database = disk.open_file("database", FileUse::Database).unwrap();
    database.write(0, b"data").unwrap();
    database.sync().unwrap();
    let names = |seeds: std::ops::Range<u64>| {
        let of = |seed| disk.after_power_cut(&mut Rng::new(seed)).images.into_keys().collect::<Vec<_>>();
        seeds.map(of).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(names(0..100).len(), 4, "each of the two names is there or not");
    log.sync().unwrap();
    assert_eq!(names(0..100).into_iter().collect::<Vec<_>>(), [["database", "log"]]);
    disk.delete("log", false).unwrap();
    assert_eq!(names(0..100).len(), 2, "the deleted name is there or not");
    disk.delete("log", true).unwrap();
    assert_eq!(names(0..100).into_iter().collect::<Vec<_>>(), [["database"]]);
}

#[test]
fn without_power_calls_fail_and_files_do_not_change() {
    let (_folder, disk, conn) = with_log("full");
    disk.cut_after(2);
    assert!(conn.execute("INSERT INTO t VALUES (1)", []).is_err());
    assert!(disk.is_off());
    let before = disk.after_power_cut(&mut Rng::new(1)).images;
    assert!(conn.execute("INSERT INTO t VALUES (2)", []).is_err());
    assert!(conn.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).is_err());
    assert_eq!(disk.cut_power(), DiskCall::LogWrite, "the first cut is the one that counts");
    drop(conn);
    let after = disk.after_power_cut(&mut Rng::new(1)).images;
    let durable =
        |images: Images| images.into_iter().filter(|(name, _)| name != "a.db-shm").collect::<Vec<_>>();
    assert!(durable(before) == durable(after));
}

#[test]
fn a_disk_that_ignores_syncs_can_lose_synced_files() {
    let folder = folder().unwrap();
    let disk = Disk::boot(folder.path(), &Images::new(), CutTime::OnRequest, true).unwrap();
    let mut log = disk.open_file("log", FileUse::Log).unwrap();
    log.write(0, b"data").unwrap();
    log.sync().unwrap();
    assert!((0..50).any(|seed| disk.after_power_cut(&mut Rng::new(seed)).images.is_empty()));
}

/// A store on the disk, which sees the preallocations of its log.
async fn store_on(folder: &Path, disk: &Arc<Disk>) -> SqliteProvider {
    let writes = Preallocations { disk: Arc::clone(disk), bytes_early: 0 };
    let options = SqliteOptions { prealloc_writes: Some(Arc::new(writes)), ..SqliteOptions::default() };
    let url = format!("sqlite:{}", folder.join("a.db").display());
    SqliteProvider::new(&url, Some(options)).await.unwrap()
}

/// Commits a message for an instance of its own.
async fn send(store: &SqliteProvider, n: usize) -> Result<(), ProviderError> {
    let (instance, name) = (format!("instance-{n}"), "notes".to_string());
    let item = WorkItem::QueueMessage { instance, name, data: "x".repeat(900) };
    store.enqueue_for_orchestrator(item, None).await
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// The number of messages in a file of the disk after a cut.
fn messages_in(file: &str, disk: &Disk, seed: u64) -> Result<usize, String> {
    let after = folder().unwrap();
    restore(&disk.after_power_cut(&mut Rng::new(seed)).images, after.path()).unwrap();
    stored::read(&after.path().join(file)).map(|rows| rows.len())
}

/// The backup must be on the disk after a power cut, not only written.
#[test]
fn an_acknowledged_backup_survives_a_cut() {
    let folder = folder().unwrap();
    let disk = Disk::boot(folder.path(), &Images::new(), CutTime::OnRequest, false).unwrap();
    block_on(async {
        let store = store_on(folder.path(), &disk).await;
        for n in 0..20 {
            send(&store, n).await.unwrap();
        }
        store.backup_to(folder.path().join("copy.db")).await.unwrap();
        disk.cut_power();
    });
    for seed in 0..100 {
        assert_eq!(messages_in("copy.db", &disk, seed), Ok(20), "seed {seed}");
    }
}

#[test]
fn a_preallocated_log_is_durable_after_a_commit() {
    let folder = folder().unwrap();
    let disk = Disk::boot(folder.path(), &Images::new(), CutTime::OnRequest, false).unwrap();
    block_on(async {
        let store = store_on(folder.path(), &disk).await;
        for n in 0..20 {
            send(&store, n).await.unwrap();
        }
        disk.cut_power();
        let length = folder.path().join("a.db-wal").metadata().unwrap().len();
        assert!(length > 1 << 20, "{length} bytes: the log was not preallocated");
        for seed in 0..20 {
            let images = disk.after_power_cut(&mut Rng::new(seed)).images;
            assert_eq!(images["a.db-wal"].len() as u64, length, "seed {seed}");
        }
    });
}

#[test]
fn acknowledged_messages_survive_a_cut_in_a_preallocation() {
    for n in [1, 2, 60] {
        let folder = folder().unwrap();
        let disk = Disk::boot(folder.path(), &Images::new(), CutTime::Preallocation(n), false).unwrap();
        let acknowledged = block_on(async {
            let store = store_on(folder.path(), &disk).await;
            let mut acknowledged = 0;
            while acknowledged < 100 && send(&store, acknowledged).await.is_ok() {
                acknowledged += 1;
            }
            acknowledged
        });
        assert_eq!(disk.cut_power(), DiskCall::Preallocation);
        for seed in 0..50 {
            // The preallocation comes before the first frame of the commit, so the message without an answer is not stored.
            assert_eq!(messages_in("a.db", &disk, seed), Ok(acknowledged), "write {n}, seed {seed}");
        }
    }
}

/// A checkpoint has moved the log into the database and truncated it. The truncation is not durable before the next commit.
#[test]
fn acknowledged_messages_survive_a_cut_in_the_commit_after_a_truncation_of_the_log() {
    for changes in 1..40 {
        let folder = folder().unwrap();
        let disk = Disk::boot(folder.path(), &Images::new(), CutTime::OnRequest, false).unwrap();
        let is_second_stored = block_on(async {
            let store = store_on(folder.path(), &disk).await;
            send(&store, 0).await.unwrap();
            let conn = Connection::open(folder.path().join("a.db")).unwrap();
            let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
            let is_busy: bool = conn.query_row(checkpoint, [], |row| row.get(0)).unwrap();
            assert!(!is_busy && folder.path().join("a.db-wal").metadata().unwrap().len() == 0);
            disk.cut_after(changes);
            send(&store, 1).await.is_ok()
        });
        disk.cut_power();
        for seed in 0..50 {
            let found = messages_in("a.db", &disk, seed);
            let is_possible = found == Ok(2) || (found == Ok(1) && !is_second_stored);
            assert!(is_possible, "{found:?} after {changes} changes, seed {seed}");
        }
    }
}
