//! Events and messages with a key, which an instance takes once.

use super::operate::Act;
use crate::problem::{Code, Problem};
use axum::http::HeaderMap;
use outlast::client::ClientError;
use outlast::providers::EnqueueOnce;

/// The header Idempotency-Key.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let key = headers.get("idempotency-key").map(|key| key.to_str().map(str::to_string));
    key.transpose().map_err(|_| Problem::invalid("Idempotency-Key is not visible ASCII text"))
}

/// Sends an event with a key. Returns whether it was stored, and whether the audit has a record. A repeated event has no record: the
/// audit has that of the first one.
pub(super) async fn send_once(
    act: &Act<'_>,
    instance: &str,
    sent: impl Future<Output = Result<EnqueueOnce, ClientError>>,
) -> Result<(bool, bool), Problem> {
    let problem = match sent.await? {
        EnqueueOnce::Repeated => return Ok((false, false)),
        EnqueueOnce::Stored => {
            let ((), audited) = act.run(std::future::ready(Ok(()))).await?;
            return Ok((true, audited));
        }
        EnqueueOnce::Ended => {
            Problem::new(Code::ENDED, format!("instance '{instance:.80}' has ended: a message has no effect"))
        }
        EnqueueOnce::NotFound => Problem::no_instance(instance),
        _ => Problem::new(
            Code::UNSUPPORTED,
            "this store keeps no keys of events: send the event without a key",
        ),
    };
    let refused: Result<((), bool), Problem> = act.run(std::future::ready(Err(problem))).await;
    refused.map(|((), audited)| (false, audited))
}
