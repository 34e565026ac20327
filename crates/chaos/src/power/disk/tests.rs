//! What the disk keeps, seen through SQLite itself and call by call.

use super::*;
use outlast_testkit::rng::Rng;
use rusqlite::Connection;

/// A machine with nothing on its disk, and a database that is opened through it.
fn machine(images: &Images, moment: Moment) -> (tempfile::TempDir, Arc<Disk>, rusqlite::Result<Connection>) {
    let folder = folder().unwrap();
    let disk = Disk::boot(folder.path(), images, moment, false).unwrap();
    let conn = Connection::open(folder.path().join("a.db"));
    (folder, disk, conn)
}

/// What the table holds after a power cut.
fn found(images: &Images) -> Vec<i64> {
    let (_folder, _disk, conn) = machine(images, Moment::Unplanned);
    let conn = conn.unwrap();
    let integrity: String = conn.pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
    let Ok(mut statement) = conn.prepare("SELECT n FROM t ORDER BY n") else { return Vec::new() };
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn with_log(synchronous: &str) -> (tempfile::TempDir, Arc<Disk>, Connection) {
    let (folder, disk, conn) = machine(&Images::new(), Moment::Unplanned);
    let conn = conn.unwrap();
    conn.pragma_update(None, "journal_mode", "wal").unwrap();
    conn.pragma_update(None, "synchronous", synchronous).unwrap();
    conn.execute_batch("CREATE TABLE t (n)").unwrap();
    (folder, disk, conn)
}

#[test]
fn what_is_synced_is_in_every_wreck() {
    let (_folder, disk, conn) = with_log("full");
    for n in 0..20 {
        conn.execute("INSERT INTO t VALUES (?)", [n]).unwrap();
    }
    disk.pull_plug();
    for seed in 0..50 {
        let wreck = disk.wreck(&mut Rng::new(seed));
        assert_eq!(found(&wreck.images), (0..20).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn what_is_not_synced_is_lost_from_some_point_on() {
    let (_folder, disk, conn) = with_log("normal");
    for n in 0..20 {
        conn.execute("INSERT INTO t VALUES (?)", [n]).unwrap();
    }
    disk.pull_plug();
    let mut lengths = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let found = found(&disk.wreck(&mut Rng::new(seed)).images);
        assert_eq!(found, (0..found.len() as i64).collect::<Vec<_>>(), "seed {seed}");
        lengths.insert(found.len());
    }
    assert!(lengths.contains(&0) && lengths.contains(&20) && lengths.len() > 4, "{lengths:?}");
}

#[test]
fn a_name_lasts_when_its_folder_is_synced() {
    let folder = folder().unwrap();
    let disk = Disk::boot(folder.path(), &Images::new(), Moment::Unplanned, false).unwrap();
    let mut log = disk.opened("log", Use::Log).unwrap();
    let mut database = disk.opened("database", Use::Database).unwrap();
    database.write(0, b"data").unwrap();
    database.sync().unwrap();
    let names = |seeds: std::ops::Range<u64>| {
        let of = |seed| disk.wreck(&mut Rng::new(seed)).images.into_keys().collect::<Vec<_>>();
        seeds.map(of).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(names(0..100).len(), 4, "each of both is there or not");
    log.sync().unwrap();
    assert_eq!(names(0..100).into_iter().collect::<Vec<_>>(), [["database", "log"]]);
    disk.delete("log", false).unwrap();
    assert_eq!(names(0..100).len(), 2, "it is there or not");
    disk.delete("log", true).unwrap();
    assert_eq!(names(0..100).into_iter().collect::<Vec<_>>(), [["database"]]);
}

#[test]
fn without_power_nothing_works_and_nothing_changes() {
    let (_folder, disk, conn) = with_log("full");
    disk.cut_after(2);
    assert!(conn.execute("INSERT INTO t VALUES (1)", []).is_err());
    assert!(disk.is_dead());
    let before = disk.wreck(&mut Rng::new(1)).images;
    assert!(conn.execute("INSERT INTO t VALUES (2)", []).is_err());
    assert!(conn.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).is_err());
    assert_eq!(disk.pull_plug(), Place::LogWrite, "what it died of stays what it died of");
    drop(conn);
    let after = disk.wreck(&mut Rng::new(1)).images;
    let durable =
        |images: Images| images.into_iter().filter(|(name, _)| name != "a.db-shm").collect::<Vec<_>>();
    assert!(durable(before) == durable(after));
}

#[test]
fn a_disk_that_ignores_syncs_keeps_nothing_for_certain() {
    let folder = folder().unwrap();
    let disk = Disk::boot(folder.path(), &Images::new(), Moment::Unplanned, true).unwrap();
    let mut log = disk.opened("log", Use::Log).unwrap();
    log.write(0, b"data").unwrap();
    log.sync().unwrap();
    assert!((0..50).any(|seed| disk.wreck(&mut Rng::new(seed)).images.is_empty()));
}

/// Not only that it was written: that it is still there when the power is back.
#[test]
fn a_backup_that_was_acknowledged_lasts() {
    use outlast_provider::Provider;
    use outlast_sqlite::SqliteProvider;

    let folder = folder().unwrap();
    let disk = Disk::boot(folder.path(), &Images::new(), Moment::Unplanned, false).unwrap();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    tokio.block_on(async {
        let url = format!("sqlite:{}", folder.path().join("a.db").display());
        let store = SqliteProvider::new(&url, None).await.unwrap();
        for n in 0..20 {
            let (instance, name) = (format!("instance-{n}"), "notes".to_string());
            let item = outlast_model::WorkItem::QueueMessage { instance, name, data: "x".repeat(900) };
            store.enqueue_for_orchestrator(item, None).await.unwrap();
        }
        store.backup_to(folder.path().join("copy.db")).await.unwrap();
        disk.pull_plug();
    });
    for seed in 0..100 {
        let wreck = disk.wreck(&mut Rng::new(seed));
        let after = super::folder().unwrap();
        restore(&wreck.images, after.path()).unwrap();
        let stored = crate::power::stored::read(&after.path().join("copy.db"));
        assert_eq!(stored.map(|rows| rows.len()), Ok(20), "seed {seed}");
    }
}
