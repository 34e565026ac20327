//! The activities that every runtime registers for system calls. The engine answers `NewGuid` and `UtcNowMs` within the turn;
//! histories of older runtimes scheduled them as activities.

use crate::activity_context::ActivityContext;
use crate::handler::{ActivityHandler, FnActivity};
use outlast_engine::SystemCall;
use outlast_provider::{Clock, Entropy};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

#[derive(Deserialize)]
struct KeyOfInstance {
    instance_id: String,
    key: String,
}

/// The name and handler of each built-in activity.
pub(crate) fn builtins(
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> impl Iterator<Item = (String, Arc<dyn ActivityHandler>)> {
    SystemCall::ALL.into_iter().map(move |call| {
        let name = call.activity_name();
        let handler: Arc<dyn ActivityHandler> = match call {
            SystemCall::GetKvValue => Arc::new(FnActivity(read_key)),
            SystemCall::NewGuid | SystemCall::UtcNowMs => {
                let (clock, entropy, name) = (Arc::clone(&clock), Arc::clone(&entropy), name.clone());
                Arc::new(FnActivity(move |_, _| {
                    let answer = SystemCall::answer(&name, clock.now_ms(), || entropy.next_u128());
                    async move { Ok(answer.unwrap_or_default()) }
                }))
            }
        };
        (name, handler)
    })
}

/// The pause before a read is repeated after a retryable error; it doubles up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Reads a key of another instance. Retries retryable errors.
async fn read_key(context: ActivityContext, input: String) -> Result<String, String> {
    let request: KeyOfInstance = serde_json::from_str(&input).map_err(|error| error.to_string())?;
    let client = context.get_client();
    let mut pause = FIRST_PAUSE;
    loop {
        match client.get_kv_value(&request.instance_id, &request.key).await {
            // An unavailable store must not fail the orchestration. The runtime renews the lease meanwhile.
            Err(error) if error.is_retryable() => tokio::time::sleep(pause).await,
            Err(error) => return Err(error.to_string()),
            Ok(value) => return serde_json::to_string(&value).map_err(|error| error.to_string()),
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
