//! Statements that find the next time at which an item becomes available.

use super::{rows_of, store_with};
use crate::sql;

#[test]
fn next_time_is_the_first_after_now() {
    // Rows that are neither delayed nor leased do not count.
    let db = store_with(
        "INSERT INTO worker_queue
             (visible_at, delayed, lock_token, locked_until, work_item, instance_id, execution_id, activity_id)
         VALUES (98, 0, NULL, 98, '', 'i', 1, 1), (99, 1, x'01', 99, '', 'i', 1, 2), (100, 1, x'01', 100, '', 'i', 1, 3),
                (101, 0, NULL, 101, '', 'i', 1, 4), (102, 1, x'01', 102, '', 'i', 1, 5), (103, 1, x'01', 103, '', 'i', 1, 6),
                (104, 0, NULL, 104, '', 'i', 1, 7);
         INSERT INTO sessions (session_id, worker_id, locked_until, last_activity_at)
         VALUES ('a', 'w', 99, 101), ('b', 'w', 100, 101), ('c', 'w', 102, 101), ('d', 'w', 103, 101);",
    );
    for statement in [sql::NEXT_DELAYED_ACTIVITY, sql::NEXT_ACTIVITY_LEASE_END, sql::NEXT_SESSION_END] {
        let next = |now: i64| rows_of(&db, statement, [now], &[0]);
        let found = [i64::MIN, 98, 99, 100, 101, 102, 103].map(|now| next(now).concat());
        assert_eq!(found, ["99", "99", "100", "102", "102", "103", "-"], "{statement}");
    }
}
