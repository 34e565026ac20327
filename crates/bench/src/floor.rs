//! The floor: stores the same rows with one connection and prepared statements, without searching a queue, checking a
//! lease, building JSON or answering a caller. The remaining time is the cost of SQLite and the disk.

pub(crate) mod postgres;

use rusqlite::{CachedStatement, Connection, params};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

/// Cycles per second, with 64 steps and with one step per transaction, below which the machine is slower than the one
/// the targets were set on.
pub(crate) const SOUND_64_PER_SECOND: f64 = 18_000.0;
pub(crate) const SOUND_1_PER_SECOND: f64 = 640.0;

/// Steps of one hello cycle.
pub(crate) const STEPS: usize = 7;

const SCHEMA: &str = "
CREATE TABLE instances (instance_id TEXT PRIMARY KEY, orchestration_name TEXT, orchestration_version TEXT,
    current_execution_id INTEGER, custom_status_version INTEGER DEFAULT 0, created_at INTEGER, updated_at INTEGER) WITHOUT ROWID;
CREATE TABLE executions (instance_id TEXT, execution_id INTEGER, status TEXT, output TEXT, started_at INTEGER,
    completed_at INTEGER, PRIMARY KEY (instance_id, execution_id)) WITHOUT ROWID;
CREATE TABLE history (instance_id TEXT, execution_id INTEGER, event_id INTEGER, event_type TEXT, event_data TEXT,
    PRIMARY KEY (instance_id, execution_id, event_id)) WITHOUT ROWID;
CREATE TABLE orchestrator_queue (id INTEGER PRIMARY KEY, instance_id TEXT, work_item TEXT, visible_at INTEGER,
    lock_token TEXT, locked_until INTEGER, attempt_count INTEGER DEFAULT 0);
CREATE TABLE instance_locks (instance_id TEXT PRIMARY KEY, lock_token TEXT, locked_until INTEGER) WITHOUT ROWID;
CREATE TABLE worker_queue (id INTEGER PRIMARY KEY, work_item TEXT, visible_at INTEGER, lock_token TEXT,
    locked_until INTEGER, attempt_count INTEGER DEFAULT 0, instance_id TEXT, execution_id INTEGER, activity_id INTEGER);
";

const START: &str = r#"{"StartOrchestration":{"instance":"hello-000000","orchestration":"Hello","input":"world","version":"1.0.0","parent_instance":null,"parent_id":null,"execution_id":1}}"#;
const ACTIVITY: &str = r#"{"ActivityExecute":{"instance":"hello-000000","execution_id":1,"id":2,"name":"Greet","input":"world"}}"#;
const DONE: &str =
    r#"{"ActivityCompleted":{"instance":"hello-000000","execution_id":1,"id":2,"result":"hello, world"}}"#;
const EVENT: &str = r#"{"event_id":2,"source_event_id":null,"instance_id":"hello-000000","execution_id":1,"timestamp_ms":1700000000000,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Greet","input":"world"}"#;
const TOKEN: &str = "lock_0123456789abcdef0123456789abcdef.hello-000000";

/// The writes that one transaction of the floor has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Batch {
    /// One step of as many hello cycles.
    Steps(usize),
    /// All steps of as many hello cycles.
    Hellos(usize),
}

/// Runs `cycles` hello cycles; returns the time per cycle and the number of completed cycles.
pub(crate) fn run(folder: &Path, cycles: usize, batch: Batch, synchronous: &str) -> (Duration, usize) {
    let conn = open(folder, synchronous);
    let begun = Instant::now();
    match batch {
        Batch::Steps(width) => {
            for wave in waves(cycles, width) {
                for step in 0..STEPS {
                    transaction(&conn, &wave, |instance| apply(&conn, step, instance));
                }
            }
        }
        Batch::Hellos(width) => {
            for wave in waves(cycles, width) {
                transaction(&conn, &wave, |instance| {
                    (0..STEPS).for_each(|step| apply(&conn, step, instance))
                });
            }
        }
    }
    let each = begun.elapsed() / u32::try_from(cycles).unwrap();
    let sql = "SELECT count(*) FROM executions WHERE status = 'Completed' AND output = 'hello, world'";
    let completed: i64 = conn.query_row(sql, [], |row| row.get(0)).unwrap();
    (each, usize::try_from(completed).unwrap())
}

fn open(folder: &Path, synchronous: &str) -> Connection {
    let path = folder.join("floor.db");
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(folder.join(format!("floor.db{suffix}")));
    }
    let conn = Connection::open(&path).unwrap();
    conn.set_prepared_statement_cache_capacity(64);
    conn.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA wal_autocheckpoint = 8192;
         PRAGMA cache_size = -8192;"
    ))
    .unwrap();
    conn.execute_batch(SCHEMA).unwrap();
    conn
}

/// Groups of instances that advance together: one step of all instances of a group is one transaction, as with
/// concurrent callers.
fn waves(instances: usize, width: usize) -> impl Iterator<Item = Range<usize>> {
    (0..instances).step_by(width).map(move |first| first..instances.min(first + width))
}

fn transaction(conn: &Connection, wave: &Range<usize>, step: impl Fn(usize)) {
    conn.prepare_cached("BEGIN IMMEDIATE").unwrap().execute([]).unwrap();
    wave.clone().for_each(step);
    conn.prepare_cached("COMMIT").unwrap().execute([]).unwrap();
}

fn id(instance: usize) -> String {
    format!("hello-{instance:06}")
}

fn number(of: usize) -> i64 {
    i64::try_from(of).unwrap()
}

/// The row numbers of an instance's two messages.
fn first(instance: usize) -> i64 {
    number(instance * 2 + 1)
}

fn second(instance: usize) -> i64 {
    first(instance) + 1
}

fn apply(conn: &Connection, step: usize, instance: usize) {
    let id = id(instance);
    match step {
        0 => enqueue(conn, first(instance), &id, START),
        1 => lock(conn, first(instance), &id),
        2 => {
            unlock(conn, first(instance), &id);
            run_one(conn, "INSERT INTO instances VALUES (?1, 'Hello', '1.0.0', 1, 0, 17, 17)", params![id]);
            run_one(conn, "INSERT INTO executions VALUES (?1, 1, 'Running', NULL, 17, NULL)", params![id]);
            event(conn, &id, 1);
            event(conn, &id, 2);
            add_activity(conn, instance, &id);
        }
        3 => lease_activity(conn, instance),
        4 => finish_activity(conn, instance, &id),
        5 => lock(conn, second(instance), &id),
        _ => {
            unlock(conn, second(instance), &id);
            run_one(conn, "UPDATE instances SET updated_at = 18 WHERE instance_id = ?1", params![id]);
            let sql = "UPDATE executions SET status = 'Completed', output = 'hello, world', completed_at = 18
                       WHERE instance_id = ?1 AND execution_id = 1";
            run_one(conn, sql, params![id]);
            event(conn, &id, 3);
            event(conn, &id, 4);
        }
    }
}

fn add_activity(conn: &Connection, row: usize, id: &str) {
    let sql = "INSERT INTO worker_queue (id, work_item, visible_at, instance_id, execution_id, activity_id)
               VALUES (?1, ?2, 17, ?3, 1, 2)";
    run_one(conn, sql, params![number(row + 1), ACTIVITY, id]);
}

fn lease_activity(conn: &Connection, row: usize) {
    let sql = "UPDATE worker_queue SET lock_token = ?2, locked_until = 17, attempt_count = 1 WHERE id = ?1";
    run_one(conn, sql, params![number(row + 1), TOKEN]);
}

fn finish_activity(conn: &Connection, row: usize, id: &str) {
    run_one(conn, "DELETE FROM worker_queue WHERE id = ?1", params![number(row + 1)]);
    enqueue(conn, second(row), id, DONE);
}

fn run_one(conn: &Connection, sql: &str, params: impl rusqlite::Params) {
    let mut statement: CachedStatement<'_> = conn.prepare_cached(sql).unwrap();
    assert_eq!(statement.execute(params).unwrap(), 1, "{sql}");
}

fn enqueue(conn: &Connection, row: i64, id: &str, item: &str) {
    let sql =
        "INSERT INTO orchestrator_queue (id, instance_id, work_item, visible_at) VALUES (?1, ?2, ?3, 17)";
    run_one(conn, sql, params![row, id, item]);
}

fn lock(conn: &Connection, row: i64, id: &str) {
    run_one(conn, "INSERT INTO instance_locks VALUES (?1, ?2, 17)", params![id, TOKEN]);
    let sql =
        "UPDATE orchestrator_queue SET lock_token = ?2, locked_until = 17, attempt_count = 1 WHERE id = ?1";
    run_one(conn, sql, params![row, TOKEN]);
}

fn unlock(conn: &Connection, row: i64, id: &str) {
    run_one(conn, "DELETE FROM instance_locks WHERE instance_id = ?1", params![id]);
    run_one(conn, "DELETE FROM orchestrator_queue WHERE id = ?1", params![row]);
}

fn event(conn: &Connection, id: &str, event_id: i64) {
    run_one(
        conn,
        "INSERT INTO history VALUES (?1, 1, ?2, 'ActivityScheduled', ?3)",
        params![id, event_id, EVENT],
    );
}
