//! Removing old executions never removes values: they belong to the instance.

use super::*;
use crate::ProviderFactory;
use outlast_provider::PruneOptions;

/// Removes all executions but the current one, and checks that it did.
async fn prune(writer: &Writer<'_>) {
    let pruned = admin(writer.provider).prune_executions(writer.instance, PruneOptions::default()).await;
    assert_eq!(pruned.unwrap().executions_deleted, writer.execution_id - 1);
    let left = admin(writer.provider).list_executions(writer.instance).await.unwrap();
    assert_eq!(left, [writer.execution_id]);
}

/// A key that several executions wrote keeps its last value.
pub async fn test_kv_prune_preserves_overwritten<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.continue_as_new(&[set("a", "1")]).await;
    writer.continue_as_new(&[set("a", "2")]).await;
    writer.turn(&[set("b", "3")]).await;
    prune(&writer).await;
    writer.assert_live(&[("a", Some("2")), ("b", Some("3"))]).await;
    writer.assert_snapshot(&[("a", "2")]).await;
}

/// Keys of every removed execution stay, and so does the absence of those that were cleared.
pub async fn test_kv_prune_preserves_all_keys<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.continue_as_new(&[set("a", "1"), set("gone", "1")]).await;
    writer.continue_as_new(&[set("b", "2"), clear("gone")]).await;
    writer.end("Completed", &[set("c", "3")]).await;
    prune(&writer).await;
    writer.assert_live(&[("a", Some("1")), ("b", Some("2")), ("c", Some("3")), ("gone", None)]).await;
    writer.assert_snapshot(&[("a", "1"), ("b", "2"), ("c", "3")]).await;
}

/// Keys that the running execution wrote or cleared stay as they are, also when the execution ends.
pub async fn test_kv_prune_current_execution_protected<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.continue_as_new(&[set("a", "1"), set("b", "1")]).await;
    writer.turn(&[clear("a"), set("b", "2"), set("c", "2")]).await;
    prune(&writer).await;
    writer.assert_live(&[("a", None), ("b", Some("2")), ("c", Some("2"))]).await;
    writer.assert_snapshot(&[("a", "1"), ("b", "1")]).await;
    writer.end("Completed", &[]).await;
    writer.assert_snapshot(&[("b", "2"), ("c", "2")]).await;
}

/// A key that only the first, removed execution wrote stays through later executions and prunings.
pub async fn test_kv_delta_prune_untouched_key_survives<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.continue_as_new(&[set("untouched", "1"), set("busy", "1")]).await;
    writer.continue_as_new(&[set("busy", "2")]).await;
    prune(&writer).await;
    writer.turn(&[set("busy", "3")]).await;
    writer.assert_live(&[("untouched", Some("1")), ("busy", Some("3"))]).await;
    writer.continue_as_new(&[]).await;

    let bulk =
        admin(provider).prune_executions_bulk(Default::default(), PruneOptions::default()).await.unwrap();
    assert_eq!(bulk.executions_deleted, 1, "execution 3 has ended meanwhile");
    writer.assert_live(&[("untouched", Some("1")), ("busy", Some("3"))]).await;
    writer.assert_snapshot(&[("untouched", "1"), ("busy", "3")]).await;
}
