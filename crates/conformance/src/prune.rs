//! Pruning removes finished old executions, and never the current or a running one.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::{InstanceFilter, Provider, PruneOptions, PruneResult};

/// Creates an instance in its `executions`-th execution: the old ones have two events each, the current one has one.
async fn create_executions(provider: &dyn Provider, instance: &str, executions: u64) {
    create_instance(provider, instance).await;
    for execution_id in 1..executions {
        continue_as_new(provider, instance, execution_id).await;
        tokio::time::sleep(APART).await;
    }
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
        let expected_ids: &[u64] = match expected.contains(&execution_id) {
            true if execution_id == current => &[1],
            true => &[1, 100],
            false => &[],
        };
        assert_eq!(event_ids(&events), expected_ids, "events of execution {execution_id} of {instance}");
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
            Some(execution_id) => Some(ended_at(provider, &instance, execution_id).await),
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
        set_status(provider, instance, 3, "Completed", "done").await;
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
    begin_execution(provider, "overlap", 2).await;
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

/// Bulk pruning processes the instances that its filter selects, children included, and adds up the removed rows.
pub async fn test_prune_bulk<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_executions(provider, "root", 3).await;
    create_instance_with_parent(provider, "child", "root").await;
    continue_as_new(provider, "child", 1).await;
    create_executions(provider, "unlisted", 2).await;
    assert_eq!(prune_bulk(provider, only(&[])).await, [0, 0, 0], "an empty list selects nothing");
    assert_eq!(prune_bulk(provider, only(&["unknown"])).await, [0, 0, 0], "unknown ids are skipped");
    assert_eq!(prune_bulk(provider, only(&["root", "child", "unknown"])).await, [2, 3, 6]);
    assert_executions(provider, "root", &[3]).await;
    assert_executions(provider, "child", &[2]).await;
    assert_executions(provider, "unlisted", &[1, 2]).await;

    create_executions(provider, "finished", 2).await;
    set_status(provider, "finished", 2, "Completed", "done").await;
    let later = Some(factory.now_ms() + 3_600_000);
    let finished = InstanceFilter { completed_before: later, ..InstanceFilter::default() };
    assert_eq!(prune_bulk(provider, finished).await, [1, 1, 2], "only one current execution has ended");
    assert_executions(provider, "unlisted", &[1, 2]).await;

    let one = InstanceFilter { limit: Some(1), ..only(&["unlisted", "root"]) };
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
    set_status(provider, "done", 2, "Completed", "done").await;

    assert_eq!(prune_bulk(provider, InstanceFilter::default()).await, [2, 3, 6]);
    assert_executions(provider, "busy", &[3]).await;
    assert_executions(provider, "done", &[2]).await;
    assert_eq!(admin(provider).get_instance_info("busy").await.unwrap().status, "Running");
    poke(provider, "busy").await;
    let (item, _, _) = must_fetch(provider, LONG).await;
    assert_eq!((item.instance.as_str(), item.execution_id, item.history.len()), ("busy", 3, 1));
}
