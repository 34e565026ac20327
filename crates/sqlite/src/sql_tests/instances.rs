//! Statements about instances and their executions.

use super::{rows_of, store_with};
use crate::delete::{BulkPage, candidates_after};
use crate::sql;
use outlast_provider::InstanceFilter;

#[test]
fn bulk_candidates_are_the_instances_that_match_the_filter() {
    let db = store_with(
        "INSERT INTO instances (instance_id, orchestration_name, current_execution_id, parent_instance_id, created_at, updated_at)
         VALUES ('completed', 'O', 2, NULL, 1, 1), ('failed', 'O', 1, NULL, 1, 1), ('running', 'O', 1, NULL, 1, 1),
                ('child', 'O', 1, 'completed', 1, 1);
         INSERT INTO executions (instance_id, execution_id, status, started_at, completed_at, updated_at)
         VALUES ('completed', 1, 'ContinuedAsNew', 1, 10, 1), ('completed', 2, 'Completed', 1, 20, 1),
                ('failed', 1, 'Failed', 1, 20, 1), ('running', 1, 'Running', 1, NULL, 1),
                ('child', 1, 'Completed', 1, 20, 1);",
    );
    let all = ["completed", "failed", "running", "child"];
    let candidates = |after, completed_before, finished_roots, limit| {
        let ids = Some(all.map(String::from).to_vec());
        let [named, unnamed] = [ids, None].map(|instance_ids| {
            let filter = InstanceFilter { instance_ids, completed_before, limit: None };
            let page = BulkPage { after, filter, finished_roots, limit };
            let found = candidates_after(&db, &page).unwrap();
            found.into_iter().map(|(_, id)| id).collect::<Vec<_>>()
        });
        assert_eq!(named, unnamed, "the filter with ids and the filter without ids");
        named
    };
    assert_eq!(candidates(0, None, false, 9), all);
    assert_eq!(candidates(0, None, true, 9), ["completed", "failed"]);
    assert_eq!(candidates(1, None, true, 9), ["failed"]);
    assert_eq!(candidates(0, None, true, 1), ["completed"]);
    // `completed_before` is compared with the end of the current execution, and is exclusive.
    assert_eq!(candidates(0, Some(20), true, 9), [""; 0]);
    assert_eq!(candidates(0, Some(20), false, 9), [""; 0]);
    assert_eq!(candidates(0, Some(21), true, 9), ["completed", "failed"]);
    assert_eq!(candidates(0, Some(21), false, 9), ["completed", "failed", "child"]);
}

/// Two instances in their second execution, one in its first, and one without executions.
const INSTANCES: &str = "
    INSERT INTO instances (instance_id, orchestration_name, current_execution_id, created_at, updated_at)
    VALUES ('ended', 'O', 2, 1, 5), ('running', 'O', 2, 1, 15), ('first', 'O', 1, 1, 5), ('new', 'O', 1, 1, 5);
    INSERT INTO executions (instance_id, execution_id, status, started_at, updated_at)
    VALUES ('ended', 1, 'Running', 1, 9), ('ended', 2, 'Completed', 1, 7),
           ('running', 1, 'Completed', 1, 9), ('running', 2, 'Running', 1, 14), ('first', 1, 'Running', 1, 20);";

#[test]
fn status_of_an_instance_is_that_of_its_current_execution() {
    let db = store_with(INSTANCES);
    let running = |instance: &str| rows_of(&db, sql::IS_RUNNING, [instance], &[0]).len();
    assert_eq!(["ended", "running", "first", "new", "nobody"].map(running), [0, 1, 1, 0, 0]);
    let listed = |before: i64, after: i64, status: Option<&str>| {
        rows_of(&db, sql::LIST_INSTANCE_IDS, (before, after, status), &[0])
    };
    assert_eq!(listed(i64::MAX, 0, None), ["new", "first", "running", "ended"]);
    assert_eq!(listed(3, 0, None), ["running", "ended"]);
    assert_eq!(listed(4, 1, None), ["first", "running"]);
    assert_eq!(listed(i64::MAX, 0, Some("Running")), ["first", "running"]);
    assert_eq!(listed(3, 0, Some("Running")), ["running"]);
    assert_eq!(listed(i64::MAX, 0, Some("Completed")), ["ended"]);

    // The partial index also holds the first execution of 'ended', which still has the status Running.
    assert_eq!(rows_of(&db, sql::COUNT_ATTENTION, ("Running", 9), &[0]), ["3"]);
    assert_eq!(rows_of(&db, sql::COUNT_ATTENTION, ("Running", 2), &[0]), ["2"]);
    assert_eq!(rows_of(&db, sql::COUNT_RUNNING, [], &[0]), ["2"]);
    assert_eq!(rows_of(&db, sql::LIST_ATTENTION_IDS, ["Running"], &[0]), ["first", "running"]);
    assert_eq!(rows_of(&db, sql::LIST_ATTENTION_IDS, ["Failed"], &[0]), [""; 0]);
    let page = |before: i64, after: i64, limit: i64| {
        let (no_text, no_time) = (None::<&str>, None::<i64>);
        let wanted = (before, "Running", no_text, no_text, no_text, no_time, no_time, limit, after);
        rows_of(&db, sql::LIST_ATTENTION, wanted, &[0, 1, 5])
    };
    assert_eq!(page(i64::MAX, 0, 9), ["3 first Running", "2 running Running"]);
    assert_eq!(page(i64::MAX, 0, 1), ["3 first Running"]);
    assert_eq!(page(3, 0, 9), ["2 running Running"]);
    assert_eq!(page(i64::MAX, 2, 9), ["3 first Running"]);

    // A window ends at the next older instance.
    let end = |before: i64, instances: i64| rows_of(&db, sql::WINDOW_END, (before, instances), &[0]);
    assert_eq!(
        (end(i64::MAX, 1), end(3, 1), end(i64::MAX, 4)),
        (vec!["3".to_string()], vec!["1".to_string()], vec![])
    );
}

#[test]
fn pruning_keeps_the_latest_time_of_the_instance() {
    let db = store_with(INSTANCES);
    let kept = |instance: &str| {
        assert_eq!(db.run(sql::PRUNE_UPDATED_AT, [instance]).unwrap(), 1);
        let all = "SELECT updated_at FROM instances ORDER BY rowid";
        rows_of(&db, all, [], &[0]).join(" ")
    };
    assert_eq!(kept("ended"), "9 15 5 5", "from an earlier execution");
    assert_eq!(kept("running"), "9 15 5 5", "its own time");
    assert_eq!(kept("first"), "9 15 20 5", "from its execution");
    assert_eq!(kept("new"), "9 15 20 5", "its own time, the only one");
}

#[test]
fn current_execution_id_only_increases() {
    let db = store_with(INSTANCES);
    let raised = |to: i64| {
        let changed = db.run(sql::RAISE_EXECUTION, ("ended", to, 50)).unwrap();
        let all = "SELECT current_execution_id, updated_at FROM instances ORDER BY rowid";
        (changed, rows_of(&db, all, [], &[0, 1]).join(", "))
    };
    assert_eq!(raised(1), (0, "2 5, 2 15, 1 5, 1 5".to_string()));
    assert_eq!(raised(2), (0, "2 5, 2 15, 1 5, 1 5".to_string()));
    assert_eq!(raised(3), (1, "3 50, 2 15, 1 5, 1 5".to_string()));
}

#[test]
fn instance_id_is_taken_by_a_row_an_execution_or_a_first_history() {
    let db = store_with(
        "INSERT INTO instances (instance_id, orchestration_name, current_execution_id, created_at, updated_at)
         VALUES ('row', 'O', 1, 1, 1);
         INSERT INTO executions (instance_id, execution_id, started_at, updated_at) VALUES ('execution', 2, 1, 1);
         INSERT INTO history (instance_id, execution_id, event_id, event_type, event_data)
         VALUES ('history', 1, 1, '', ''), ('later history', 2, 1, '', '');",
    );
    let taken = |instance: &str| rows_of(&db, sql::IS_TAKEN, [instance], &[0]).concat();
    assert_eq!(["row", "execution", "history"].map(taken), ["1"; 3]);
    assert_eq!(["later history", "nobody"].map(taken), ["0"; 2]);
}
