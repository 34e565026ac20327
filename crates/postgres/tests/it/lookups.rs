//! Plans that were made for empty tables go on when these are full: nothing may read a table for a few of its rows.

use crate::factory::{fresh_config, raw};
use crate::support::*;
use futures::future::join_all;
use outlast_model::{Event, EventKind, WorkItem};
use outlast_postgres::PostgresProvider;
use outlast_provider::{
    Completion, ExecutionMetadata, Provider, StartPolicy, StartRequest, TurnAhead, TurnCommit,
};

/// Rows that have nothing to do with what is asked for.
const OTHERS: i64 = 3_000;
const WAVE: usize = 8;

/// So many instances, all at once: started, with an activity each, of whose outcomes every second one comes with its turn.
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
            true => begin(&item.instance),
            false => end(&item.instance),
        };
        store.commit_turn(token, commit)
    });
    let times =
        join_all(commits).await.into_iter().map(|committed| committed.unwrap().expect("it says when"));
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
        store.read_outcome(instance).await.unwrap().expect("it has begun");
    });
    join_all(completions).await;
}

fn begin(instance: &str) -> TurnCommit {
    TurnCommit {
        execution_id: 1,
        history_delta: vec![started(instance)],
        worker_items: vec![activity(instance, 2)],
        orchestrator_items: vec![],
        metadata: named(),
        cancelled_activities: vec![],
    }
}

fn end(instance: &str) -> TurnCommit {
    let kind = EventKind::OrchestrationCompleted { output: "out".to_string() };
    let metadata =
        ExecutionMetadata { status: Some("Completed".to_string()), ..ExecutionMetadata::default() };
    let history_delta = vec![Event::at(7, 3, instance, 1, None, kind)];
    TurnCommit { history_delta, worker_items: vec![], metadata, ..begin(instance) }
}

/// Fills every table, as others would have by now.
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
         INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, available_at, begins)
         SELECT 'backlog-' || n, replace(q.work_item, q.instance_id, 'backlog-' || n), q.visible_at, q.available_at, true
         FROM {all}, {schema}.orchestrator_queue AS q WHERE q.begins;
         INSERT INTO {schema}.instance_locks (instance_id, lock_token, locked_until, locked_at)
         SELECT 'leased-' || n, int8send(n), 99999999999999, 1 FROM {all};
         INSERT INTO {schema}.worker_queue (work_item, visible_at, instance_id, execution_id, activity_id, tag)
         SELECT '{{}}', 1, 'old-' || n, 1, n, 'other' FROM {all};
         INSERT INTO {schema}.sessions (session_id, worker_id, locked_until, last_activity_at)
         SELECT 's-' || n, 'w', 1, 1 FROM {all}"
    ))
    .await;
}

#[tokio::test]
async fn what_is_stored_beside_it_costs_a_batch_nothing() {
    for batches_only in [true, false] {
        let mut config = fresh_config().application_name("looks up").lanes(1);
        config.batches_only = batches_only;
        let schema = config.schema_name.clone().unwrap();
        let store = PostgresProvider::new_with_config(config).await.unwrap();
        let client = raw().await;
        for table in client
            .query(
                "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = $1",
                &[&schema],
            )
            .await
            .unwrap()
        {
            // Now they are known to be empty, and nobody learns that they are not.
            let table: String = table.get(0);
            execute(&format!("ALTER TABLE {table} SET (autovacuum_enabled = off); ANALYZE {table}")).await;
        }
        wave(&store, "first").await;
        // One that nobody fetches is what the backlog is made of.
        store.enqueue_for_orchestrator(start("pattern"), None).await.unwrap();
        fill(&schema).await;
        wave(&store, "second").await;
        drop(store);
        // A connection tells what it has read when it ends.
        let ended = "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'looks up'";
        until(&client, ended).await;
        let read = "SELECT indexrelname::text, idx_tup_read FROM pg_stat_user_indexes WHERE schemaname = $1 AND idx_tup_read >= $2
                    UNION ALL SELECT relname::text, seq_tup_read FROM pg_stat_user_tables
                              WHERE schemaname = $1 AND seq_tup_read >= $2 AND relname <> 'orchestrator_queue'";
        let read = client.query(read, &[&schema, &OTHERS]).await.unwrap();
        let read: Vec<(String, i64)> = read.iter().map(|row| (row.get(0), row.get(1))).collect();
        assert!(read.is_empty(), "read as a whole: {read:?}");
    }
}
