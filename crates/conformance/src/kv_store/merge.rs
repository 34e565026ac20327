//! The writes of the running execution overlay the values of earlier ones, and are merged into them when the execution ends.

use super::*;
use crate::ProviderFactory;

/// Clients see both layers as one, the running execution's on top.
pub async fn test_kv_delta_client_reads_merged<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.continue_as_new(&[set("a", "1"), set("b", "1")]).await;
    writer.assert_live(&[("a", Some("1")), ("b", Some("1"))]).await;
    writer.turn(&[set("b", "2"), set("c", "2")]).await;
    writer.assert_live(&[("a", Some("1")), ("b", Some("2")), ("c", Some("2"))]).await;
}

/// Clients do not read a key that the running execution cleared; replay still gets it.
pub async fn test_kv_delta_tombstone_overrides_store<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.continue_as_new(&[set("a", "1"), set("b", "1")]).await;
    writer.turn(&[clear("a")]).await;
    writer.assert_live(&[("a", None), ("b", Some("1"))]).await;
    writer.assert_snapshot(&[("a", "1"), ("b", "1")]).await;
    writer.assert_live(&[("a", None), ("b", Some("1"))]).await;
}

/// Clearing all hides both layers from clients, and only keys that are written afterwards outlive the execution.
pub async fn test_kv_delta_clear_all_tombstones_store<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.continue_as_new(&[set("a", "1"), set("b", "1")]).await;
    writer.turn(&[set("b", "2"), set("c", "2")]).await;
    writer.turn(&[clear_all()]).await;
    writer.assert_live(&[("a", None), ("b", None), ("c", None)]).await;
    writer.assert_snapshot(&[("a", "1"), ("b", "1")]).await;
    writer.turn(&[set("d", "2")]).await;
    writer.assert_live(&[("a", None), ("b", None), ("c", None), ("d", Some("2"))]).await;
    writer.continue_as_new(&[]).await;
    writer.assert_live(&[("a", None), ("b", None), ("c", None), ("d", Some("2"))]).await;
    writer.assert_snapshot(&[("d", "2")]).await;
}

/// Writes and clears of an execution that completes or fails are kept, those of its last turn included.
pub async fn test_kv_delta_merged_on_completion<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    for outcome in ["Completed", "Failed"] {
        let mut writer = Writer::create(provider, outcome).await;
        check_merge(&mut writer, outcome).await;
    }
}

/// Writes and clears of an execution that continues as new are kept, those of its last turn included.
pub async fn test_kv_delta_merged_on_can<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    check_merge(&mut writer, "ContinuedAsNew").await;
    writer.begin_next().await;
    writer.assert_snapshot(&[("kept", "1"), ("changed", "2"), ("last", "2")]).await;
}

/// Overwrites, adds and clears over two turns. The second turn ends the execution.
async fn check_merge(writer: &mut Writer<'_>, outcome: &str) {
    let before = [("kept", "1"), ("changed", "1"), ("dropped", "1"), ("dropped last", "1")];
    writer.continue_as_new(&before.map(|(key, value)| set(key, value))).await;
    writer.turn(&[set("changed", "2"), clear("dropped"), set("passing", "2")]).await;
    writer.assert_snapshot(&before).await;
    writer.end(outcome, &[set("last", "2"), clear("dropped last"), clear("passing")]).await;

    let gone = [("dropped", None), ("dropped last", None), ("passing", None)];
    let there = [("kept", Some("1")), ("changed", Some("2")), ("last", Some("2"))];
    writer.assert_live(&[there, gone].concat()).await;
    writer.assert_snapshot(&[("kept", "1"), ("changed", "2"), ("last", "2")]).await;
}
