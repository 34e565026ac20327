//! Pruning removes finished old executions, and never the current or a running one.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::model::{Event, EventKind};
use outlast_provider::{InstanceFilter, Provider, PruneOptions, PruneResult};
use std::time::Duration;

/// Far enough apart for two commits to differ by the store's millisecond clock.
pub(crate) const APART: Duration = Duration::from_millis(20);

/// Event 1 of an execution.
pub(crate) fn started_in(instance: &str, execution_id: u64) -> Event {
    Event::with_event_id(1, instance, execution_id, None, started_kind())
}

/// Ends the running execution by continue-as-new and commits the first turn of the next one. The ending has event id
/// 100, to leave room for other events.
pub(crate) async fn continue_as_new(provider: &dyn Provider, instance: &str, execution_id: u64) {
    let token = next_turn(provider, instance).await;
    let kind = EventKind::OrchestrationContinuedAsNew { input: "next".to_string() };
    Turn::new(&token)
        .execution(execution_id)
        .event(Event::with_event_id(100, instance, execution_id, None, kind))
        .metadata(status("ContinuedAsNew", "next"))
        .commit(provider)
        .await;
    let token = next_turn(provider, instance).await;
    let next = execution_id + 1;
    Turn::new(&token).execution(next).event(started_in(instance, next)).commit(provider).await;
}

/// Creates an instance in its `executions`-th execution: the old ones have two events each, the current one has one.
async fn create_executions(provider: &dyn Provider, instance: &str, executions: u64) {
    create_instance(provider, instance).await;
    for execution_id in 1..executions {
        continue_as_new(provider, instance, execution_id).await;
        tokio::time::sleep(APART).await;
    }
}

async fn complete(provider: &dyn Provider, instance: &str, execution_id: u64) {
    let token = next_turn(provider, instance).await;
    let metadata = status("Completed", "done");
    Turn::new(&token).execution(execution_id).metadata(metadata).commit(provider).await;
}

/// Instances processed, executions and events deleted.
fn counts(result: &PruneResult) -> [u64; 3] {
    [result.instances_processed, result.executions_deleted, result.events_deleted]
}

async fn prune(provider: &dyn Provider, instance: &str, options: PruneOptions) -> [u64; 3] {
    counts(&admin(provider).prune_executions(instance, options).await.expect("pruning succeeds"))
}

async fn prune_bulk(provider: &dyn Provider, filter: InstanceFilter) -> [u64; 3] {
    let result = admin(provider).prune_executions_bulk(filter, PruneOptions::default()).await;
    counts(&result.expect("bulk pruning succeeds"))
}

/// The instance holds exactly these executions, each with its whole history; the last is the current one.
async fn assert_executions(provider: &dyn Provider, instance: &str, expected: &[u64]) {
    let admin = admin(provider);
    assert_eq!(admin.list_executions(instance).await.unwrap(), expected, "executions of {instance}");
    let current = admin.get_instance_info(instance).await.unwrap().current_execution_id;
    assert_eq!(Some(&current), expected.last(), "current execution of {instance}");
    for execution_id in 1..=current {
        let events = provider.read_with_execution(instance, execution_id).await.unwrap();
        let ids: Vec<u64> = events.iter().map(Event::event_id).collect();
        let expected_ids: &[u64] = match expected.contains(&execution_id) {
            true if execution_id == current => &[1],
            true => &[1, 100],
            false => &[],
        };
        assert_eq!(ids, expected_ids, "events of execution {execution_id} of {instance}");
    }
}

/// `keep_last` counts the newest executions, `completed_before` is strict, both must hold, and no options keep only
/// the current execution.
pub async fn test_prune_options_combinations<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_executions(provider, "probe", 4).await;
    assert_executions(provider, "probe", &[1, 2, 3, 4]).await;
    let later = factory.now_ms() + 3_600_000;
    // Keep the newest, ended before the end of this execution (0: some time later), executions left.
    let cases: [(Option<u32>, Option<u64>, &[u64]); 8] = [
        (Some(2), None, &[3, 4]),
        (Some(4), None, &[1, 2, 3, 4]),
        (Some(9), None, &[1, 2, 3, 4]),
        (None, None, &[4]),
        (None, Some(2), &[2, 3, 4]),
        (None, Some(0), &[4]),
        (Some(1), Some(3), &[3, 4]),
        (Some(3), Some(0), &[2, 3, 4]),
    ];
    for (case, (keep_last, ended_before, left)) in cases.into_iter().enumerate() {
        let instance = format!("case-{case}");
        create_executions(provider, &instance, 4).await;
        let completed_before = match ended_before {
            Some(0) => Some(later),
            Some(execution_id) => {
                let info = admin(provider).get_execution_info(&instance, execution_id).await.unwrap();
                Some(info.completed_at.expect("a continued execution has ended"))
            }
            None => None,
        };
        let pruned = 4 - left.len() as u64;
        let result = prune(provider, &instance, PruneOptions { keep_last, completed_before }).await;
        assert_eq!(
            result,
            [1, pruned, 2 * pruned],
            "{instance}: keep {keep_last:?}, before {ended_before:?}"
        );
        assert_executions(provider, &instance, left).await;
    }
    assert_executions(provider, "probe", &[1, 2, 3, 4]).await;
}

/// The current execution stays even when it has ended, a running one stays even when it is old, and an unknown
/// instance is an error.
pub async fn test_prune_safety<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    for (instance, keep_last) in [("none", None), ("zero", Some(0)), ("one", Some(1))] {
        create_executions(provider, instance, 3).await;
        complete(provider, instance, 3).await;
        let options = PruneOptions { keep_last, completed_before: Some(factory.now_ms() + 3_600_000) };
        assert_eq!(prune(provider, instance, options.clone()).await, [1, 2, 4], "{instance}");
        assert_executions(provider, instance, &[3]).await;
        assert_eq!(
            prune(provider, instance, options).await,
            [1, 0, 0],
            "{instance}: nothing is left to prune"
        );
        assert_eq!(admin(provider).get_instance_info(instance).await.unwrap().status, "Completed");
    }

    create_instance(provider, "overlap").await;
    let token = next_turn(provider, "overlap").await;
    Turn::new(&token).execution(2).event(started_in("overlap", 2)).commit(provider).await;
    assert_eq!(
        prune(provider, "overlap", PruneOptions::default()).await,
        [1, 0, 0],
        "execution 1 still runs"
    );
    assert_eq!(admin(provider).list_executions("overlap").await.unwrap(), [1, 2]);
    assert_eq!(provider.read_with_execution("overlap", 1).await.unwrap().len(), 1);

    permanent(
        admin(provider).prune_executions("unknown", PruneOptions::default()).await,
        "pruning an unknown instance",
    );
}

/// Bulk pruning processes the instances that its filter selects, children included, and adds up what it removed.
pub async fn test_prune_bulk<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_executions(provider, "root", 3).await;
    create_instance_with_parent(provider, "child", "root").await;
    continue_as_new(provider, "child", 1).await;
    create_executions(provider, "unlisted", 2).await;
    let ids = |ids: &[&str]| InstanceFilter {
        instance_ids: Some(ids.iter().map(ToString::to_string).collect()),
        ..InstanceFilter::default()
    };

    assert_eq!(prune_bulk(provider, ids(&[])).await, [0, 0, 0], "an empty list selects nothing");
    assert_eq!(prune_bulk(provider, ids(&["unknown"])).await, [0, 0, 0], "unknown ids are skipped");
    assert_eq!(prune_bulk(provider, ids(&["root", "child", "unknown"])).await, [2, 3, 6]);
    assert_executions(provider, "root", &[3]).await;
    assert_executions(provider, "child", &[2]).await;
    assert_executions(provider, "unlisted", &[1, 2]).await;

    create_executions(provider, "finished", 2).await;
    complete(provider, "finished", 2).await;
    let later = Some(factory.now_ms() + 3_600_000);
    let finished = InstanceFilter { completed_before: later, ..InstanceFilter::default() };
    assert_eq!(prune_bulk(provider, finished).await, [1, 1, 2], "only one current execution has ended");
    assert_executions(provider, "unlisted", &[1, 2]).await;

    let one = InstanceFilter { limit: Some(1), ..ids(&["unlisted", "root"]) };
    assert_eq!(prune_bulk(provider, one).await[0], 1, "a limit bounds the instances processed");
    let [processed, ..] = prune_bulk(provider, InstanceFilter::default()).await;
    assert_eq!(processed, 4, "no filter selects all");
    assert_executions(provider, "unlisted", &[2]).await;
}

/// Bulk pruning takes old executions from running instances too, and leaves them running.
pub async fn test_prune_bulk_includes_running_instances<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_executions(provider, "busy", 3).await;
    create_executions(provider, "done", 2).await;
    complete(provider, "done", 2).await;

    assert_eq!(prune_bulk(provider, InstanceFilter::default()).await, [2, 3, 6]);
    assert_executions(provider, "busy", &[3]).await;
    assert_executions(provider, "done", &[2]).await;
    assert_eq!(admin(provider).get_instance_info("busy").await.unwrap().status, "Running");
    enqueue(provider, raised("busy", "poke", "")).await;
    let (item, _, _) = must_fetch(provider, LONG).await;
    assert_eq!((item.instance.as_str(), item.execution_id, item.history.len()), ("busy", 3, 1));
}
