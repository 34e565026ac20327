//! Query plans: no statement of a hot path reads a whole table, or sorts.

use crate::db::Db;
use crate::url::Location;
use crate::{SqliteOptions, open, sql};
use rusqlite::StatementStatus;
use std::sync::Arc;

/// Statements that may read a whole table or sort, with the reason.
const ALLOWED: &[(&str, &str)] = &[
    ("count_events", "management: a total"),
    ("count_executions", "management: a total"),
    ("count_held", "gauges: counts the held instances and their messages"),
    ("count_late", "management: instance_locks holds one row per running turn"),
    ("count_orphans", "management: whole tables, for `outlast doctor`"),
    ("delete_orphan_activities", "management: whole tables, for `outlast doctor --fix`"),
    ("delete_orphan_changes", "management: whole tables, for `outlast doctor --fix`"),
    ("delete_orphan_texts", "management: whole tables, for `outlast doctor --fix`"),
    ("delete_orphan_values", "management: whole tables, for `outlast doctor --fix`"),
    ("dump_messages", "management: ten rows in the order of the table"),
    ("dump_activities", "management: ten rows in the order of the table"),
    ("end_turns_of", "once per dead process; instance_locks holds one row per running turn"),
    (
        "expired_leases",
        "instance_locks holds one row per running turn, and `next_lease_end` spares most reads",
    ),
    ("export_instance", "management: sorts the rows of one instance"),
    ("holds_no_lease", "once per closing; instance_locks holds one row per running turn"),
    ("first_schema_name", "once per opening, over the schema"),
    ("instance_tree", "management: sorts the members of one tree"),
    ("list_attention", "management: sorts the running or failed instances, if they are few"),
    ("list_attention_ids", "management: sorts the running or failed instances, if they are few"),
    ("list_dead_letters", "management: a page from the end of the table"),
    ("next_lease_end", "instance_locks holds one row per running turn"),
    ("oldest_due", "gauges: reads the activities, and instance_locks, which holds one row per running turn"),
    ("paused_orchestrations", "one row per paused orchestration; a runtime reads them once per second"),
    ("pending_activities", "management: sorts a page of one instance's activities"),
    ("pending_messages", "management: sorts the messages of one instance"),
    ("queue_backlogs", "gauges: counts the queues"),
    ("queue_depths", "management: counts the queues"),
    ("read_ledger", "once per opening, over the migrations"),
    ("row_counts", "management: totals"),
    ("status_counts", "management: a total"),
    ("sweep_nodes", "once per minute and node; nodes holds one row per node"),
    ("tag_depths", "management: counts the activities"),
];

/// A store in memory, with an up-to-date schema.
pub(crate) fn db() -> Db {
    open::writer(&Location::Memory, &SqliteOptions::default(), &Arc::default()).unwrap()
}

fn plan(db: &Db, sql: &str) -> Vec<String> {
    // The statement may begin with a comment line.
    let statement = db.conn.prepare(&format!("EXPLAIN QUERY PLAN\n{sql}"));
    let mut statement = statement.unwrap_or_else(|error| panic!("{error}: {sql}"));
    // Parameters stay NULL.
    statement.raw_query().mapped(|row| row.get(3)).map(Result::unwrap).collect()
}

/// Whether a step of a plan reads a whole table, or sorts. The rows of a subquery do not count as a table.
fn is_costly(step: &str) -> bool {
    const NO_TABLES: &[&str] = &["SCAN CONSTANT ROW", "SCAN tags", "SCAN wanted"];
    // A search without a condition in parentheses reads the whole index.
    let whole_table = step.starts_with("SCAN ") || (step.starts_with("SEARCH ") && !step.contains('('));
    let is_subquery =
        NO_TABLES.contains(&step) || step.starts_with("SCAN (subquery") || step.ends_with("VALUES CLAUSE");
    (whole_table && !is_subquery) || step.contains("TEMP B-TREE")
}

#[test]
fn hot_statements_use_an_index() {
    let db = db();
    let mut costly = Vec::new();
    for (name, sql) in sql::ALL {
        let plan = plan(&db, sql);
        if plan.iter().any(|step| is_costly(step)) {
            costly.push((*name, plan.join("\n    ")));
        }
    }
    for (name, plan) in &costly {
        assert!(ALLOWED.iter().any(|(allowed, _)| allowed == name), "{name} is costly:\n    {plan}");
    }
    for (name, why) in ALLOWED {
        assert!(costly.iter().any(|(found, _)| found == name), "{name} is not costly any more ({why})");
    }
}

#[test]
fn costly_plans_are_recognised() {
    let db = db();
    for sql in [
        "SELECT 1 FROM worker_queue WHERE attempt_count = 3",
        "SELECT max(attempt_count) FROM worker_queue",
        "SELECT min(locked_until) FROM instance_locks WHERE locked_until > 3",
        "SELECT 1 FROM worker_queue WHERE instance_id = 'a' ORDER BY tag",
        "DELETE FROM history WHERE event_id = 3",
        "UPDATE instances SET updated_at = 1 WHERE parent_instance_id IS NULL",
    ] {
        let plan = plan(&db, sql);
        assert!(plan.iter().any(|step| is_costly(step)), "{sql}: {plan:?}");
    }
    let plan = plan(&db, "SELECT 1 FROM history WHERE instance_id = 'a' ORDER BY execution_id");
    assert!(!plan.iter().any(|step| is_costly(step)), "{plan:?}");
}

/// The steps of SQLite's virtual machine until the first row of a statement, or its end.
fn steps(db: &Db, sql: &str, params: impl rusqlite::Params) -> i32 {
    let mut statement = db.conn.prepare(sql).unwrap();
    let mut rows = statement.query(params).unwrap();
    rows.next().unwrap();
    drop(rows);
    statement.get_status(StatementStatus::VmStep)
}

/// The steps of SQLite's virtual machine for all rows of a statement.
pub(crate) fn steps_of_all(db: &Db, sql: &str, params: impl rusqlite::Params) -> i32 {
    let mut statement = db.conn.prepare(sql).unwrap();
    let mut rows = statement.query(params).unwrap();
    while rows.next().unwrap().is_some() {}
    drop(rows);
    statement.get_status(StatementStatus::VmStep)
}

#[test]
fn delayed_messages_do_not_slow_down_a_fetch() {
    const NOW: i64 = 1_000;
    let fetches = |db: &Db| {
        [
            ("candidate_turns", steps(db, sql::CANDIDATE_TURNS, [NOW])),
            ("expired_leases", steps(db, sql::EXPIRED_LEASES, [NOW])),
            ("next_message", steps(db, sql::NEXT_MESSAGE, [NOW])),
        ]
    };
    let db = db();
    db.run(sql::ENQUEUE_MESSAGE, ("ready", "{}", NOW, 0, None::<i64>, NOW)).unwrap();
    db.run(sql::ENQUEUE_MESSAGE, ("later", "{}", NOW + 1, 0, None::<i64>, NOW)).unwrap();
    let empty = fetches(&db);
    db.control("BEGIN IMMEDIATE").unwrap();
    for n in 0..10_000 {
        let instance = format!("i{n}");
        db.run(sql::ENQUEUE_MESSAGE, (&instance, "{}", NOW + 1 + n, 0, None::<i64>, NOW)).unwrap();
        let row = (instance, "Orch", "1.0.0", 1, None::<&str>, 1);
        db.run(sql::UPSERT_INSTANCE, row).unwrap();
    }
    db.control("COMMIT").unwrap();
    let full = fetches(&db);
    for ((name, empty), (_, full)) in empty.into_iter().zip(full) {
        let plan = plan(&db, sql::ALL.iter().find(|(found, _)| *found == name).unwrap().1).join("\n    ");
        assert!(
            full * 10 <= empty * 11,
            "{name}: {empty} steps without waiting timers, {full} with 10,000\n    {plan}"
        );
    }
}

#[test]
fn held_instances_do_not_slow_down_a_fetch_or_a_message() {
    const NOW: i64 = 1_000;
    let fetches = |db: &Db| {
        let message = ("other", "{}", NOW, 0, None::<i64>, NOW);
        [
            ("candidate_turns", steps(db, sql::CANDIDATE_TURNS, [NOW])),
            ("expired_leases", steps(db, sql::EXPIRED_LEASES, [NOW])),
            ("next_lease_end", steps(db, sql::NEXT_LEASE_END, [NOW])),
            ("next_message", steps(db, sql::NEXT_MESSAGE, [NOW])),
            ("can_run_ahead", steps(db, sql::CAN_RUN_AHEAD, ("i1", 1, 0, NOW))),
            ("enqueue_message", steps(db, sql::ENQUEUE_MESSAGE, message)),
        ]
    };
    let db = db();
    db.run(sql::ENQUEUE_MESSAGE, ("ready", "{}", NOW, 0, None::<i64>, NOW)).unwrap();
    let empty = fetches(&db);
    db.control("BEGIN IMMEDIATE").unwrap();
    for n in 0..10_000 {
        let instance = format!("i{n}");
        db.run(sql::INSERT_HOLD, (&instance, "paused", "actor", "reason", NOW)).unwrap();
        db.run(sql::ENQUEUE_MESSAGE, (&instance, "{}", NOW - 1, 0, None::<i64>, NOW)).unwrap();
        let row = (instance, "Orch", "1.0.0", 1, None::<&str>, 1);
        db.run(sql::UPSERT_INSTANCE, row).unwrap();
    }
    db.control("COMMIT").unwrap();
    for ((name, empty), (_, full)) in empty.into_iter().zip(fetches(&db)) {
        assert!(full * 10 <= empty * 11, "{name}: {empty} steps without held instances, {full} with 10,000");
    }
    let ready =
        steps_of_all(&db, "SELECT id FROM orchestrator_queue WHERE ready = 1 AND visible_at < 1000", []);
    assert!(ready < 20, "{ready} steps: no message of a held instance is in the ready index");
}

/// A store with this many instances, of which ten run and the others completed.
fn with_completed(instances: u64) -> Db {
    let db = db();
    let rows =
        format!("WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {instances})");
    let status = "iif(n <= 10, 'Running', 'Completed')";
    db.conn
        .execute_batch(&format!(
            "INSERT INTO instances (instance_id, orchestration_name, current_execution_id, created_at, updated_at)
             {rows} SELECT 'i-' || n, 'Orch', 1, n, n FROM n;
             INSERT INTO executions (instance_id, execution_id, status, started_at, updated_at)
             {rows} SELECT 'i-' || n, 1, {status}, n, n FROM n"
        ))
        .unwrap();
    db
}

#[test]
fn completed_instances_do_not_slow_down_gauges_and_lists_of_running_ones() {
    let no_text = None::<&str>;
    let no_time = None::<i64>;
    let page = (i64::MAX, "Running", no_text, no_text, no_text, no_time, no_time, 5, 0);
    let costs = |db: &Db| {
        [
            ("count_attention", steps(db, sql::COUNT_ATTENTION, ("Running", 100))),
            ("count_running", steps(db, sql::COUNT_RUNNING, [])),
            ("list_attention", steps(db, sql::LIST_ATTENTION, page)),
            ("list_attention_ids", steps(db, sql::LIST_ATTENTION_IDS, ["Running"])),
            ("queue_backlogs", steps(db, sql::QUEUE_BACKLOGS, [1])),
        ]
    };
    let (small, large) = (with_completed(20), with_completed(20_000));
    for ((name, few), (_, many)) in costs(&small).into_iter().zip(costs(&large)) {
        let sql = sql::ALL.iter().find(|(found, _)| *found == name).unwrap().1;
        let plan = plan(&large, sql);
        assert!(
            many * 10 <= few * 11,
            "{name}: {few} steps with 10 that completed, {many} with 20,000\n{plan:?}"
        );
        let by_index =
            plan.iter().any(|step| step.contains("COVERING INDEX executions_attention (status=?)"));
        assert_eq!(by_index, name != "queue_backlogs", "{name}: {plan:?}");
    }
}

#[test]
fn step_of_retention_with_nothing_to_delete_costs_the_same_in_a_large_store() {
    const STEP: i64 = 10;
    let passes = |db: &Db| {
        [
            ("oldest_instances", steps_of_all(db, sql::OLDEST_INSTANCES, (i64::MIN, STEP))),
            ("prune_audit", steps_of_all(db, sql::PRUNE_AUDIT, (1, STEP))),
            ("prune_dead_letters", steps_of_all(db, sql::PRUNE_DEAD_LETTERS, (1, STEP))),
            ("is_in_use", steps_of_all(db, sql::IS_IN_USE, ["i1"])),
        ]
    };
    let db = db();
    let fill = |from: i64, to: i64| {
        db.control("BEGIN IMMEDIATE").unwrap();
        for n in from..to {
            let instance = format!("i{n}");
            db.run(sql::UPSERT_INSTANCE, (&instance, "Orch", "1.0.0", 1, None::<&str>, n)).unwrap();
            db.run(sql::APPEND_AUDIT, (n, "", "", "", "", None::<&str>, "")).unwrap();
            db.run(sql::DEAD_LETTER, ("worker", &instance, "", "", 1, n)).unwrap();
        }
        db.control("COMMIT").unwrap();
    };
    fill(1, 21);
    let small = passes(&db);
    fill(21, 20_001);
    assert_eq!(passes(&db), small);
}
