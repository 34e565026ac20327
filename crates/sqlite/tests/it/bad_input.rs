//! Invalid input: the store refuses it with a permanent error that names it, changes no row, and serves later calls.

use crate::factory::raw;
use crate::support::*;
use outlast_model::{EventKind, WorkItem};
use outlast_provider::{
    ExecutionMetadata, Provider, ProviderError, ScheduledActivityIdentifier, StartPolicy, StartRequest,
};
use outlast_sqlite::SqliteProvider;
use std::path::PathBuf;
use tempfile::TempDir;

/// A store with two turns and an activity under leases, and the rows of its tables.
struct Bench {
    provider: SqliteProvider,
    turn: String,
    work: String,
    other_turn: String,
    path: PathBuf,
    before: String,
    _folder: TempDir,
}

impl Bench {
    async fn new() -> Self {
        let (folder, path) = fresh();
        let provider = open(&path).await;
        for instance in ["host", "other"] {
            create(&provider, instance).await;
        }
        provider.enqueue_for_worker(activity("host", 2)).await.unwrap();
        let work = work(&provider).await.1;
        let mut turns = Vec::new();
        for instance in ["host", "other"] {
            provider.enqueue_for_orchestrator(completed(instance, 2), None).await.unwrap();
            turns.push(turn(&provider).await.1);
        }
        let [turn, other_turn] = <[String; 2]>::try_from(turns).unwrap();
        let before = rows(&path);
        Self { provider, turn, work, other_turn, path, before, _folder: folder }
    }

    /// Asserts that the call failed with a permanent error that contains the text, and that no row changed.
    fn refused<T: std::fmt::Debug>(&self, what: &str, result: Result<T, ProviderError>, says: &str) {
        let error = result.expect_err(what);
        assert!(!error.is_retryable(), "{what}: the error is not permanent: {error}");
        assert!(error.message.contains(says), "{what}: {error:.300}");
        assert!(error.message.len() < 1_000, "{what}: a message of {} bytes", error.message.len());
        assert!(rows(&self.path) == self.before, "{what}: the tables changed");
    }

    /// Asserts that the leases are valid, and that a whole orchestration runs.
    async fn assert_usable(self) {
        let (provider, event_2) = (&self.provider, event("host", 2, EventKind::KeyValuesCleared));
        ack(provider, &self.turn, vec![event_2], vec![], ExecutionMetadata::default()).await.unwrap();
        ack(provider, &self.other_turn, vec![ended("other", 2)], vec![], completed_metadata()).await.unwrap();
        provider.ack_work_item(&self.work, None).await.unwrap();
        hello(provider, "next").await;
        assert_eq!(provider.read("next").await.unwrap().len(), 4);
        assert_eq!(provider.integrity_check().await.unwrap(), [""; 0]);
    }
}

fn start_request(instance: &str) -> StartRequest {
    StartRequest { start: start(instance), delay: None, policy: StartPolicy::FailIfExists, messages: vec![] }
}

#[tokio::test]
async fn invalid_ids_are_refused() {
    let bench = Bench::new().await;
    let provider = &bench.provider;
    let (long, huge) = ("x".repeat(513), "x".repeat(1 << 20));
    for (id, says) in [
        ("", "empty"),
        ("a\0b", "control character"),
        ("\n", "control character"),
        (&long, "513"),
        (&huge, "1048576"),
    ] {
        let what = format!("{:.20}", id.escape_debug().to_string());
        bench.refused(&what, provider.enqueue_for_orchestrator(start(id), None).await, says);
        bench.refused(&what, provider.enqueue_for_worker(activity(id, 1)).await, says);
        bench.refused(&what, provider.start_orchestration(start_request(id)).await, says);
        bench.refused(&what, provider.append_with_execution(id, 1, vec![started(id)]).await, says);
        bench.refused(&what, provider.ack_work_item(&bench.work, Some(completed(id, 1))).await, says);
        let scheduling = ack(provider, &bench.turn, vec![], vec![activity(id, 1)], named()).await;
        bench.refused(&what, scheduling, says);
        // A read of an invalid id succeeds and finds no instance.
        assert!(provider.read(id).await.unwrap().is_empty());
        assert_eq!(provider.get_instance_stats(id).await.unwrap(), None);
    }
    bench.assert_usable().await;
}

#[tokio::test]
async fn ids_with_sql_wildcards_or_symbols_are_stored_unchanged() {
    let (_folder, path) = fresh();
    let provider = open(&path).await;
    let ids = [
        "🦀",
        "'; DROP TABLE instances; --",
        "\" OR 1 = 1",
        "?1",
        ":instance",
        "%",
        "_",
        "a\\",
        "NULL",
        "lock_00000000000000000000000000000000.x",
        "$.x[*]",
    ];
    for id in ids {
        hello(&provider, id).await;
    }
    for id in ids {
        let history = provider.read(id).await.unwrap();
        assert_eq!(history.iter().map(|event| &event.instance_id[..]).collect::<Vec<_>>(), [id; 4]);
    }
    let admin = provider.as_management_capability().unwrap();
    for (deleted, id) in ids.into_iter().enumerate() {
        assert_eq!(admin.delete_instance(id, false).await.unwrap().instances_deleted, 1, "{id}");
        assert_eq!(admin.list_instances().await.unwrap().len(), ids.len() - deleted - 1, "{id}");
    }
}

#[tokio::test]
async fn events_with_existing_or_excessive_ids_are_refused() {
    let bench = Bench::new().await;
    let provider = &bench.provider;
    let status = |id| event("host", id, EventKind::CustomStatusUpdated { status: Some("new".to_string()) });
    let cases = [
        (vec![status(0)], "id 0"),
        (vec![status(2), status(0)], "id 0"),
        (vec![status(2), status(2)], "event id 2 exists"),
        (vec![status(2), status(1)], "event id 1 exists"),
        (vec![status(2), status(u64::MAX)], "event id 18446744073709551615"),
        (vec![status(2), status(1 << 63)], "event id 9223372036854775808"),
    ];
    for (events, says) in cases {
        let what = format!("{:?}", events.iter().map(|event| event.event_id).collect::<Vec<_>>());
        // The turn carries data of every kind, so that the comparison of rows notices any leftover.
        let (work, messages) = (vec![activity("host", 7)], vec![start("child"), completed("other", 3)]);
        let cancelled = vec![ScheduledActivityIdentifier {
            instance: "host".to_string(),
            execution_id: 1,
            activity_id: 2,
        }];
        let turn = provider.ack_orchestration_item(
            &bench.turn,
            1,
            events.clone(),
            work,
            messages,
            completed_metadata(),
            cancelled,
        );
        bench.refused(&what, turn.await, says);
        bench.refused(&what, provider.append_with_execution("host", 1, events).await, says);
    }
    bench.assert_usable().await;
}

#[tokio::test]
async fn execution_ids_above_the_range_of_a_column_are_refused() {
    let bench = Bench::new().await;
    let provider = &bench.provider;
    for execution in [u64::MAX, 1 << 63] {
        let says = execution.to_string();
        let turn = |metadata| {
            provider.ack_orchestration_item(
                &bench.turn,
                execution,
                vec![ended("host", 2)],
                vec![],
                vec![],
                metadata,
                vec![],
            )
        };
        bench.refused("a turn", turn(completed_metadata()).await, &says);
        bench.refused("an empty turn", turn(ExecutionMetadata::default()).await, &says);
        let append = provider.append_with_execution("host", execution, vec![ended("host", 2)]);
        bench.refused("events", append.await, &says);
        let WorkItem::ActivityExecute { name, input, .. } = activity("host", 1) else { unreachable!() };
        let (instance, session_id, tag) = ("host".to_string(), None, None);
        let item = WorkItem::ActivityExecute {
            instance,
            execution_id: execution,
            id: 1,
            name,
            input,
            session_id,
            tag,
        };
        bench.refused("an activity", provider.enqueue_for_worker(item).await, &says);
        // No execution has such an id, so a read finds no events.
        assert!(provider.read_with_execution("host", execution).await.unwrap().is_empty());
    }
    bench.assert_usable().await;
}

#[tokio::test]
async fn unknown_and_altered_tokens_are_refused() {
    let bench = Bench::new().await;
    let provider = &bench.provider;
    let swapped = |token: &str, key: &str| format!("{}.{key}", token.split_once('.').unwrap().0);
    let tokens = [
        String::new(),
        "bogus".to_string(),
        "lock_0.host".to_string(),
        swapped(&bench.other_turn, "host"),
        swapped(&bench.turn, "other"),
        swapped(&bench.turn, "'; DROP TABLE instance_locks; --"),
        swapped(&bench.work, "9223372036854775808"),
        format!("{}0", bench.work),
        bench.turn.to_uppercase(),
    ];
    for token in &tokens {
        let says = "Invalid lock token";
        bench.refused(token, ack(provider, token, vec![ended("host", 2)], vec![], named()).await, says);
        bench.refused(token, provider.abandon_orchestration_item(token, None, true).await, says);
        bench.refused(token, provider.renew_orchestration_item_lock(token, LONG).await, says);
        bench.refused(token, provider.ack_work_item(token, Some(completed("host", 2))).await, says);
        bench.refused(token, provider.abandon_work_item(token, None, true).await, says);
        bench.refused(token, provider.renew_work_item_lock(token, LONG).await, says);
    }
    // The token of a turn settles no activity, and the token of an activity settles no turn.
    let (turn, work) = (&bench.turn, &bench.work);
    bench.refused("a turn's token", provider.ack_work_item(turn, None).await, "Invalid lock token");
    bench.refused(
        "an activity's token",
        ack(provider, work, vec![], vec![], named()).await,
        "Invalid lock token",
    );
    let huge = format!("{}{}", bench.turn, "x".repeat(1 << 20));
    bench.refused("a huge token", ack(provider, &huge, vec![], vec![], named()).await, "Invalid lock token");
    bench.assert_usable().await;
}

#[tokio::test]
async fn items_of_the_wrong_queue_are_refused() {
    let bench = Bench::new().await;
    let provider = &bench.provider;
    let message = || completed("host", 2);
    let wrong = "cannot go to the worker queue";
    bench.refused("a message as an activity", provider.enqueue_for_worker(message()).await, wrong);
    let turn = ack(provider, &bench.turn, vec![], vec![message()], named()).await;
    bench.refused("a message as an activity of a turn", turn, wrong);
    let wrong = "cannot go to the orchestrator queue";
    bench.refused(
        "an activity as a message",
        provider.enqueue_for_orchestrator(activity("host", 1), None).await,
        wrong,
    );
    let item = vec![activity("host", 1)];
    let turn = provider.ack_orchestration_item(&bench.turn, 1, vec![], vec![], item, named(), vec![]).await;
    bench.refused("an activity as a message of a turn", turn, wrong);
    let start = provider.ack_work_item(&bench.work, Some(start("host"))).await;
    bench.refused("a start as a completion", start, "StartOrchestration is not a completion");
    bench.assert_usable().await;
}

#[tokio::test]
async fn damaged_rows_cause_errors_and_do_not_block_other_instances() {
    let bench = Bench::new().await;
    let provider = &bench.provider;
    let damage = |sql: &str| raw(&bench.path).execute_batch(sql).unwrap();
    damage("UPDATE history SET event_data = '{\"type\":' WHERE instance_id = 'host'");
    let error = provider.read("host").await.unwrap_err();
    assert!(!error.is_retryable() && error.message.contains("'host'"), "{error}");
    // The cell holds bytes in place of a text.
    damage("UPDATE history SET event_data = x'fffe' WHERE instance_id = 'other'");
    let error = provider.read("other").await.unwrap_err();
    assert!(!error.is_retryable(), "{error}");
    damage("UPDATE orchestrator_queue SET work_item = x'fffe'; UPDATE worker_queue SET work_item = x'fffe'");
    provider.abandon_orchestration_item(&bench.turn, None, true).await.unwrap();
    provider.abandon_work_item(&bench.work, None, true).await.unwrap();
    hello(provider, "next").await;
    assert_eq!(provider.read("next").await.unwrap().len(), 4, "other instances run");
    let dead_letters = provider.as_management_capability().unwrap().list_dead_letters(9).await.unwrap();
    assert_eq!(dead_letters.len(), 2, "{dead_letters:?}");
}
