//! The server keeps plans that it made for empty tables after the tables have filled: no statement may scan a whole table for a
//! few rows.

use crate::factory::{fresh_config, raw};
use crate::support::*;
use futures::future::join_all;
use outlast_model::{Event, EventKind, WorkItem};
use outlast_postgres::{PostgresProvider, ProviderConfig};
use outlast_provider::{
    Completion, ExecutionMetadata, Hold, HoldKind, HoldOutcome, InstanceFilter, InstanceQuery, MessageBound,
    Provider, ProviderAdmin, ReleaseOutcome, SessionFetchConfig, StartPolicy, StartRequest, TagFilter,
    TurnAhead, TurnCommit,
};
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::Client;

/// Rows of other instances.
const OTHERS: i64 = 3_000;
const WAVE: usize = 8;

/// Waits until the connections of the store have ended: a connection reports its statistics when it ends.
async fn until_closed(client: &Client, schema: &str) {
    let question = "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name =";
    until(client, &format!("{question} '{schema}'")).await;
}

/// Starts [`WAVE`] instances at once and runs one activity of each. Every second outcome is committed with its turn.
async fn wave(store: &PostgresProvider, name: &str) {
    let starts = (0..WAVE).map(|n| {
        let start = start(&format!("{name}-{n}"));
        let policy = StartPolicy::FailIfExists;
        store.start_orchestration(StartRequest { start, delay: None, policy, messages: vec![] })
    });
    join_all(starts).await.into_iter().for_each(|started| drop(started.unwrap()));
    let turns = join_all((0..WAVE).map(|_| turn(store))).await;
    join_all(turns.iter().map(|(_, token, _)| store.renew_orchestration_item_lock(token, LONG))).await;
    let (returned, kept) = turns.split_first().unwrap();
    store.abandon_orchestration_item(&returned.1, Some(LONG), false).await.unwrap();
    let commits = kept.iter().map(|(item, token, _)| {
        let commit = match item.history.is_empty() {
            true => begin(&item.instance, vec![activity(&item.instance, 2)]),
            false => end(&item.instance),
        };
        store.commit_turn(token, commit)
    });
    let times = join_all(commits)
        .await
        .into_iter()
        .map(|committed| committed.unwrap().expect("the commit returns its time"));
    let now = times.max().unwrap();

    let begun = kept.iter().filter(|(item, ..)| item.history.is_empty());
    let leased = join_all(begun.map(|_| work(store))).await;
    join_all(leased.iter().map(|(_, token, _)| store.renew_work_item_lock(token, LONG))).await;
    let (returned, kept) = leased.split_first().unwrap();
    store.abandon_work_item(&returned.1, Some(LONG), false).await.unwrap();
    let completions = kept.iter().enumerate().map(|(n, (item, token, _))| async move {
        let WorkItem::ActivityExecute { instance, .. } = item else { panic!("no activity: {item:?}") };
        match n % 2 {
            0 => store.ack_work_item(token, Some(completed(instance, 2))).await.unwrap(),
            _ => {
                let ahead = TurnAhead { after_event_id: 1, ran_at_ms: now, commit: end(instance) };
                let taken = store.complete_with_turn(token, completed(instance, 2), ahead).await.unwrap();
                assert!(matches!(taken, Completion::WithTurn { .. }), "{taken:?}");
            }
        }
        store.read_outcome(instance).await.unwrap().expect("the instance has an outcome or runs");
    });
    join_all(completions).await;
}

fn end(instance: &str) -> TurnCommit {
    let kind = EventKind::OrchestrationCompleted { output: "out".to_string() };
    let metadata =
        ExecutionMetadata { status: Some("Completed".to_string()), ..ExecutionMetadata::default() };
    let history_delta = vec![Event::at(7, 3, instance, 1, None, kind)];
    TurnCommit { history_delta, metadata, ..begin(instance, vec![]) }
}

/// Fills every table with rows of other instances.
async fn fill(schema: &str) {
    let all = format!("generate_series(1, {OTHERS}) AS n");
    execute(&format!(
        "INSERT INTO {schema}.instances (instance_id, orchestration_name, orchestration_version, current_execution_id,
                                         created_at, updated_at)
         SELECT 'old-' || n, 'Orch', '1.0.0', 1, 1, 1 FROM {all};
         INSERT INTO {schema}.executions (instance_id, execution_id, status, started_at, updated_at)
         SELECT 'old-' || n, 1, 'Completed', 1, 1 FROM {all};
         INSERT INTO {schema}.history (instance_id, execution_id, event_id, event_type, event_data)
         SELECT 'old-' || n, 1, 1, 'OrchestrationStarted', '{{}}' FROM {all};
         WITH pattern AS MATERIALIZED (SELECT * FROM {schema}.orchestrator_queue WHERE begins)
         INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, available_at, begins)
         SELECT 'backlog-' || n, replace(q.work_item, q.instance_id, 'backlog-' || n), q.visible_at, q.available_at, true
         FROM {all}, pattern AS q;
         INSERT INTO {schema}.instance_locks (instance_id, lock_token, locked_until, locked_at)
         SELECT 'leased-' || n, int8send(n), 99999999999999, 1 FROM {all};
         INSERT INTO {schema}.worker_queue (work_item, visible_at, instance_id, execution_id, activity_id, tag)
         SELECT '{{}}', 1, 'old-' || n, 1, n, 'other' FROM {all};
         INSERT INTO {schema}.sessions (session_id, worker_id, locked_until, last_activity_at)
         SELECT 's-' || n, 'w', 1, 1 FROM {all}"
    ))
    .await;
}

/// A store whose tables the planner believes to be empty, and its schema.
async fn planned_for_empty_tables(batches_only: bool) -> (PostgresProvider, String) {
    let (store, config) = planned_for_empty_tables_with(batches_only, MessageBound::default()).await;
    (store, config.schema_name.unwrap())
}

async fn planned_for_empty_tables_with(
    batches_only: bool,
    bound: MessageBound,
) -> (PostgresProvider, ProviderConfig) {
    let config = fresh_config();
    let schema = config.schema_name.clone().unwrap();
    let mut config = config.application_name(&schema).lanes(1).message_bound(bound);
    config.batches_only = batches_only;
    let store = PostgresProvider::new_with_config(config.clone()).await.unwrap();
    let tables = "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = $1";
    for table in raw().await.query(tables, &[&schema]).await.unwrap() {
        let table: String = table.get(0);
        execute(&format!("ALTER TABLE {table} SET (autovacuum_enabled = off); ANALYZE {table}")).await;
    }
    (store, config)
}

/// Closes the store and resets the statistics of its tables and indexes.
async fn close_and_reset_statistics(store: PostgresProvider, schema: &str) {
    drop(store);
    let client = raw().await;
    until_closed(&client, schema).await;
    // Scans visit the entries of deleted rows until the index is vacuumed. Transactions of other tests delay the vacuum.
    let vacuumed = async {
        let dead = "SELECT n_dead_tup FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = 'orchestrator_queue'";
        while client.query_one(dead, &[&schema]).await.unwrap().get::<_, i64>(0) > 0 {
            execute(&format!("VACUUM {schema}.orchestrator_queue")).await;
        }
    };
    timeout(PATIENCE, vacuumed).await.expect("the vacuum removes the dead rows");
    let reset = "SELECT pg_stat_reset_single_table_counters(c.oid) FROM pg_class AS c
                 WHERE c.relnamespace = to_regnamespace($1) AND c.relkind IN ('r', 'i')";
    client.query(reset, &[&schema]).await.unwrap();
}

/// Fails if the statements have read as many rows of a table or index as other instances have.
async fn no_table_was_scanned(store: PostgresProvider, schema: &str) {
    drop(store);
    let client = raw().await;
    until_closed(&client, schema).await;
    let read = "SELECT indexrelname::text, idx_tup_read FROM pg_stat_user_indexes WHERE schemaname = $1 AND idx_tup_read >= $2
                UNION ALL SELECT relname::text, seq_tup_read FROM pg_stat_user_tables
                          WHERE schemaname = $1 AND seq_tup_read >= $2";
    let read = client.query(read, &[&schema, &OTHERS]).await.unwrap();
    let read: Vec<(String, i64)> = read.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert!(read.is_empty(), "read as a whole: {read:?}");
}

#[tokio::test]
async fn batch_reads_no_rows_of_other_instances() {
    for batches_only in [true, false] {
        let (store, schema) = planned_for_empty_tables(batches_only).await;
        wave(&store, "first").await;
        // `fill` copies this start, which no fetch leases, into a backlog.
        store.enqueue_for_orchestrator(start("pattern"), None).await.unwrap();
        fill(&schema).await;
        wave(&store, "second").await;
        no_table_was_scanned(store, &schema).await;
    }
}

/// Fetches a turn of the instance `crowd`, and returns its token.
async fn turn_of_crowd(store: &PostgresProvider, messages: usize) -> String {
    let (item, token, _) = turn(store).await;
    assert_eq!((item.instance.as_str(), item.messages.len()), ("crowd", messages));
    token
}

/// Neither polls for other instances nor turns of the instance itself read its waiting messages repeatedly.
#[tokio::test]
async fn messages_that_wait_for_a_leased_instance_are_not_read() {
    const FEW: usize = 10;
    for batches_only in [true, false] {
        let bound = MessageBound::new(FEW, 1_000_000);
        let (store, config) = planned_for_empty_tables_with(batches_only, bound).await;
        let schema = config.schema_name.clone().unwrap();
        enqueue(&store, "crowd").await;
        let token = turn_of_crowd(&store, 1).await;
        let item = serde_json::to_string(&completed("crowd", 2)).unwrap();
        execute(&format!(
            "INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, available_at, begins)
             SELECT 'crowd', '{item}', n, n, false FROM generate_series(1, {OTHERS} + 1000) AS n"
        ))
        .await;
        // A poll reads all the messages and has them set aside.
        wave(&store, "first").await;
        let free = "SELECT count(*) = 0 FROM {schema}.orchestrator_queue WHERE NOT is_aside AND instance_id = 'crowd' AND lock_token IS NULL";
        until(&raw().await, &free.replace("{schema}", &schema)).await;
        store.commit_turn(&token, begin("crowd", vec![])).await.unwrap();
        close_and_reset_statistics(store, &schema).await;

        let store = PostgresProvider::new_with_config(config).await.unwrap();
        for n in 0..5 {
            let token = turn_of_crowd(&store, FEW).await;
            wave(&store, &format!("beside-{n}")).await;
            match n % 2 {
                0 => store.abandon_orchestration_item(&token, None, true).await.unwrap(),
                _ => drop(
                    store
                        .commit_turn(&token, TurnCommit { history_delta: vec![], ..begin("crowd", vec![]) })
                        .await
                        .unwrap(),
                ),
            }
        }
        no_table_was_scanned(store, &schema).await;
    }
}

/// Held instances with a message each slow down neither fetches nor the hold and release of another instance.
#[tokio::test]
async fn messages_of_held_instances_are_not_read() {
    let hold = Hold { kind: HoldKind::Paused, actor: "me".to_string(), reason: String::new() };
    for batches_only in [true, false] {
        let (store, schema) = planned_for_empty_tables(batches_only).await;
        wave(&store, "first").await;
        let item = serde_json::to_string(&completed("held", 2)).unwrap();
        let all = format!("generate_series(1, {OTHERS}) AS n");
        execute(&format!(
            "INSERT INTO {schema}.holds (instance_id, kind, actor, reason, held_at)
             SELECT 'held-' || n, 'paused', 'me', '', 1 FROM {all};
             INSERT INTO {schema}.instance_locks (instance_id, lock_token, locked_until, locked_at, has_aside)
             SELECT 'held-' || n, '', 9223372036854775807, 1, true FROM {all};
             INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, available_at, begins, is_aside)
             SELECT 'held-' || n, '{item}', n, n, false, true FROM {all}"
        ))
        .await;
        for n in 0..3 {
            wave(&store, &format!("beside-{n}")).await;
            let id = format!("mine-{n}");
            enqueue(&store, &id).await;
            assert_eq!(store.hold_instance(&id, &hold).await, Ok(HoldOutcome::Held));
            wave(&store, &format!("held-beside-{n}")).await;
            assert_eq!(store.release_instance(&id).await, Ok(ReleaseOutcome::Released));
            // The fetch returns a turn of the released instance, or of one that a wave has left.
            let (_, token, _) = turn(&store).await;
            assert_eq!(store.hold_turn(&token, &hold).await, Ok(HoldOutcome::Held));
        }
        no_table_was_scanned(store, &schema).await;
    }
}

/// Enqueues activities with and without a session, and fetches each with the owner of the session.
async fn sessions(store: &PostgresProvider, tags: &TagFilter) {
    let owner = SessionFetchConfig { owner_id: "me".to_string(), lock_timeout: LONG };
    for n in 0..WAVE as u64 {
        let item = activity_with("i", n, (n % 2 == 0).then_some("mine"), None);
        store.enqueue_for_worker(item).await.unwrap();
    }
    for n in 0..WAVE as u64 {
        let (item, token, _) = store
            .fetch_work_item(LONG, PATIENCE, Some(&owner), tags)
            .await
            .unwrap()
            .expect("an activity is ready");
        assert!(matches!(item, WorkItem::ActivityExecute { id, .. } if id == n), "oldest first: {item:?}");
        store.renew_work_item_lock(&token, LONG).await.unwrap();
        store.ack_work_item(&token, None).await.unwrap();
    }
}

#[tokio::test]
async fn fetch_reads_no_activities_for_which_it_is_not_eligible() {
    for tags in [TagFilter::DefaultOnly, TagFilter::default_and(["mine"])] {
        let (store, schema) = planned_for_empty_tables(false).await;
        sessions(&store, &tags).await;
        let all = format!("generate_series(1, {OTHERS}) AS n");
        let columns = "work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag, lock_token, locked_until";
        // Rows that the fetch must skip: activities of sessions of another owner, activities with another tag, and leased
        // activities with and without a session.
        execute(&format!(
            "INSERT INTO {schema}.sessions (session_id, worker_id, locked_until, last_activity_at)
             SELECT 's-' || n, 'other', 99999999999999, 1 FROM generate_series(0, 9) AS n;
             INSERT INTO {schema}.worker_queue ({columns})
             SELECT '{{\"\":{{}}}}', 1, 'old', 1, n, 's-' || n % 10, NULL, NULL::bytea, NULL::bigint FROM {all} UNION ALL
             SELECT '{{\"\":{{}}}}', 1, 'old', 1, n, NULL, 'other', NULL, NULL FROM {all} UNION ALL
             SELECT '{{\"\":{{}}}}', 1, 'old', 1, n, NULL, NULL, int8send(n), 99999999999999 FROM {all} UNION ALL
             SELECT '{{\"\":{{}}}}', 1, 'old', 1, n, 's-' || n % 10, NULL, int8send(n), 99999999999999 FROM {all}"
        ))
        .await;
        sessions(&store, &tags).await;
        // A fetch that finds no activity reads the time of the next one.
        let nothing = store.fetch_work_item(LONG, Duration::from_millis(50), None, &tags).await.unwrap();
        assert!(nothing.is_none(), "{nothing:?}");
        no_table_was_scanned(store, &schema).await;
    }
}

#[tokio::test]
async fn session_cleanup_reads_no_activities_of_sessions_that_stay() {
    let (store, schema) = planned_for_empty_tables(false).await;
    execute(&format!(
        "INSERT INTO {schema}.sessions (session_id, worker_id, locked_until, last_activity_at)
         VALUES ('gone', 'w', 1, 1), ('needed', 'w', 1, 1);
         INSERT INTO {schema}.worker_queue (work_item, visible_at, instance_id, execution_id, activity_id, session_id)
         SELECT '{{}}', 1, 'old', 1, n, 'needed' FROM generate_series(1, {OTHERS}) AS n"
    ))
    .await;
    assert_eq!(store.cleanup_orphaned_sessions(Duration::from_secs(1)).await.unwrap(), 1);
    no_table_was_scanned(store, &schema).await;
}

#[tokio::test]
async fn deletion_reads_no_rows_that_stay() {
    let (store, schema) = planned_for_empty_tables(false).await;
    fill(&schema).await;
    let ids: Vec<String> = (1..=10).map(|n| format!("old-{n}")).collect();
    let filter = InstanceFilter { instance_ids: Some(ids), ..InstanceFilter::default() };
    let deleted = store.delete_instance_bulk(filter).await.unwrap();
    assert_eq!(deleted.instances_deleted, 10);
    no_table_was_scanned(store, &schema).await;
}

#[tokio::test]
async fn retention_reads_a_page_and_the_rows_that_it_deletes() {
    let (store, schema) = planned_for_empty_tables(false).await;
    execute(&format!(
        "INSERT INTO {schema}.instances (instance_id, orchestration_name, current_execution_id, created_at, updated_at)
         SELECT 'done-' || n, 'Orch', 1, 1, 1 FROM generate_series(1, 10) AS n;
         INSERT INTO {schema}.executions (instance_id, execution_id, status, started_at, updated_at, completed_at)
         SELECT 'done-' || n, 1, 'Completed', 1, 1, 1 FROM generate_series(1, 10) AS n;
         INSERT INTO {schema}.audit (at, actor, action, target, reason, result)
         SELECT n, '', '', '', '', '' FROM generate_series(1, {OTHERS}) AS n;
         INSERT INTO {schema}.dead_letters (queue, work_item, reason, attempt_count, dead_at)
         SELECT 'worker', '', '', 1, n FROM generate_series(1, {OTHERS}) AS n"
    ))
    .await;
    fill(&schema).await;
    let page = store.oldest_instances(None, 100).await.unwrap().unwrap();
    assert_eq!((page.instances.len(), page.instances[0].instance_id.as_str()), (100, "done-1"));
    assert!(page.next.is_some());
    let ids: Vec<String> = (1..=10).map(|n| format!("done-{n}")).collect();
    for expected in [10, 0] {
        let deleted = store.delete_ended(&ids, 5).await.unwrap().unwrap();
        assert_eq!(deleted.instances_deleted, expected);
    }
    // A time before the first row, a time with fewer rows than one batch before it, and the same time again.
    for (before, expected) in [(1, 0), (21, 20), (21, 0)] {
        assert_eq!(store.prune_audit(before, 50).await, Ok(Some(expected)));
        assert_eq!(store.prune_dead_letters(before, 50).await, Ok(Some(expected)));
    }
    no_table_was_scanned(store, &schema).await;
}

/// Stores instances, of which every `nth` has the status; the others are completed.
async fn fill_with_instances(schema: &str, instances: i64, nth: i64, status: &str) {
    let all = format!("generate_series(1, {instances}) AS n");
    execute(&format!(
        "INSERT INTO {schema}.instances (instance_id, orchestration_name, current_execution_id, created_at, updated_at)
         SELECT 'i-' || n, 'Orch', 1, n, n FROM {all};
         INSERT INTO {schema}.executions (instance_id, execution_id, status, started_at, updated_at)
         SELECT 'i-' || n, 1, CASE WHEN n % {nth} = 0 THEN '{status}' ELSE 'Completed' END, n, n FROM {all}"
    ))
    .await;
}

fn of_status(status: &str, limit: u32) -> InstanceQuery {
    InstanceQuery { status: Some(status.to_string()), limit: Some(limit), ..InstanceQuery::default() }
}

/// The ids of all pages, and the length of each page.
async fn pages(store: &PostgresProvider, mut query: InstanceQuery) -> (Vec<String>, Vec<usize>) {
    let (mut ids, mut sizes) = (Vec::new(), Vec::new());
    loop {
        let found = store.query_instances(&query).await.unwrap();
        sizes.push(found.instances.len());
        ids.extend(found.instances.into_iter().map(|info| info.instance_id));
        query.after = found.next;
        if query.after.is_none() {
            return (ids, sizes);
        }
        assert!(sizes.len() < 100, "the listing has no last page: {sizes:?}");
    }
}

#[tokio::test]
async fn gauges_and_running_lists_read_no_completed_rows() {
    for status in ["Running", "Failed"] {
        let (store, schema) = planned_for_empty_tables(false).await;
        fill_with_instances(&schema, 2 * OTHERS, OTHERS / 2, status).await;
        let all = ["i-6000", "i-4500", "i-3000", "i-1500"];
        let running = if status == "Running" { 4 } else { 0 };
        assert_eq!(store.get_gauges().await.unwrap().running_instances, running);
        assert_eq!(store.list_instances_by_status(status).await.unwrap(), all);
        let named = InstanceQuery { orchestration_name: Some("Orch".to_string()), ..of_status(status, 3) };
        assert_eq!(pages(&store, named).await, (all.map(str::to_string).to_vec(), vec![3, 1]));
        no_table_was_scanned(store, &schema).await;
    }
}

#[tokio::test]
async fn a_page_ends_with_its_budget_and_pages_reach_every_instance() {
    let (store, schema) = planned_for_empty_tables(false).await;
    fill_with_instances(&schema, 45_000, 40_000, "ContinuedAsNew").await;
    // Each page examines 20,000 instances; the matching instance is the 5,001st from the newest.
    let found = pages(&store, of_status("ContinuedAsNew", 10)).await;
    assert_eq!(found, (vec!["i-40000".to_string()], vec![1, 0, 0]));
    assert_eq!(store.list_instances_by_status("ContinuedAsNew").await.unwrap(), ["i-40000"]);

    let (ids, sizes) = pages(&store, of_status("Completed", 1_000)).await;
    let all = (1..=45_000).rev().filter(|n| *n != 40_000).map(|n| format!("i-{n}"));
    assert_eq!(ids, all.collect::<Vec<_>>());
    assert!(
        sizes[..44].iter().all(|size| *size == 1_000),
        "pages are full if most instances match: {sizes:?}"
    );
    assert_eq!(store.list_instances_by_status("Completed").await.unwrap(), ids);
}

#[tokio::test]
async fn a_page_of_few_matches_reads_no_more_than_its_budget() {
    let (store, schema) = planned_for_empty_tables(false).await;
    fill_with_instances(&schema, 60_000, 60_001, "Failed").await;
    // As autovacuum does: the planner learns that the rows lie in the order in which the instances were created.
    execute(&format!("ANALYZE {schema}.instances; ANALYZE {schema}.executions")).await;
    let page = store.query_instances(&of_status("ContinuedAsNew", 10)).await.unwrap();
    assert!(page.instances.is_empty() && page.next.is_some());
    // Each of two statements reads 20,001 instances.
    no_more_was_read_than(0, 41_000, store, &schema).await;
}

#[tokio::test]
async fn page_of_many_running_instances_reads_no_more_than_its_budget() {
    let (store, schema) = planned_for_empty_tables(false).await;
    fill_with_instances(&schema, 25_000, 1, "Running").await;
    // As autovacuum does: without statistics the planner reads the whole index for a count with a limit.
    execute(&format!("ANALYZE {schema}.instances; ANALYZE {schema}.executions")).await;
    let page = store.query_instances(&of_status("Running", 10)).await.unwrap();
    let ids: Vec<String> = page.instances.into_iter().map(|info| info.instance_id).collect();
    assert_eq!(ids, (24_991..=25_000).rev().map(|n| format!("i-{n}")).collect::<Vec<_>>());
    // The count stops at 20,001 rows of the table or of its index; the page is then read from the newest instance on.
    no_more_was_read_than(20_001, 20_001, store, &schema).await;
}

/// Fails if the scans of a table, or of an index, have read more rows.
async fn no_more_was_read_than(scanned: i64, indexed: i64, store: PostgresProvider, schema: &str) {
    drop(store);
    let client = raw().await;
    until_closed(&client, schema).await;
    let read = "SELECT relname::text, seq_tup_read FROM pg_stat_user_tables WHERE schemaname = $1 AND seq_tup_read > $2
                UNION ALL SELECT indexrelname::text, idx_tup_read FROM pg_stat_user_indexes
                          WHERE schemaname = $1 AND idx_tup_read > $3";
    let read = client.query(read, &[&schema, &scanned, &indexed]).await.unwrap();
    let read: Vec<(String, i64)> = read.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert!(read.is_empty(), "read beyond the budget: {read:?}");
}
