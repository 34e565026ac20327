//! Reset and fork of instances. The store records both itself, in the same step.

use super::operate::{Act, Ids};
use crate::access::Caller;
use crate::app::Shared;
use crate::extract::{Body, InstanceId};
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use outlast::client::{Reset, ResetSummary};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A reset of an instance.
#[derive(Deserialize, ToSchema)]
pub(crate) struct ResetBody {
    /// The last event that is kept.
    to_event: u64,
    /// Whether running children are cancelled whose outcome the new execution would not get. Without it they refuse the reset.
    #[serde(default)]
    cancel_children: bool,
    /// Whether the effect is reported only.
    #[serde(default)]
    dry_run: bool,
    /// The reason, for the audit; a dry run needs none.
    #[serde(default)]
    reason: String,
}

/// A fork of an instance.
#[derive(Deserialize, ToSchema)]
pub(crate) struct ForkBody {
    /// The id of the new instance.
    new_id: String,
    /// The last event that is copied.
    to_event: u64,
    /// Whether the effect is reported only.
    #[serde(default)]
    dry_run: bool,
    /// The reason, for the audit; a dry run needs none.
    #[serde(default)]
    reason: String,
}

/// The effect of a reset or of a fork.
#[derive(Serialize, ToSchema)]
pub(crate) struct ResetAnswer {
    /// The instance that has the new execution.
    instance: String,
    /// The execution that begins.
    execution: u64,
    /// Events that are copied.
    kept_events: usize,
    /// Events that are not copied.
    left_events: usize,
    /// Activities that are scheduled again.
    activities: usize,
    /// Activities that have completed and whose outcome is not copied: they run again if the code asks for them again.
    repeated_activities: usize,
    /// Timers that are set again.
    timers: usize,
    /// Queue messages that are sent again.
    messages: usize,
    /// Children that are answered with their stored outcome.
    answered_children: Vec<String>,
    /// Children that are cancelled.
    cancelled_children: Vec<String>,
    /// Whether nothing was changed.
    dry_run: bool,
}

impl ResetAnswer {
    fn of(instance: String, dry_run: bool, done: ResetSummary) -> Json<Self> {
        Json(Self {
            instance,
            execution: done.execution_id,
            kept_events: done.kept_events,
            left_events: done.left_events,
            activities: done.activities,
            repeated_activities: done.repeated_activities,
            timers: done.timers,
            messages: done.messages,
            answered_children: done.answered_children,
            cancelled_children: done.cancelled_children,
            dry_run,
        })
    }
}

/// The reset or the fork that a caller asks for.
fn wanted(to_event: u64, dry_run: bool, caller: &Caller, reason: &str) -> Reset {
    let wanted = Reset::to_event(to_event).by(&caller.name).because(reason);
    if dry_run { wanted.dry_run() } else { wanted }
}

pub(super) async fn reset(
    State(app): State<Shared>,
    (caller, request): Ids,
    InstanceId(id): InstanceId,
    Body(body): Body<ResetBody>,
) -> Result<Json<ResetAnswer>, Problem> {
    if !body.dry_run {
        Act::new(&app, (&caller, &request), "instance.reset", &id, &body.reason)?;
    }
    let client = app.client.clone().with_request(request.0.0.as_str());
    let wanted = wanted(body.to_event, body.dry_run, &caller, body.reason.trim());
    let wanted = if body.cancel_children { wanted.cancel_children() } else { wanted };
    let done = client.reset_instance(&id, &wanted).await?;
    Ok(ResetAnswer::of(id, body.dry_run, done))
}

pub(super) async fn fork(
    State(app): State<Shared>,
    (caller, request): Ids,
    InstanceId(id): InstanceId,
    Body(body): Body<ForkBody>,
) -> Result<Json<ResetAnswer>, Problem> {
    if !body.dry_run {
        Act::new(&app, (&caller, &request), "instance.fork", &id, &body.reason)?;
    }
    let client = app.client.clone().with_request(request.0.0.as_str());
    let wanted = wanted(body.to_event, body.dry_run, &caller, body.reason.trim());
    let done = client.fork_instance(&id, &body.new_id, &wanted).await?;
    Ok(ResetAnswer::of(body.new_id, body.dry_run, done))
}
