//! Statements that read outlines, sizes and ends of histories.

use super::{rows_of, store_with};
use crate::sql;

/// One history among others whose event ids begin before and end after its own, all of type OrchestrationCompleted.
const HISTORIES: &str = "
    INSERT INTO history (instance_id, execution_id, event_id, event_type, event_data)
    VALUES ('i', 2, 2, 'OrchestrationStarted', 'first'), ('i', 2, 3, 'TimerCreated', 'left out'),
           ('i', 2, 4, 'OrchestrationContinuedAsNew', 'end'), ('i', 2, 5, 'TimerFired', 'left out'),
           ('i', 2, 6, 'OrchestrationCompleted', 'left out'), ('i', 2, 7, 'OrchestrationFailed', 'last end'),
           ('i', 2, 8, 'TimerFired', 'left out'), ('i', 2, 9, 'TimerFired', 'lást');
    INSERT INTO history (instance_id, execution_id, event_id, event_type, event_data)
    SELECT other.column1, other.column2, id.value, 'OrchestrationCompleted', 'another''s'
    FROM (VALUES ('i', 1), ('i', 3), ('another', 2)) AS other, json_each('[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]') AS id;
    INSERT INTO instances (instance_id, orchestration_name, current_execution_id, created_at, updated_at)
    VALUES ('i', 'O', 2, 1, 1), ('another', 'O', 2, 1, 1), ('new', 'O', 1, 1, 1);
    INSERT INTO executions (instance_id, execution_id, status, started_at, updated_at, last_event_id)
    VALUES ('i', 1, 'ContinuedAsNew', 1, 1, 6), ('i', 2, 'Failed', 1, 1, 6), ('another', 2, 'Failed', 1, 1, 6);";

#[test]
fn outline_holds_the_first_event_the_terminal_events_and_the_last() {
    let db = store_with(HISTORIES);
    let outline = |instance: &str, execution, largest: i64| {
        rows_of(&db, sql::HISTORY_OUTLINE, (instance, execution, largest), &[0]).join(", ")
    };
    assert_eq!(outline("i", 2, 8), "first, end, last end, lást");
    // The limit counts bytes, and is inclusive.
    assert_eq!(outline("i", 2, 7), "first, end, -, lást");
    assert_eq!(outline("i", 2, 5), "first, end, -, lást");
    assert_eq!(outline("i", 2, 4), "-, end, -, -");
    assert_eq!(outline("another", 2, 99), "another's, another's");
    assert_eq!(outline("another", 1, 99), "");
}

#[test]
fn history_size_counts_one_execution_only() {
    let db = store_with(HISTORIES);
    let key = |execution: i64| ("i", execution);
    assert_eq!(rows_of(&db, sql::HISTORY_SIZE, key(2), &[0, 1]), ["8 53"]);
    assert_eq!(rows_of(&db, sql::HISTORY_SIZE, key(4), &[0, 1]), ["0 0"]);
    let stats = |instance: &str| rows_of(&db, sql::INSTANCE_STATS, [instance], &[0, 1]);
    assert_eq!(["i", "new", "nobody"].map(stats), [vec!["8 53"], vec!["0 0"], vec![]]);
    assert_eq!(rows_of(&db, sql::LAST_EVENT, key(2), &[0]), ["9"]);
    assert_eq!(rows_of(&db, sql::LAST_EVENT, key(4), &[0]), ["-"]);
}

#[test]
fn last_event_id_of_one_execution_only_increases() {
    let db = store_with(HISTORIES);
    let raised = |to: i64| {
        assert_eq!(db.run(sql::RAISE_LAST_EVENT, ("i", 2, to)).unwrap(), 1);
        let all = "SELECT instance_id, execution_id, last_event_id FROM executions ORDER BY 1, 2";
        rows_of(&db, all, [], &[0, 1, 2])
    };
    assert_eq!(raised(5), ["another 2 6", "i 1 6", "i 2 6"]);
    assert_eq!(raised(7), ["another 2 6", "i 1 6", "i 2 7"]);
}

#[test]
fn failure_is_read_from_the_terminal_event_id_or_else_the_first_terminal_event() {
    let db = store_with(HISTORIES);
    // Execution, status, output, the event, custom status and its version.
    let outcome = || rows_of(&db, sql::OUTCOME, ["i"], &[0, 1, 2, 3, 4, 5]);
    assert_eq!(outcome(), ["2 Failed - end - 0"]);
    db.conn.execute("UPDATE executions SET terminal_event_id = 7", []).unwrap();
    assert_eq!(outcome(), ["2 Failed - last end - 0"]);
    db.conn.execute("UPDATE executions SET status = 'Completed', output = 'done'", []).unwrap();
    assert_eq!(outcome(), ["2 Completed done - - 0"]);
}
