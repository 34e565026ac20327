//! Statements that find turns, and the condition of a run-ahead.

use super::{rows_of, store_with};
use crate::sql;

/// Messages and leases around time 100.
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
    INSERT INTO orchestrator_queue (id, instance_id, work_item, visible_at, available_at, lock_token, ready)
    VALUES (1, 'known', '', 50, 50, NULL, 1), (2, 'rowless', '', 40, 40, NULL, 1), (3, 'rowless', '', 60, 60, NULL, 1),
           (4, 'leased', '', 10, 10, NULL, 1), (5, 'leased', '', 10, 10, x'01', 0),
           (6, 'over', '', 30, 30, NULL, 0), (7, 'over', '', 20, 20, x'02', 0), (8, 'over', '', 15, 15, x'02', 1),
           (9, 'over and rowless', '', 25, 25, x'03', 1), (10, 'over and new', '', 26, 26, x'04', 0),
           (11, 'late', '', 101, 101, NULL, 1), (12, 'due', '', 100, 100, NULL, 1);";

#[test]
fn candidate_turns_are_instances_without_a_live_lease_in_order() {
    // Instance, time and id of its first message; 1 if there is no other, a history without a row, changed keys.
    let found = rows_of(&store_with(TURNS), sql::CANDIDATE_TURNS, [100], &[0, 1, 2, 14, 15, 16]);
    let expected = [
        "over 15 8 2 0 0",
        "over and rowless 25 9 1 1 1",
        "rowless 40 2 2 1 0",
        "known 50 1 1 0 1",
        "rowless 60 3 2 1 0",
        "due 100 12 1 0 0",
    ];
    assert_eq!(found, expected);
}

#[test]
fn lease_is_expired_from_its_end_on() {
    let found = rows_of(&store_with(TURNS), sql::EXPIRED_LEASES, [100], &[0]);
    assert_eq!(found, ["over", "over and new", "over and rowless"]);
}

#[test]
fn run_ahead_is_allowed_only_without_lease_due_message_end_or_newer_event() {
    let db = store_with(
        "INSERT INTO instances (instance_id, orchestration_name, current_execution_id, created_at, updated_at)
         SELECT value, 'O', 2, 1, 1
         FROM json_each('[\"quiet\", \"changed\", \"leased\", \"due\", \"later\", \"ended\", \"raised\"]');
         INSERT INTO executions (instance_id, execution_id, status, last_event_id, started_at, updated_at)
         SELECT instance_id, 2, iif(instance_id = 'ended', 'Completed', 'Running'), 5, 1, 1 FROM instances;
         INSERT INTO executions (instance_id, execution_id, last_event_id, started_at, updated_at)
         SELECT instance_id, 1, 5, 1, 1 FROM instances;
         UPDATE instances SET current_execution_id = 3 WHERE instance_id = 'raised';
         INSERT INTO kv_delta (instance_id, key) VALUES ('changed', 'k');
         INSERT INTO instance_locks (instance_id, lock_token, locked_until, locked_at) VALUES ('leased', x'01', 1, 1);
         INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, available_at)
         VALUES ('due', '', 100, 1), ('later', '', 101, 1);",
    );
    // The row says whether the execution changed keys.
    let can_run_ahead = |instance: &str, execution, last| {
        rows_of(&db, sql::CAN_RUN_AHEAD, (instance, execution, last, 100), &[0])
    };
    assert_eq!(can_run_ahead("quiet", 2, 5), ["0"]);
    assert_eq!(can_run_ahead("later", 2, 5), ["0"]);
    assert_eq!(can_run_ahead("changed", 2, 5), ["1"]);
    for refused in ["leased", "due", "ended", "raised", "nobody"] {
        assert_eq!(can_run_ahead(refused, 2, 5), [""; 0], "{refused}");
    }
    for (execution, last) in [(1, 5), (2, 4), (2, 6)] {
        assert_eq!(can_run_ahead("quiet", execution, last), [""; 0], "{execution} {last}");
    }
}
