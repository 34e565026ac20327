//! Instances do not share keys.

use super::*;
use crate::ProviderFactory;

/// The same key has one value per instance, and the lease decides which instance a commit writes to.
pub async fn test_kv_instance_isolation<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut one = Writer::create(provider, "one").await;
    let mut two = Writer::create(provider, "two").await;
    one.turn(&[set("shared", "1"), set("a", "1")]).await;
    two.turn(&[set("shared", "2"), set("b", "2")]).await;
    let token = next_turn(provider, "two").await;
    Turn::new(&token).event(event("one", 99, set("misnamed", "2"))).commit(provider).await;

    let live_one = [("shared", Some("1")), ("a", Some("1")), ("b", None), ("misnamed", None)];
    let live_two = [("shared", Some("2")), ("a", None), ("b", Some("2")), ("misnamed", Some("2"))];
    one.assert_live(&live_one).await;
    two.assert_live(&live_two).await;
    one.end("Completed", &[]).await;
    one.assert_snapshot(&[("shared", "1"), ("a", "1")]).await;
    two.assert_snapshot(&[]).await;
    one.assert_live(&live_one).await;
    two.assert_live(&live_two).await;
}

/// Clearing a key, or all of them, reaches no other instance's keys, of running and of finished executions alike.
pub async fn test_kv_clear_isolation<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let mut cleared = Writer::create(provider, "cleared").await;
    let mut other = Writer::create(provider, "other").await;
    for writer in [&mut cleared, &mut other] {
        writer.continue_as_new(&[set("a", "1"), set("b", "1")]).await;
        writer.turn(&[set("a", "2"), set("c", "2")]).await;
    }
    let untouched = [("a", Some("2")), ("b", Some("1")), ("c", Some("2"))];

    cleared.turn(&[clear("a")]).await;
    cleared.assert_live(&[("a", None), ("b", Some("1")), ("c", Some("2"))]).await;
    other.assert_live(&untouched).await;
    cleared.continue_as_new(&[clear_all()]).await;
    cleared.assert_live(&[("a", None), ("b", None), ("c", None)]).await;
    other.assert_live(&untouched).await;
    other.assert_snapshot(&[("a", "1"), ("b", "1")]).await;
}
