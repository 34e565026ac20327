//! Statements that count the rows of the queues.

use super::{rows_of, store_with};
use crate::sql;

#[test]
fn rows_without_a_live_lease_are_counted_as_waiting() {
    let db = store_with(
        "INSERT INTO instance_locks (instance_id, lock_token, locked_until, locked_at)
         VALUES ('leased', x'01', 101, 1), ('over', x'02', 100, 1);
         INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, available_at, lock_token)
         VALUES ('leased', 'held', 1, 1, x'01'), ('leased', 'held', 1, 1, x'01'),
                ('leased', 'new', 1, 1, NULL), ('leased', 'of a lease before', 1, 1, x'03'),
                ('over', 'held no more', 1, 1, x'02'), ('free', 'of nobody''s lease', 1, 1, x'01'),
                ('free', 'new', 1, 1, NULL);
         INSERT INTO worker_queue (work_item, visible_at, lock_token, locked_until, instance_id, execution_id, activity_id)
         VALUES ('held', 1, x'01', 101, 'i', 1, 1), ('over', 1, x'01', 100, 'i', 1, 2), ('free', 1, NULL, NULL, 'i', 1, 3),
                ('free again', 1, NULL, 101, 'i', 1, 4);",
    );
    assert_eq!(rows_of(&db, sql::QUEUE_DEPTHS, [100], &[0, 1]), ["5 3"]);
    let backlogs = |now: i64| rows_of(&db, sql::QUEUE_BACKLOGS, [now], &[0, 1, 2, 3, 4, 5]);
    assert_eq!(backlogs(100), ["7 2 0 4 1 0"], "all, leased, later");
    // 'given back' is delayed; 'late' was given back with a delay that has ended.
    let later = "INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, available_at, lock_token)
                 VALUES ('free', 'later', 101, 101, NULL), ('free', 'now', 100, 100, NULL);
                 INSERT INTO worker_queue (work_item, visible_at, delayed, instance_id, execution_id, activity_id)
                 VALUES ('given back', 101, 1, 'i', 1, 5), ('late', 100, 1, 'i', 1, 6);";
    db.conn.execute_batch(later).unwrap();
    assert_eq!(backlogs(100), ["9 2 1 6 1 1"]);
    assert_eq!(rows_of(&db, sql::QUEUE_DEPTHS, [100], &[0, 1]), ["7 5"], "9 - 2 and 6 - 1");
}
