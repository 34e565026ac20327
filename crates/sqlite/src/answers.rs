//! What statements answer over rows that a test has put there: conditions whose loss other layers would make good, at the
//! price of work, and times around the moment at which they change their meaning.

use crate::db::Db;
use crate::delete::candidates_after;
use crate::plans::db;
use crate::sql;
use outlast_provider::InstanceFilter;
use rusqlite::types::Value;

/// A store with these rows.
fn with(rows: &str) -> Db {
    let db = db();
    db.conn.execute_batch(rows).unwrap();
    db
}

/// All columns of an answer to one time, as text.
fn answer(db: &Db, sql: &str, columns: &[usize]) -> Vec<String> {
    let texts = db.all(sql, [100], |row| {
        let cell = |column: &usize| {
            Ok(match row.get::<_, Value>(*column)? {
                Value::Text(text) => text,
                Value::Integer(number) => number.to_string(),
                other => format!("{other:?}"),
            })
        };
        columns.iter().map(cell).collect::<rusqlite::Result<Vec<_>>>()
    });
    texts.unwrap().iter().map(|cells| cells.join(" ")).collect()
}

#[test]
fn bulk_work_is_offered_what_the_filter_wants_and_nothing_else() {
    let db = with(
        "INSERT INTO instances (instance_id, orchestration_name, current_execution_id, parent_instance_id, created_at, updated_at)
         VALUES ('completed', 'O', 2, NULL, 1, 1), ('failed', 'O', 1, NULL, 1, 1), ('running', 'O', 1, NULL, 1, 1),
                ('child', 'O', 1, 'completed', 1, 1);
         INSERT INTO executions (instance_id, execution_id, status, started_at, completed_at, updated_at)
         VALUES ('completed', 1, 'ContinuedAsNew', 1, 10, 1), ('completed', 2, 'Completed', 1, 20, 1),
                ('failed', 1, 'Failed', 1, 20, 1), ('running', 1, 'Running', 1, NULL, 1),
                ('child', 1, 'Completed', 1, 20, 1);",
    );
    let all = ["completed", "failed", "running", "child"];
    let offered = |after, completed_before, finished_roots, limit| {
        let ids = Some(all.map(String::from).to_vec());
        let [named, unnamed] = [ids, None].map(|instance_ids| {
            let filter = InstanceFilter { instance_ids, completed_before, limit: None };
            let offered = candidates_after(&db, after, &filter, finished_roots, limit).unwrap();
            offered.into_iter().map(|(_, id)| id).collect::<Vec<_>>()
        });
        assert_eq!(named, unnamed, "by their ids, or in their order");
        named
    };
    assert_eq!(offered(0, None, false, 9), all);
    assert_eq!(offered(0, None, true, 9), ["completed", "failed"]);
    assert_eq!(offered(1, None, true, 9), ["failed"]);
    assert_eq!(offered(0, None, true, 1), ["completed"]);
    // The end of the current execution counts, and it must lie before.
    assert_eq!(offered(0, Some(20), true, 9), [""; 0]);
    assert_eq!(offered(0, Some(20), false, 9), [""; 0]);
    assert_eq!(offered(0, Some(21), true, 9), ["completed", "failed"]);
    assert_eq!(offered(0, Some(21), false, 9), ["completed", "failed", "child"]);
}

/// Messages and leases at time 100: free ones, and those whose lease ends then.
const TURNS: &str = "
    INSERT INTO instances (instance_id, orchestration_name, current_execution_id, created_at, updated_at)
    VALUES ('known', 'O', 1, 1, 1), ('over', 'O', 1, 1, 1);
    INSERT INTO executions (instance_id, execution_id, started_at, updated_at)
    VALUES ('known', 1, 1, 1), ('over', 1, 1, 1);
    INSERT INTO history (instance_id, execution_id, event_id, event_type, event_data)
    VALUES ('known', 1, 1, '', ''), ('rowless', 1, 1, '', ''), ('over and rowless', 1, 1, '', '');
    INSERT INTO kv_delta (instance_id, key) VALUES ('known', 'k'), ('over and rowless', 'k');
    INSERT INTO instance_locks (instance_id, lock_token, locked_until, locked_at)
    VALUES ('leased', x'01', 101, 1), ('over', x'02', 100, 1), ('over and rowless', x'03', 99, 1), ('over and new', x'04', 99, 1);
    INSERT INTO orchestrator_queue (id, instance_id, work_item, visible_at, available_at, lock_token)
    VALUES (1, 'known', '', 50, 50, NULL), (2, 'rowless', '', 40, 40, NULL), (3, 'rowless', '', 60, 60, NULL),
           (4, 'leased', '', 10, 10, NULL), (5, 'leased', '', 10, 10, x'01'),
           (6, 'over', '', 30, 30, NULL), (7, 'over', '', 20, 20, x'02'), (8, 'over', '', 15, 15, x'02'),
           (9, 'over and rowless', '', 25, 25, x'03'), (10, 'over and new', '', 26, 26, x'04'),
           (11, 'late', '', 101, 101, NULL), (12, 'due', '', 100, 100, NULL);";

#[test]
fn free_messages_are_offered_with_what_is_known_of_their_instances() {
    // Instance, place in line, message; how many there are, a history without a row, changed keys.
    let offered = answer(&with(TURNS), sql::CANDIDATE_TURNS, &[0, 1, 2, 14, 15, 16]);
    let expected = [
        "over 30 6 3 0 0",
        "rowless 40 2 2 1 0",
        "known 50 1 1 0 1",
        "rowless 60 3 2 1 0",
        "due 100 12 1 0 0",
    ];
    assert_eq!(offered, expected);
}

#[test]
fn leases_that_are_over_are_offered_with_what_is_known_of_their_instances() {
    let offered = answer(&with(TURNS), sql::EXPIRED_TURNS, &[0, 1, 2, 14, 15, 16]);
    let expected = ["over 15 8 3 0 0", "over and rowless 25 9 1 1 1", "over and new 26 10 1 0 0"];
    assert_eq!(offered, expected);
}

#[test]
fn only_a_lease_can_be_over() {
    let db = with(
        "INSERT INTO sessions (session_id, worker_id, locked_until, last_activity_at)
         VALUES ('theirs', 'other', 101, 1), ('free', 'other', 100, 1), ('mine', 'me', 101, 1);
         INSERT INTO worker_queue
             (id, work_item, visible_at, lock_token, locked_until, instance_id, execution_id, activity_id, session_id)
         VALUES (1, '', 1, x'01', 100, 'i', 1, 1, NULL), (2, '', 1, x'01', 101, 'i', 1, 2, NULL),
                (3, '', 1, NULL, 50, 'i', 1, 3, NULL), (4, '', 100, x'01', 99, 'i', 1, 4, NULL),
                (5, '', 101, x'01', 99, 'i', 1, 5, NULL), (6, '', 1, x'01', 99, 'i', 1, 6, 'theirs'),
                (7, '', 1, x'01', 99, 'i', 1, 7, 'free'), (8, '', 1, x'01', 99, 'i', 1, 8, 'mine'),
                (9, '', 1, x'01', 99, 'i', 1, 9, 'nobody''s');",
    );
    let over = |owner: Option<&str>| {
        let mut over = db.all(sql::EXPIRED_WORK, (100, owner), |row| row.get::<_, i64>(0)).unwrap();
        over.sort_unstable();
        over
    };
    assert_eq!(over(None), [1, 4], "who has no session gets none");
    assert_eq!(over(Some("me")), [1, 4, 7, 8, 9]);
}

#[test]
fn a_file_is_known_by_what_others_made_first() {
    let first = |made: &str| {
        let conn = rusqlite::Connection::open_in_memory().unwrap();
        conn.execute_batch(made).unwrap();
        let name = conn.query_row(sql::FIRST_SCHEMA_NAME, [], |row| row.get::<_, String>(0));
        rusqlite::OptionalExtension::optional(name).unwrap()
    };
    assert_eq!(first(""), None);
    // A table of SQLite stays when all others are gone.
    assert_eq!(first("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT); DROP TABLE t"), None);
    assert_eq!(first("CREATE TABLE b (x); CREATE TABLE a (x)").as_deref(), Some("b"));
    assert_eq!(first("CREATE TABLE b (x); CREATE TABLE instances (x)").as_deref(), Some("instances"));
    assert_eq!(
        first("CREATE TABLE b (x); CREATE TABLE _sqlx_migrations (x)").as_deref(),
        Some("_sqlx_migrations")
    );
    assert_eq!(first("CREATE TABLE sqlite (x)").as_deref(), Some("sqlite"));
}

#[test]
fn a_session_is_cleaned_up_after_its_lease_and_without_work() {
    let db = with(
        "INSERT INTO sessions (session_id, worker_id, locked_until, last_activity_at)
         VALUES ('over', 'w', 99, 1), ('ending', 'w', 100, 1), ('busy', 'w', 99, 1);
         INSERT INTO worker_queue (id, work_item, visible_at, instance_id, execution_id, activity_id, session_id)
         VALUES (1, '', 1, 'i', 1, 1, 'busy');",
    );
    assert_eq!(db.run(sql::CLEANUP_SESSIONS, [100]).unwrap(), 1);
    let left =
        db.all("SELECT session_id FROM sessions ORDER BY session_id", [], |row| row.get::<_, String>(0));
    assert_eq!(left.unwrap(), ["busy", "ending"]);
}
