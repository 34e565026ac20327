//! How much waits.

use super::{answer, with};
use crate::sql;

#[test]
fn what_no_lease_holds_waits() {
    let db = with(
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
    assert_eq!(answer(&db, sql::QUEUE_DEPTHS, [100], &[0, 1]), ["5 3"]);
}
