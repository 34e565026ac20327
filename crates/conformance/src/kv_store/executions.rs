//! Across continue-as-new the last writer wins.

use super::*;
use crate::ProviderFactory;

/// A later execution's write replaces an earlier one's: at once for clients, with its end for replay.
pub async fn test_kv_cross_execution_overwrite<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.continue_as_new(&[set("a", "1"), set("b", "1")]).await;
    writer.turn(&[set("a", "2")]).await;
    writer.assert_live(&[("a", Some("2")), ("b", Some("1"))]).await;
    writer.assert_snapshot(&[("a", "1"), ("b", "1")]).await;
    writer.continue_as_new(&[]).await;
    writer.assert_live(&[("a", Some("2")), ("b", Some("1"))]).await;
    writer.assert_snapshot(&[("a", "2"), ("b", "1")]).await;
}

/// A key that one execution removed can be written again by the next.
pub async fn test_kv_cross_execution_remove_readd<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.continue_as_new(&[set("a", "1"), set("b", "1")]).await;
    writer.continue_as_new(&[clear("a")]).await;
    writer.assert_live(&[("a", None), ("b", Some("1"))]).await;
    writer.assert_snapshot(&[("b", "1")]).await;
    writer.turn(&[set("a", "3")]).await;
    writer.assert_live(&[("a", Some("3")), ("b", Some("1"))]).await;
    writer.continue_as_new(&[]).await;
    writer.assert_snapshot(&[("a", "3"), ("b", "1")]).await;
}

/// Each key keeps the value of the last execution that wrote it, whichever that was.
pub async fn test_kv_execution_id_tracking<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.continue_as_new(&[set("a", "1"), set("b", "1"), set("c", "1")]).await;
    writer.continue_as_new(&[set("b", "2"), set("c", "2")]).await;
    writer.turn(&[set("c", "3")]).await;
    writer.assert_live(&[("a", Some("1")), ("b", Some("2")), ("c", Some("3"))]).await;
    writer.assert_snapshot(&[("a", "1"), ("b", "2"), ("c", "2")]).await;
    writer.end("Completed", &[]).await;
    writer.assert_snapshot(&[("a", "1"), ("b", "2"), ("c", "3")]).await;
    operator(provider).sees_executions("kv", &[1, 2, 3]).await;
}
