//! Statements about activities and their sessions.

use super::{rows_of, store_with};
use crate::sql;

#[test]
fn expired_activities_have_an_expired_lease_and_a_session_of_the_owner() {
    let db = store_with(
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
    let expired = |owner: Option<&str>| {
        let mut ids = db.all(sql::EXPIRED_ACTIVITIES, (100, owner), |row| row.get::<_, i64>(0)).unwrap();
        ids.sort_unstable();
        ids
    };
    assert_eq!(expired(None), [1, 4], "a caller without an owner gets no activity with a session");
    assert_eq!(expired(Some("me")), [1, 4, 7, 8, 9]);
}

#[test]
fn session_is_deleted_after_its_lease_and_without_activities() {
    let db = store_with(
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

#[test]
fn each_tag_of_free_activities_is_listed_once() {
    let db = store_with(
        "INSERT INTO worker_queue (work_item, visible_at, lock_token, instance_id, execution_id, activity_id, tag)
         VALUES ('', 1, NULL, 'i', 1, 1, 'b'), ('', 1, NULL, 'i', 1, 2, 'b'), ('', 1, NULL, 'i', 1, 3, 'd'),
                ('', 1, NULL, 'i', 1, 4, NULL), ('', 1, x'01', 'i', 1, 5, ''), ('', 1, x'01', 'i', 1, 6, 'a'),
                ('', 1, x'01', 'i', 1, 7, 'c'), ('', 1, x'01', 'i', 1, 8, 'd'), ('', 1, x'01', 'i', 1, 9, 'e');",
    );
    assert_eq!(rows_of(&db, sql::WAITING_TAGS, [], &[0]), ["b", "d"]);
    db.conn.execute("UPDATE worker_queue SET lock_token = NULL WHERE tag = ''", []).unwrap();
    assert_eq!(rows_of(&db, sql::WAITING_TAGS, [], &[0]), ["b", "d", ""]);
}

#[test]
fn activity_is_held_by_its_token_until_its_lease_ends() {
    let db = store_with(
        "INSERT INTO worker_queue (id, work_item, visible_at, lock_token, locked_until, instance_id, execution_id, activity_id)
         VALUES (1, '', 1, x'01', 101, 'i', 1, 1);",
    );
    let holds = |id: i64, token: u8, now: i64| {
        !rows_of(&db, sql::HOLDS_ACTIVITY, (id, [token].as_slice(), now), &[0]).is_empty()
    };
    assert!(holds(1, 1, 100));
    assert!(!holds(1, 1, 101), "the lease has ended");
    assert!(!holds(1, 2, 100), "another token");
    assert!(!holds(2, 1, 100), "another activity");
}
