//! Key-value reads of clients: the effects of the three key-value events in the order of their commits.

use super::*;
use crate::ProviderFactory;
use outlast_provider::model::limits::MAX_KV_VALUE_BYTES;

/// A committed value can be read, alone and with all others.
pub async fn test_kv_set_and_get<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.turn(&[set("a", "1"), set("b", "2")]).await;
    writer.assert_live(&[("a", Some("1")), ("b", Some("2"))]).await;
    writer.turn(&[set("c", "3")]).await;
    writer.assert_live(&[("a", Some("1")), ("b", Some("2")), ("c", Some("3"))]).await;
}

/// The last write of a key wins, within a turn and across turns.
pub async fn test_kv_overwrite<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.turn(&[set("a", "1"), set("b", "1"), set("a", "2")]).await;
    writer.assert_live(&[("a", Some("2")), ("b", Some("1"))]).await;
    writer.turn(&[set("a", "3")]).await;
    writer.assert_live(&[("a", Some("3")), ("b", Some("1"))]).await;
}

/// Clearing a key removes it and no other.
pub async fn test_kv_clear_single<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.turn(&[set("a", "1"), set("b", "1"), set("c", "1")]).await;
    writer.turn(&[clear("a"), set("d", "1"), clear("d")]).await;
    writer.assert_live(&[("a", None), ("b", Some("1")), ("c", Some("1")), ("d", None)]).await;
}

/// Clearing all removes the keys of earlier turns and of the same one.
pub async fn test_kv_clear_all<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.turn(&[set("a", "1"), set("b", "1")]).await;
    writer.turn(&[set("c", "1")]).await;
    writer.assert_live(&[("a", Some("1")), ("b", Some("1")), ("c", Some("1"))]).await;
    writer.turn(&[set("d", "1"), clear_all()]).await;
    writer.assert_live(&[("a", None), ("b", None), ("c", None), ("d", None)]).await;
}

/// A key that was never written has no value, even if a similar key has one.
pub async fn test_kv_get_nonexistent<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.assert_live(&[("Key", None)]).await;
    writer.turn(&[set("Key", "1")]).await;
    writer.assert_live(&[("Key", Some("1")), ("key", None), ("Key ", None), ("Ke", None), ("%", None)]).await;
}

/// An unknown instance has no values, even while its start waits in the queue.
pub async fn test_kv_get_unknown_instance<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "known").await;
    writer.turn(&[set("a", "1")]).await;
    enqueue(provider, start_item("queued")).await;
    for unknown in ["unknown", "queued", "Known"] {
        assert_live(provider, unknown, &[("a", None)]).await;
    }
    writer.assert_live(&[("a", Some("1"))]).await;
}

/// Clearing a key that does not exist changes nothing, then and when the execution ends.
pub async fn test_kv_clear_nonexistent_key<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.turn(&[clear("missing")]).await;
    writer.turn(&[set("a", "1"), clear("missing")]).await;
    writer.assert_live(&[("a", Some("1")), ("missing", None)]).await;
    writer.end("Completed", &[clear("also missing")]).await;
    writer.assert_live(&[("a", Some("1")), ("missing", None), ("also missing", None)]).await;
    writer.assert_snapshot(&[("a", "1")]).await;
}

/// A write after a clear counts, whether of the key or of all keys, in the same turn or a later one.
pub async fn test_kv_set_after_clear<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.turn(&[set("a", "1"), clear("a"), set("a", "2"), set("b", "1")]).await;
    writer.assert_live(&[("a", Some("2")), ("b", Some("1"))]).await;
    writer.turn(&[clear_all(), set("b", "2")]).await;
    writer.assert_live(&[("a", None), ("b", Some("2"))]).await;
    writer.turn(&[set("a", "3")]).await;
    writer.assert_live(&[("a", Some("3")), ("b", Some("2"))]).await;
}

/// An empty string is a value and no removal, also after the execution has ended.
pub async fn test_kv_empty_value<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    writer.turn(&[set("a", "1"), set("empty", "")]).await;
    writer.assert_live(&[("a", Some("1")), ("empty", Some(""))]).await;
    writer.end("Completed", &[set("a", "")]).await;
    writer.assert_live(&[("a", Some("")), ("empty", Some(""))]).await;
    writer.assert_snapshot(&[("a", ""), ("empty", "")]).await;
}

/// Values up to the contract's limit are read back completely.
pub async fn test_kv_large_value<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    let digits: String = (0..10_000).map(|n| format!("{n:04}")).collect();
    let medium = &digits[..16 * 1024];
    let largest = "ä".repeat(MAX_KV_VALUE_BYTES / "ä".len());
    writer.turn(&[set("medium", medium), set("largest", &largest)]).await;
    writer.assert_live(&[("medium", Some(medium)), ("largest", Some(&largest))]).await;
    writer.end("Completed", &[]).await;
    writer.assert_live(&[("medium", Some(medium)), ("largest", Some(&largest))]).await;
    writer.assert_snapshot(&[("medium", medium), ("largest", &largest)]).await;
}

/// A key is any text; it is stored unchanged and not confused with similar keys.
pub async fn test_kv_special_chars_in_key<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut writer = Writer::create(provider, "kv").await;
    let keys = [
        "%",
        "_",
        "a",
        "A",
        " a",
        "a ",
        "a/b",
        "a\\b",
        "a:b",
        "a?b#c",
        "a.b",
        "$.a",
        "'; DROP TABLE kv; --",
        "\"",
        "{\"a\":1}",
        "line\nbreak\ttab",
        "ключ",
        "鍵",
        "🔑",
        "é",
        "e\u{301}",
    ];
    let values: Vec<String> = (0..keys.len()).map(|n| format!("value-{n}")).collect();
    let mut pairs: Vec<(&str, &str)> = keys.into_iter().zip(values.iter().map(String::as_str)).collect();
    let changes: Vec<EventKind> = pairs.iter().map(|(key, value)| set(key, value)).collect();
    writer.turn(&changes).await;
    let mut live: Vec<(&str, Option<&str>)> = pairs.iter().map(|(key, value)| (*key, Some(*value))).collect();
    writer.assert_live(&live).await;

    // A clear removes only its own key, also if the key has a meaning in the store's query language.
    let cleared = ["%", "_", "a", "e\u{301}"];
    writer.end("Completed", &cleared.map(clear)).await;
    for (key, value) in &mut live {
        *value = value.filter(|_| !cleared.contains(key));
    }
    pairs.retain(|(key, _)| !cleared.contains(key));
    writer.assert_live(&live).await;
    writer.assert_snapshot(&pairs).await;
}
