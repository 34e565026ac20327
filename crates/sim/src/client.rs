//! What clients do: start, send, cancel, wait; again and again until they are told that it was done.

use crate::plan::{Act, Root};
use crate::program::ORCHESTRATION;
use crate::shared::Shared;
use crate::store::FaultyStore;
use outlast_runtime::{Client, ClientError, OrchestrationStatus};
use std::sync::Arc;
use std::time::Duration;

/// Drives one instance to its end; returns how it ended.
pub(crate) async fn drive(shared: Arc<Shared>, root: Root) -> (Root, OrchestrationStatus) {
    let client = Client::new(FaultyStore::for_client(&shared));
    let mut sent = 0;
    for (at, act) in &root.acts {
        let pause = at.saturating_sub(shared.now_ms());
        tokio::time::sleep(Duration::from_millis(pause)).await;
        while let Err(error) = perform(&client, &root, act, &mut sent).await {
            if !error.is_retryable() {
                shared.fail(format!("I11: a client's call for '{}' was refused: {error}", root.instance));
            }
            rest(&shared).await;
        }
    }
    loop {
        match client.wait_for_orchestration(&root.instance, Duration::from_secs(5)).await {
            Ok(status) => return (root, status),
            Err(_) => rest(&shared).await,
        }
    }
}

async fn rest(shared: &Shared) {
    let pause = shared.dice().between(20, 500);
    tokio::time::sleep(Duration::from_millis(pause)).await;
}

/// Every try has data of its own, so that two deliveries of one cannot be taken for one delivery of two.
async fn perform(client: &Client, root: &Root, act: &Act, sent: &mut u64) -> Result<(), ClientError> {
    *sent += 1;
    let (instance, data) = (root.instance.as_str(), format!("{}.{sent}", root.instance));
    match act {
        Act::Start => client.start_orchestration(instance, ORCHESTRATION, root.program.input()).await,
        Act::StartOnce(first) => {
            let start = client.start_request(ORCHESTRATION).instance(instance).input(root.program.input());
            let start = first.iter().fold(start, |start, queue| start.with_event(queue, data.clone()));
            start.send().await.map(drop)
        }
        Act::Enqueue(queue) => client.enqueue_event(instance, queue, data).await,
        Act::Raise(name) => client.raise_event(instance, name, data).await,
        Act::Cancel => client.cancel_instance(instance, "no longer wanted").await,
    }
}
