//! Lists of instances, and one instance.

use super::Asked;
use crate::access::{Caller, Counted};
use crate::app::Shared;
use crate::extract::{Execution, InstanceId, Params};
use crate::problem::Problem;
use crate::view::{
    self, Counts, Detail, ExecutionDetail, Executions, InstancePage, ListQuery, Pending, Stats, Tree, Why,
};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LINK;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use outlast::client::ClientError;
use serde::Deserialize;
use std::time::Duration;

/// The longest wait, in seconds.
const LONGEST_WAIT: u64 = 60;

pub(super) async fn list(
    State(app): State<Shared>,
    Params(query): Params<ListQuery>,
) -> Result<Response, Problem> {
    let page: InstancePage = view::list(&app, &query).await?;
    let next = page.next.as_ref().map(|next| {
        let address = format!("{}/api/v1/instances?{}", app.options.base_path, query.address(next));
        [(LINK, format!("<{address}>; rel=\"next\""))]
    });
    Ok((next, Json(page)).into_response())
}

pub(super) async fn count(State(app): State<Shared>) -> Result<Json<Counts>, Problem> {
    view::counts(&app).await.map(Json)
}

pub(super) async fn one(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    InstanceId(id): InstanceId,
    Params(asked): Params<Asked>,
) -> Result<Json<Detail>, Problem> {
    view::detail_with_waits(&app, &id, asked.granted(&caller)?).await.map(Json)
}

pub(super) async fn why(State(app): State<Shared>, InstanceId(id): InstanceId) -> Result<Json<Why>, Problem> {
    view::why(&app, &id).await.map(Json)
}

pub(super) async fn executions(
    State(app): State<Shared>,
    InstanceId(id): InstanceId,
) -> Result<Json<Executions>, Problem> {
    view::executions(&app, &id).await.map(Json)
}

pub(super) async fn pending(
    State(app): State<Shared>,
    InstanceId(id): InstanceId,
) -> Result<Json<Pending>, Problem> {
    view::pending(&app, &id).await.map(Json)
}

pub(super) async fn tree(
    State(app): State<Shared>,
    InstanceId(id): InstanceId,
) -> Result<Json<Tree>, Problem> {
    view::tree(&app, &id).await.map(Json)
}

pub(super) async fn stats(
    State(app): State<Shared>,
    InstanceId(id): InstanceId,
) -> Result<Json<Stats>, Problem> {
    view::stats(&app, &id).await.map(Json)
}

pub(super) async fn execution(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    InstanceId(id): InstanceId,
    Execution(execution): Execution,
    Params(asked): Params<Asked>,
) -> Result<Json<ExecutionDetail>, Problem> {
    view::execution_detail(&app, &id, execution, asked.granted(&caller)?).await.map(Json)
}

#[derive(Deserialize)]
pub(super) struct Patience {
    timeout: Option<u64>,
    key: Option<String>,
    /// Whether the end of the instance ends the wait for a key too.
    #[serde(default)]
    or_end: bool,
}

/// 200 for an instance that has ended or has the key, 202 for another one. An instance that does not exist yet is waited for.
pub(super) async fn wait(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    Extension(Counted(counted)): Extension<Counted>,
    InstanceId(id): InstanceId,
    Params(Patience { timeout, key, or_end }): Params<Patience>,
    Params(asked): Params<Asked>,
) -> Result<Response, Problem> {
    let payloads = asked.granted(&caller)?;
    let seconds = timeout.unwrap_or(30);
    if seconds > LONGEST_WAIT {
        return Err(Problem::invalid(format!(
            "the timeout is from 0 to {LONGEST_WAIT} seconds: repeat the request for more"
        )));
    }
    let _permit = app.streams.take(&counted)?;
    let timeout = Duration::from_secs(seconds);
    let waited = match key {
        Some(key) if or_end => app.client.wait_for_kv_value_or_end(&id, &key, timeout).await.map(drop),
        Some(key) => app.client.wait_for_kv_value(&id, &key, timeout).await.map(drop),
        None => app.client.wait_for_orchestration(&id, timeout).await.map(drop),
    };
    let status = match waited {
        Ok(()) => StatusCode::OK,
        Err(ClientError::Timeout) => StatusCode::ACCEPTED,
        Err(error) => return Err(error.into()),
    };
    Ok((status, Json(view::detail_with_waits(&app, &id, payloads).await?)).into_response())
}
