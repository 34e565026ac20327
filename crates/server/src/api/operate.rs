//! Requests that change instances. Each has a reason and is recorded in the audit.

use super::keyed::{key, send_once};
use crate::access::{Caller, RequestId};
use crate::app::Shared;
use crate::extract::{Body, InstanceId, Params};
use crate::problem::{Code, Problem};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use outlast::client::Client;
use outlast::providers::AuditEntry;
use outlast::{OrchestrationStatus, PruneOptions};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use utoipa::ToSchema;

/// The longest reason, in bytes.
const LONGEST_REASON: usize = 1_000;

/// A positional event.
#[derive(Deserialize, ToSchema)]
pub(crate) struct EventBody {
    name: String,
    /// The data as text.
    #[serde(default)]
    data: String,
    /// The reason, for the audit.
    #[serde(default)]
    reason: String,
}

/// A message of a queue.
#[derive(Deserialize, ToSchema)]
pub(crate) struct MessageBody {
    /// The data as text.
    #[serde(default)]
    data: String,
    /// The reason, for the audit.
    #[serde(default)]
    reason: String,
}

/// A request to cancel or to terminate.
#[derive(Deserialize, ToSchema)]
pub(crate) struct CancelBody {
    /// The reason, for the instance and for the audit.
    #[serde(default)]
    reason: String,
}

/// A request with a reason only.
#[derive(Deserialize, ToSchema)]
pub(crate) struct ReasonBody {
    /// The reason, for the audit.
    #[serde(default)]
    reason: String,
}

/// Old executions to delete; both conditions must hold.
#[derive(Deserialize, ToSchema)]
pub(crate) struct PruneBody {
    /// The number of newest executions that are kept.
    keep_last: Option<u32>,
    /// Only executions that ended before this time.
    completed_before_ms: Option<u64>,
    /// The reason, for the audit.
    #[serde(default)]
    reason: String,
}

/// The parameters of a deletion.
#[derive(Deserialize)]
pub(super) struct DeleteParams {
    #[serde(default)]
    reason: String,
    #[serde(default)]
    force: bool,
}

/// A request that was stored, and takes effect at the next turn of the instance.
#[derive(Serialize, ToSchema)]
pub(crate) struct Accepted {
    instance: String,
    /// False if the instance was paused, or not paused, already, and for an event whose key was stored before.
    changed: bool,
    /// Whether the audit has a record; false if the store keeps none.
    audited: bool,
}

/// The numbers of deleted rows.
#[derive(Serialize, ToSchema)]
pub(crate) struct Removed {
    instances: u64,
    executions: u64,
    events: u64,
    messages: u64,
    audited: bool,
}

/// The request that acts, for the audit.
pub(super) struct Act<'a> {
    app: &'a Shared,
    caller: &'a Caller,
    request: &'a RequestId,
    action: &'static str,
    target: &'a str,
    reason: String,
}

impl ReasonBody {
    pub(super) fn reason(&self) -> &str {
        &self.reason
    }
}

impl<'a> Act<'a> {
    /// The reason without blanks around it.
    pub(super) fn reason(&self) -> &str {
        &self.reason
    }

    pub(super) fn new(
        app: &'a Shared,
        (caller, request): (&'a Caller, &'a RequestId),
        action: &'static str,
        target: &'a str,
        reason: &str,
    ) -> Result<Self, Problem> {
        let reason = reason.trim();
        match reason.len() {
            0 => Err(Problem::new(Code::NO_REASON, "say in `reason` why: the audit keeps it")),
            bytes if bytes > LONGEST_REASON => {
                Err(Problem::invalid(format!("`reason` has at most {LONGEST_REASON} bytes")))
            }
            _ => Ok(Self { app, caller, request, action, target, reason: reason.to_string() }),
        }
    }

    /// A client whose own records in the audit have the id of the request.
    pub(super) fn client(&self) -> Client {
        self.app.client.clone().with_request(self.request.0.as_str())
    }

    /// Records the result, and returns whether the store keeps an audit.
    async fn record(&self, done: &Result<(), Problem>) -> Result<bool, Problem> {
        let entry = AuditEntry {
            actor: self.caller.name.clone(),
            action: self.action.to_string(),
            target: self.target.to_string(),
            reason: self.reason.clone(),
            request: Some(self.request.0.clone()),
            result: match done {
                Ok(()) => "done".to_string(),
                Err(problem) => problem.code.name.to_string(),
            },
        };
        Ok(self.app.client.append_audit(&entry).await?)
    }

    /// Runs the change and records it. Requests that the client refuses are recorded too.
    pub(super) async fn run<T>(
        &self,
        change: impl Future<Output = Result<T, Problem>>,
    ) -> Result<(T, bool), Problem> {
        let (done, value) = match change.await {
            Ok(value) => (Ok(()), Some(value)),
            Err(problem) => (Err(problem), None),
        };
        let audited = self.record(&done).await;
        done?;
        match (value, audited) {
            (Some(value), Ok(audited)) => Ok((value, audited)),
            (_, Err(problem)) => Err(Problem::new(
                problem.code,
                format!("the change was made, and the audit could not record it: {}", problem.detail),
            )),
            (None, Ok(_)) => Err(Problem::of_status(StatusCode::INTERNAL_SERVER_ERROR)),
        }
    }

    /// An error for an instance that does not run: messages to it have no effect. A start in the queue counts as running.
    async fn must_run(&self) -> Result<(), Problem> {
        match self.app.client.get_orchestration_status(self.target).await? {
            OrchestrationStatus::Running { .. } => Ok(()),
            OrchestrationStatus::NotFound => crate::view::why(self.app, self.target).await.map(drop),
            OrchestrationStatus::Completed { .. } | OrchestrationStatus::Failed { .. } => Err(Problem::new(
                Code::ENDED,
                format!("instance '{:.80}' has ended: a message has no effect", self.target),
            )),
        }
    }
}

pub(super) type Ids = (Extension<Caller>, Extension<RequestId>);

pub(super) type Answer = Result<(StatusCode, Json<Accepted>), Problem>;

pub(super) fn accepted(id: String, changed: bool, audited: bool) -> (StatusCode, Json<Accepted>) {
    (StatusCode::ACCEPTED, Json(Accepted { instance: id, changed, audited }))
}

pub(super) async fn event(
    State(app): State<Shared>,
    (caller, request): Ids,
    InstanceId(id): InstanceId,
    headers: HeaderMap,
    Body(body): Body<EventBody>,
) -> Answer {
    let act = Act::new(&app, (&caller, &request), "instance.event", &id, &body.reason)?;
    if let Some(key) = key(&headers)? {
        let sent = app.client.raise_event_once(id.as_str(), body.name, body.data, &key);
        let (stored, audited) = send_once(&act, &id, sent).await?;
        return Ok(accepted(id, stored, audited));
    }
    act.must_run().await?;
    let change = async { Ok(app.client.raise_event(id.as_str(), body.name, body.data).await?) };
    let ((), audited) = act.run(change).await?;
    Ok(accepted(id, true, audited))
}

pub(super) async fn message(
    State(app): State<Shared>,
    (caller, request): Ids,
    InstanceId(id): InstanceId,
    Path(mut segments): Path<HashMap<String, String>>,
    headers: HeaderMap,
    Body(body): Body<MessageBody>,
) -> Answer {
    let queue = segments.remove("queue").unwrap_or_default();
    let act = Act::new(&app, (&caller, &request), "instance.message", &id, &body.reason)?;
    if let Some(key) = key(&headers)? {
        let sent = app.client.enqueue_event_once(id.as_str(), queue, body.data, &key);
        let (stored, audited) = send_once(&act, &id, sent).await?;
        return Ok(accepted(id, stored, audited));
    }
    act.must_run().await?;
    let change = async { Ok(app.client.enqueue_event(id.as_str(), queue, body.data).await?) };
    let ((), audited) = act.run(change).await?;
    Ok(accepted(id, true, audited))
}

pub(super) async fn cancel(
    State(app): State<Shared>,
    (caller, request): Ids,
    InstanceId(id): InstanceId,
    Body(body): Body<CancelBody>,
) -> Answer {
    let act = Act::new(&app, (&caller, &request), "instance.cancel", &id, &body.reason)?;
    act.must_run().await?;
    let change = async { Ok(app.client.cancel_instance(id.as_str(), act.reason.as_str()).await?) };
    let ((), audited) = act.run(change).await?;
    Ok(accepted(id, true, audited))
}

pub(super) async fn terminate(
    State(app): State<Shared>,
    (caller, request): Ids,
    InstanceId(id): InstanceId,
    Body(body): Body<CancelBody>,
) -> Answer {
    let act = Act::new(&app, (&caller, &request), "instance.terminate", &id, &body.reason)?;
    act.must_run().await?;
    let change = async { Ok(app.client.terminate_instance(id.as_str(), act.reason.as_str()).await?) };
    let ((), audited) = act.run(change).await?;
    Ok(accepted(id, true, audited))
}

/// The client records a pause itself.
pub(super) async fn pause(
    State(app): State<Shared>,
    (caller, request): Ids,
    InstanceId(id): InstanceId,
    Body(body): Body<ReasonBody>,
) -> Answer {
    let act = Act::new(&app, (&caller, &request), "instance.pause", &id, &body.reason)?;
    act.must_run().await?;
    let changed = act.client().pause_instance(&id, &caller.name, &act.reason).await?;
    Ok(accepted(id, changed, changed))
}

/// The client records a resumption itself.
pub(super) async fn resume(
    State(app): State<Shared>,
    (caller, request): Ids,
    InstanceId(id): InstanceId,
    Body(body): Body<ReasonBody>,
) -> Answer {
    let act = Act::new(&app, (&caller, &request), "instance.resume", &id, &body.reason)?;
    act.must_run().await?;
    let changed = act.client().resume_instance(&id, &caller.name, &act.reason).await?;
    Ok(accepted(id, changed, changed))
}

pub(super) async fn prune(
    State(app): State<Shared>,
    (caller, request): Ids,
    InstanceId(id): InstanceId,
    Body(body): Body<PruneBody>,
) -> Result<Json<Removed>, Problem> {
    if body.keep_last.is_none() && body.completed_before_ms.is_none() {
        return Err(Problem::invalid(
            "give `keep_last` or `completed_before_ms`: without a condition all old executions would be deleted",
        ));
    }
    let act = Act::new(&app, (&caller, &request), "execution.prune", &id, &body.reason)?;
    crate::view::info(&app.client, &id).await?;
    let options = PruneOptions { keep_last: body.keep_last, completed_before: body.completed_before_ms };
    let (pruned, audited) = act.run(async { Ok(app.client.prune_executions(&id, options).await?) }).await?;
    let (executions, events) = (pruned.executions_deleted, pruned.events_deleted);
    Ok(Json(Removed { instances: 0, executions, events, messages: 0, audited }))
}

pub(super) async fn delete(
    State(app): State<Shared>,
    (caller, request): Ids,
    InstanceId(id): InstanceId,
    Params(params): Params<DeleteParams>,
) -> Result<Json<Removed>, Problem> {
    let act = Act::new(&app, (&caller, &request), "instance.delete", &id, &params.reason)?;
    let (deleted, audited) =
        act.run(async { Ok(app.client.delete_instance(&id, params.force).await?) }).await?;
    Ok(Json(Removed {
        instances: deleted.instances_deleted,
        executions: deleted.executions_deleted,
        events: deleted.events_deleted,
        messages: deleted.queue_messages_deleted,
        audited,
    }))
}
