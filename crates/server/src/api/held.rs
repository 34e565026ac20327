//! Held instances and paused orchestrations.

use super::operate::{Act, Ids, ReasonBody};
use crate::app::Shared;
use crate::extract::{Body, InstanceId, OrchestrationName, Params};
use crate::problem::Problem;
use crate::view::{self, HeldPage, Hold, PausedOrchestrations};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A position of the list of held instances.
#[derive(Deserialize)]
pub(super) struct HeldQuery {
    after: Option<String>,
    limit: Option<usize>,
}

/// An orchestration that was paused or resumed.
#[derive(Serialize, ToSchema)]
pub(crate) struct OrchestrationChanged {
    orchestration: String,
    /// The number of instances that were held or released by this request.
    instances: u64,
}

pub(super) async fn list(
    State(app): State<Shared>,
    Params(query): Params<HeldQuery>,
) -> Result<Json<HeldPage>, Problem> {
    view::held(&app, query.after.as_deref(), query.limit).await.map(Json)
}

pub(super) async fn hold(
    State(app): State<Shared>,
    InstanceId(id): InstanceId,
) -> Result<Json<Hold>, Problem> {
    view::hold(&app, &id).await.map(Json)
}

pub(super) async fn paused(State(app): State<Shared>) -> Result<Json<PausedOrchestrations>, Problem> {
    view::paused_orchestrations(&app).await.map(Json)
}

/// The client records the pause itself.
pub(super) async fn pause(
    State(app): State<Shared>,
    (caller, request): Ids,
    OrchestrationName(name): OrchestrationName,
    Body(body): Body<ReasonBody>,
) -> Result<Json<OrchestrationChanged>, Problem> {
    let act = Act::new(&app, (&caller, &request), "orchestration.pause", &name, body.reason())?;
    let instances = act.client().pause_orchestration(&name, &caller.name, act.reason()).await?;
    Ok(Json(OrchestrationChanged { orchestration: name.clone(), instances }))
}

/// The client records the resumption itself.
pub(super) async fn resume(
    State(app): State<Shared>,
    (caller, request): Ids,
    OrchestrationName(name): OrchestrationName,
    Body(body): Body<ReasonBody>,
) -> Result<Json<OrchestrationChanged>, Problem> {
    let act = Act::new(&app, (&caller, &request), "orchestration.resume", &name, body.reason())?;
    let instances = act.client().resume_orchestration(&name, &caller.name, act.reason()).await?;
    Ok(Json(OrchestrationChanged { orchestration: name.clone(), instances }))
}
