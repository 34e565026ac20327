//! Starts of instances.

use super::operate::{Act, Ids};
use crate::app::Shared;
use crate::extract::Body;
use crate::problem::{Code, Problem};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use outlast::client::Conflict;
use outlast::providers::StartOutcome;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::ToSchema;

/// A start.
#[derive(Deserialize, ToSchema)]
pub(crate) struct StartBody {
    /// The id of the instance; not with the header Idempotency-Key, from which an id is made.
    instance: Option<String>,
    orchestration: String,
    version: Option<String>,
    /// The input as text.
    #[serde(default)]
    input: String,
    /// The time for which the start waits in the queue.
    delay_ms: Option<u64>,
    /// The policy for an instance that exists; with the header Idempotency-Key `report`, else `fail` if not given.
    if_exists: Option<IfExists>,
    /// Messages for queues of the instance, which are stored in the same step.
    #[serde(default)]
    messages: Vec<StartMessage>,
    /// The reason, for the audit.
    #[serde(default)]
    reason: String,
}

/// The policy for an instance that exists.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IfExists {
    /// Nothing is stored, and the answer is 409.
    Fail,
    /// Nothing is stored, and the answer is 200 with `started: false`.
    Report,
    /// The messages are stored for the instance, and the answer is 200 with `started: false`.
    UseExisting,
}

/// A message of a start.
#[derive(Deserialize, ToSchema)]
pub(crate) struct StartMessage {
    queue: String,
    /// The data as text.
    #[serde(default)]
    data: String,
}

/// A start that was stored, or an instance that existed.
#[derive(Serialize, ToSchema)]
pub(crate) struct Started {
    instance: String,
    /// False for an instance that existed.
    started: bool,
    /// The status of the instance that existed; null before its first turn.
    status: Option<String>,
    /// Whether the audit has a record; false if the store keeps none.
    audited: bool,
}

pub(super) async fn start(
    State(app): State<Shared>,
    (caller, request): Ids,
    headers: HeaderMap,
    Body(body): Body<StartBody>,
) -> Result<(StatusCode, Json<Started>), Problem> {
    let key = super::keyed::key(&headers)?;
    let target = match (&body.instance, &key) {
        (Some(instance), _) => instance.clone(),
        (None, Some(key)) => format!("{}:{key}", body.orchestration),
        (None, None) => return Err(Problem::invalid("give `instance`, or the header Idempotency-Key")),
    };
    let act = Act::new(&app, (&caller, &request), "instance.start", &target, &body.reason)?;
    let if_exists = body.if_exists.unwrap_or(if key.is_some() { IfExists::Report } else { IfExists::Fail });
    let conflict = if if_exists == IfExists::UseExisting { Conflict::UseExisting } else { Conflict::Fail };
    let mut builder = app.client.start_request(body.orchestration).input(body.input).if_exists(conflict);
    if let Some(instance) = body.instance {
        builder = builder.instance(instance);
    }
    if let Some(key) = &key {
        builder = builder.idempotency_token(key.as_str());
    }
    if let Some(version) = body.version {
        builder = builder.version(version);
    }
    if let Some(delay) = body.delay_ms {
        builder = builder.delay(Duration::from_millis(delay));
    }
    // A text that is no trace context is ignored, as its format requires.
    if let Some(Ok(traceparent)) = headers.get("traceparent").map(|value| value.to_str()) {
        builder = builder.traceparent(traceparent);
    }
    for StartMessage { queue, data } in body.messages {
        builder = builder.with_event(queue, data);
    }
    let change = async {
        let receipt = builder.send().await?;
        match &receipt.outcome {
            StartOutcome::AlreadyExists { .. } if if_exists == IfExists::Fail => Err(Problem::new(
                Code::EXISTS,
                format!(
                    "instance '{:.80}' exists already: choose another id, or delete it first",
                    receipt.instance
                ),
            )),
            _ => Ok(receipt),
        }
    };
    let (receipt, audited) = act.run(change).await?;
    let (code, started, status) = match receipt.outcome {
        StartOutcome::Started => (StatusCode::CREATED, true, None),
        StartOutcome::AlreadyExists { status } => (StatusCode::OK, false, status),
    };
    Ok((code, Json(Started { instance: receipt.instance, started, status, audited })))
}
