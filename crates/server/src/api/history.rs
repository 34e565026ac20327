//! The events, timeline and states of an execution.

use super::Asked;
use crate::access::Caller;
use crate::app::Shared;
use crate::extract::{Execution, InstanceId, Params};
use crate::problem::Problem;
use crate::view::{self, EventPage, EventQuery, StateView, StoredEvents, TimelineView};
use axum::extract::{Path, State};
use axum::http::header::CONTENT_DISPOSITION;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use std::collections::HashMap;

pub(super) async fn events(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    InstanceId(id): InstanceId,
    Execution(execution): Execution,
    Params(query): Params<EventQuery>,
    Params(asked): Params<Asked>,
) -> Result<Json<EventPage>, Problem> {
    let payloads = asked.granted(&caller)?;
    let found = view::execution(&app.client, &id, execution).await?;
    view::events(&app.client, &id, found.execution, &query, payloads).await.map(Json)
}

pub(super) async fn stored(
    State(app): State<Shared>,
    InstanceId(id): InstanceId,
    Execution(execution): Execution,
    Params(query): Params<EventQuery>,
) -> Result<Json<StoredEvents>, Problem> {
    let found = view::execution(&app.client, &id, execution).await?;
    view::stored_events(&app.client, &id, found.execution, &query).await.map(Json)
}

#[derive(Deserialize)]
pub(super) struct Folding {
    fold_retries: Option<bool>,
}

pub(super) async fn timeline(
    State(app): State<Shared>,
    InstanceId(id): InstanceId,
    Execution(execution): Execution,
    Params(folding): Params<Folding>,
) -> Result<Json<TimelineView>, Problem> {
    let history = view::history(&app.client, &id, execution).await?;
    Ok(Json(view::timeline(&id, &history, folding.fold_retries.unwrap_or(true), None)))
}

#[derive(Deserialize)]
pub(super) struct At {
    at: Option<u64>,
}

pub(super) async fn state(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    InstanceId(id): InstanceId,
    Execution(execution): Execution,
    Params(At { at }): Params<At>,
    Params(asked): Params<Asked>,
) -> Result<Json<StateView>, Problem> {
    let payloads = asked.granted(&caller)?;
    let history = view::history(&app.client, &id, execution).await?;
    view::state(&app.client, &id, &history, at, payloads).await.map(Json)
}

/// The event as a file, so that no browser shows it as a page.
pub(super) async fn payloads(
    State(app): State<Shared>,
    InstanceId(id): InstanceId,
    Execution(execution): Execution,
    Path(segments): Path<HashMap<String, String>>,
) -> Result<Response, Problem> {
    let event = segments.get("event").and_then(|event| event.parse().ok());
    let event = event.ok_or_else(|| Problem::invalid("the event is a number"))?;
    let execution = view::execution(&app.client, &id, execution).await?.execution;
    let found = view::payloads(&app.client, &id, execution, event).await?;
    let name = format!("attachment; filename=\"event-{event}.json\"");
    Ok(([(CONTENT_DISPOSITION, name)], Json(found)).into_response())
}
