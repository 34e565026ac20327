//! Key-value reads.

use super::stores::{Noting, Plain};
use super::*;

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn reads_return_committed_values() {
    let (store, client) = memory();
    assert_eq!(client.get_kv_value("i", "k").await.unwrap(), None);
    assert!(client.get_kv_all_values("i").await.unwrap().is_empty());
    turn(&*store, "i", 1, 1, vec![started(), sets("k", "7"), sets("s", "\"text\"")]).await;
    assert_eq!(client.get_kv_value("i", "k").await.unwrap().as_deref(), Some("7"));
    assert_eq!(client.get_kv_value("i", "other").await.unwrap(), None);
    let all = client.get_kv_all_values("i").await.unwrap();
    assert_eq!((all.len(), all["k"].as_str(), all["s"].as_str()), (2, "7", "\"text\""));
    assert_eq!(client.get_kv_value_typed::<u32>("i", "k").await.unwrap(), Some(7));
    assert_eq!(client.get_kv_value_typed::<String>("i", "s").await.unwrap().as_deref(), Some("text"));
    assert_eq!(client.get_kv_value_typed::<u32>("i", "other").await.unwrap(), None);
    let text = refusal(client.get_kv_value_typed::<bool>("i", "k").await);
    assert_eq!(
        text,
        "KV deserialization error: invalid type: integer `7`, expected a boolean at line 1 column 1"
    );
    let text = refusal(client.wait_for_kv_value_typed::<bool>("i", "k", Duration::ZERO).await);
    assert!(text.starts_with("KV deserialization error: "), "{text}");
}

/// Waits for a key that a second turn sets after this number of milliseconds. Returns the time at which the wait ended.
async fn wait_for_value(store: &Arc<impl Provider>, after: u64) -> u64 {
    let client = Client::new(Arc::clone(store) as Arc<dyn Provider>);
    let work = async {
        turn(&**store, "i", 1, 1, vec![started()]).await;
        pass(after).await;
        turn(&**store, "i", 1, 2, vec![sets("k", "7")]).await;
    };
    let (waited, ()) = tokio::join!(timed(client.wait_for_kv_value_typed::<u32>("i", "k", MINUTE)), work);
    assert_eq!(waited.0.unwrap(), 7);
    waited.1
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_sets_the_key_ends_the_wait() {
    assert_eq!(wait_for_value(&Arc::new(Noting::new()), 1_234).await, 1_234);
    let plain = Arc::new(Plain::new());
    assert_eq!(wait_for_value(&plain, 100).await, 155);
    assert_eq!(plain.notes.times("get_kv_value"), [0, 5, 15, 35, 75, 155]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_missing_key_times_out() {
    let (store, client) = memory();
    turn(&*store, "i", 1, 1, vec![started(), completed("out")]).await;
    for ms in [0, 321] {
        let timeout = Duration::from_millis(ms);
        let (result, took) = timed(client.wait_for_kv_value("i", "k", timeout)).await;
        assert!(matches!(result, Err(ClientError::Timeout)));
        assert_eq!(took, ms);
    }
}
