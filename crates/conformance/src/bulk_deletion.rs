//! Bulk deletion removes ended roots that match its filter, each with its descendants.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::{InstanceFilter, Provider};

async fn delete(provider: &dyn Provider, filter: InstanceFilter) -> [u64; 4] {
    deleted(&admin(provider).delete_instance_bulk(filter).await.expect("delete_instance_bulk succeeds"))
}

/// Ids select those instances, unknown ids and an empty list select nothing, and an empty filter selects all that
/// have ended.
pub async fn test_delete_instance_bulk_filter_combinations<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    for instance in ["a", "b's", "c", "d"] {
        create_completed(provider, instance, "done").await;
    }
    create_with(provider, "failed", ended("Failed", "broken", None)).await;
    create_instance(provider, "running").await;
    enqueue_activity(provider, activity("c", 2)).await;
    let later = factory.now_ms() + 3_600_000;

    let cases = [
        (only(&[]), [0, 0, 0, 0]),
        (only(&["unknown", "' OR '1'='1"]), [0, 0, 0, 0]),
        (InstanceFilter { completed_before: Some(1), ..only(&["a"]) }, [0, 0, 0, 0]),
        (only(&["a", "unknown", "b's"]), [2, 2, 2, 0]),
        (InstanceFilter { completed_before: Some(later), ..only(&["d"]) }, [1, 1, 1, 0]),
    ];
    for (filter, expected) in cases {
        assert_eq!(delete(provider, filter.clone()).await, expected, "{filter:?}");
    }
    assert_eq!(instances(provider).await, ["c", "failed", "running"]);
    assert_eq!(
        delete(provider, InstanceFilter::default()).await,
        [2, 2, 2, 1],
        "c, its activity, and failed"
    );
    assert_eq!(instances(provider).await, ["running"]);
    assert_eq!(provider.read("running").await.unwrap().len(), 1);
}

/// Instances that run, are between two executions, or are children are skipped, and a limit bounds each call.
pub async fn test_delete_instance_bulk_safety_and_limits<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "running").await;
    create_with(provider, "between", ended("ContinuedAsNew", "next", None)).await;
    create_with(provider, "child", ended("Completed", "done", Some("running"))).await;
    let safe = ["between", "child", "running"];
    assert_eq!(delete(provider, only(&safe)).await, [0; 4], "none of these may go");
    assert_eq!(instances(provider).await, safe);

    for instance in ["a", "b", "c", "d"] {
        create_completed(provider, instance, "done").await;
    }
    for (deleted, left) in [(2, 5), (2, 3), (0, 3)] {
        let filter = InstanceFilter { limit: Some(2), ..InstanceFilter::default() };
        assert_eq!(delete(provider, filter).await, [deleted, deleted, deleted, 0]);
        assert_eq!(instances(provider).await.len(), left);
    }
    assert_eq!(instances(provider).await, safe);
}

/// `completed_before` is compared with the end of the current execution, to the millisecond, and excludes it.
pub async fn test_delete_instance_bulk_completed_before_filter<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "running").await;
    for instance in ["early", "late"] {
        create_completed(provider, instance, "done").await;
        tokio::time::sleep(APART).await;
    }
    for (instance, before, after) in [
        ("early", &["early", "late", "running"][..], &["late", "running"][..]),
        ("late", &["late", "running"], &["running"]),
    ] {
        let end = ended_at(provider, instance, 1).await;
        for (cut_off, deleted, left) in [(end, 0, before), (end + 1, 1, after)] {
            let filter = InstanceFilter { completed_before: Some(cut_off), ..InstanceFilter::default() };
            assert_eq!(
                delete(provider, filter).await[0],
                deleted,
                "{instance} ended at {end}, cut-off {cut_off}"
            );
            assert_eq!(instances(provider).await, left);
        }
    }
}

/// The descendants of every deleted root are deleted and counted; a root whose child still runs is not deleted.
pub async fn test_delete_instance_bulk_cascades_to_children<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    for (instance, parent) in [
        ("root-1", None),
        ("child-1", Some("root-1")),
        ("grandchild-1", Some("child-1")),
        ("root-2", None),
        ("child-2a", Some("root-2")),
        ("child-2b", Some("root-2")),
        ("root-3", None),
    ] {
        create_with(provider, instance, ended("Completed", "done", parent)).await;
    }
    create_instance(provider, "running").await;
    assert_eq!(delete(provider, InstanceFilter::default()).await, [7, 7, 7, 0]);
    assert_eq!(instances(provider).await, ["running"]);

    create_completed(provider, "root-4", "done").await;
    create_instance_with_parent(provider, "child-4", "root-4").await;
    assert_eq!(delete(provider, InstanceFilter::default()).await, [0; 4], "child-4 still runs");
    assert_eq!(instances(provider).await, ["child-4", "root-4", "running"]);
}
