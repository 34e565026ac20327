//! The store as a whole, and whether it answers.

use crate::app::Shared;
use crate::extract::{Params, QueueName};
use crate::problem::Problem;
use crate::view::{self, AuditPage, Nodes, QueueMessages, Queues, Series, System};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use outlast::providers::InstanceQuery;
use serde::Deserialize;
use std::time::Duration;

/// The longest answer of a store that is ready.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) async fn queues(State(app): State<Shared>) -> Result<Json<Queues>, Problem> {
    view::queues(&app).await.map(Json)
}

/// A position in the items of a queue.
#[derive(Deserialize)]
pub(super) struct QueueQuery {
    after: Option<String>,
    limit: Option<usize>,
}

pub(super) async fn queue_messages(
    State(app): State<Shared>,
    QueueName(queue): QueueName,
    Params(query): Params<QueueQuery>,
) -> Result<Json<QueueMessages>, Problem> {
    view::queue_messages(&app, queue, query.after.as_deref(), query.limit).await.map(Json)
}

pub(super) async fn nodes(State(app): State<Shared>) -> Result<Json<Nodes>, Problem> {
    view::nodes(&app).await.map(Json)
}

pub(super) async fn system(State(app): State<Shared>) -> Result<Json<System>, Problem> {
    view::system(&app).await.map(Json)
}

pub(super) async fn series(State(app): State<Shared>) -> Result<Json<Series>, Problem> {
    view::series(&app).await.map(Json)
}

#[derive(Deserialize)]
pub(super) struct Paging {
    pub(super) limit: Option<usize>,
    pub(super) before: Option<u64>,
}

pub(super) async fn audit(
    State(app): State<Shared>,
    Params(paging): Params<Paging>,
) -> Result<Json<AuditPage>, Problem> {
    view::audit(&app, paging.before, paging.limit).await.map(Json)
}

/// Whether the store answers in time. The answer has no text of the store.
pub(super) async fn ready(State(app): State<Shared>) -> (StatusCode, &'static str) {
    let newest = InstanceQuery { limit: Some(1), ..InstanceQuery::default() };
    match tokio::time::timeout(PATIENCE, app.client.list_instances_page(newest)).await {
        Ok(Ok(_)) => (StatusCode::OK, "ready\n"),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "the store does not answer\n"),
    }
}
