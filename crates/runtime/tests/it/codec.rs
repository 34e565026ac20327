//! Typed values through client, orchestration and activity, with both codecs.

use outlast_memory::MemoryProvider;
use outlast_model::codec::Codec;
use outlast_provider::Provider;
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use outlast_runtime::{Client, Runtime, RuntimeOptions};
use std::sync::Arc;
use std::time::Duration;

/// The value that `text` has after the way from the client through an orchestration, a queue and an activity and back.
async fn round_trip(codec: Codec, text: &str) -> Vec<Option<String>> {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let activities = ActivityRegistry::builder()
        .register_typed("Same", |_, value: Option<String>| async move { Ok(value) })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register_typed(
            "Echo",
            |ctx: outlast_engine::OrchestrationContext, value: Option<String>| async move {
                let queued: Option<String> = ctx.try_dequeue_event_typed("q").await?;
                let done: Option<String> = ctx.schedule_activity_typed("Same", &value).await?;
                Ok(vec![value, queued, done])
            },
        )
        .build();
    let options = RuntimeOptions { codec, ..RuntimeOptions::default() };
    let runtime = Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
    let client = Client::new(store).with_codec(codec);
    let value = Some(text.to_string());
    let start = client.start_request("Echo").instance("i").input_typed(&value).with_event_typed("q", &value);
    start.send().await.unwrap().started().unwrap();
    let answer = client.wait_for_orchestration_typed("i", Duration::from_secs(10)).await.unwrap().unwrap();
    runtime.shutdown(None).await;
    answer
}

#[tokio::test]
async fn c18_the_json_codec_round_trips_every_text_and_the_contract_codec_does_not() {
    for text in ["plain", "\"quoted\"", "null", "7"] {
        assert_eq!(round_trip(Codec::Json, text).await, vec![Some(text.to_string()); 3], "{text}");
    }
    assert_eq!(round_trip(Codec::Contract, "plain").await, vec![Some("plain".to_string()); 3]);
    assert_eq!(
        round_trip(Codec::Contract, "null").await,
        vec![None; 3],
        "the contract's codec reads null as None"
    );
}
