//! The key-value snapshot of a fetched turn: the values that ended executions left, with the times of their writes.

use super::*;
use crate::ProviderFactory;

/// Nothing was written, so the snapshot is empty, on the first turn and on later ones.
pub async fn test_kv_snapshot_empty<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut neighbour = Writer::create(provider, "neighbour").await;
    neighbour.end("Completed", &[set("a", "1")]).await;
    neighbour.assert_snapshot(&[("a", "1")]).await;

    enqueue(provider, start_item("empty")).await;
    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!((item.instance.as_str(), item.kv_snapshot), ("empty", HashMap::new()));
    Turn::new(&token).event(started("empty")).metadata(named()).commit(provider).await;
    let empty = Writer { provider, instance: "empty", execution_id: 1, last_event_id: 1 };
    empty.assert_snapshot(&[]).await;
}

/// The writes of an ended execution are in the snapshot, with the times of the events.
pub async fn test_kv_snapshot_in_fetch<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.turn(&[set("a", "1"), set("b", "1")]).await;
    writer.end("Completed", &[set("b", "2"), set("c", "1")]).await;
    writer.assert_snapshot(&[("a", "1"), ("b", "2"), ("c", "1")]).await;
}

/// A cleared key leaves the snapshot when the execution that cleared it ends, not before.
pub async fn test_kv_snapshot_after_clear_single<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.turn(&[set("gone", "1"), clear("gone"), set("a", "1"), set("b", "1")]).await;
    writer.continue_as_new(&[]).await;
    writer.assert_snapshot(&[("a", "1"), ("b", "1")]).await;
    writer.turn(&[clear("a")]).await;
    writer.assert_snapshot(&[("a", "1"), ("b", "1")]).await;
    writer.continue_as_new(&[]).await;
    writer.assert_snapshot(&[("b", "1")]).await;
}

/// After clearing all, the next execution's snapshot holds only keys that were written afterwards.
pub async fn test_kv_snapshot_after_clear_all<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.continue_as_new(&[set("a", "1"), set("b", "1")]).await;
    writer.turn(&[set("c", "1"), clear_all(), set("b", "2")]).await;
    writer.assert_snapshot(&[("a", "1"), ("b", "1")]).await;
    writer.continue_as_new(&[]).await;
    writer.assert_snapshot(&[("b", "2")]).await;
    writer.continue_as_new(&[clear_all()]).await;
    writer.assert_snapshot(&[]).await;
}

/// Each execution reads the keys of all earlier executions.
pub async fn test_kv_snapshot_cross_execution<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.continue_as_new(&[set("a", "1")]).await;
    writer.assert_snapshot(&[("a", "1")]).await;
    writer.turn(&[set("b", "2")]).await;
    writer.continue_as_new(&[]).await;
    writer.assert_snapshot(&[("a", "1"), ("b", "2")]).await;
    writer.turn(&[set("c", "3")]).await;
    writer.assert_snapshot(&[("a", "1"), ("b", "2")]).await;
    writer.assert_live(&[("a", Some("1")), ("b", Some("2")), ("c", Some("3"))]).await;
}

/// Replay rebuilds the running execution's writes itself, so they are not in its snapshot.
pub async fn test_kv_delta_snapshot_excludes_current_execution<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.turn(&[set("a", "1")]).await;
    writer.assert_snapshot(&[]).await;
    writer.end("Running", &[set("b", "1")]).await;
    writer.assert_snapshot(&[]).await;
    writer.assert_live(&[("a", Some("1")), ("b", Some("1"))]).await;
}

/// The boundary runs between executions: the finished one's writes are in, an overwrite by the running one is not.
pub async fn test_kv_delta_snapshot_includes_completed_execution<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.turn(&[set("a", "1"), set("b", "1")]).await;
    writer.continue_as_new(&[set("b", "2")]).await;
    writer.turn(&[set("a", "3"), set("c", "3")]).await;
    writer.assert_snapshot(&[("a", "1"), ("b", "2")]).await;
    writer.assert_live(&[("a", Some("3")), ("b", Some("2")), ("c", Some("3"))]).await;
}
