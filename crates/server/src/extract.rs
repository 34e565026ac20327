//! Extractors whose rejections are problems.

use crate::app::Shared;
use crate::problem::{Code, Problem};
use crate::view;
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use outlast::providers::DeadLetterQueue;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;

/// The longest instance id, in bytes.
const LONGEST_ID: usize = 512;

/// The parameters after `?`.
pub(crate) struct Params<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(found)) => Ok(Self(found)),
            Err(rejection) => Err(Problem::invalid(rejection.body_text())),
        }
    }
}

/// The JSON body.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Shared> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, Problem> {
        let kind =
            request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        // A form of another site can send other types without asking the server.
        if kind.split(';').next().map(str::trim) != Some("application/json") {
            return Err(Problem::new(Code::MEDIA, "send the body as application/json"));
        }
        let read =
            tokio::time::timeout(app.options.body_timeout, Json::<T>::from_request(request, app)).await;
        let read =
            read.map_err(|_| Problem::new(Code::SLOW, "the body of the request did not arrive in time"))?;
        match read {
            Ok(Json(body)) => Ok(Self(body)),
            Err(JsonRejection::BytesRejection(error)) => Err(Problem::of_status(error.status())),
            // The text of a rejection may quote the body.
            Err(JsonRejection::JsonSyntaxError(_)) => Err(Problem::invalid("the body is not JSON")),
            Err(_) => Err(Problem::invalid(
                "the body is not the object of this request: a field is missing or has another type; /api/v1/openapi.json has its schema",
            )),
        }
    }
}

/// The instance of the path. `?id=` takes its place, for proxies that decode `%2F`.
pub(crate) struct InstanceId(pub(crate) String);

#[derive(Deserialize)]
struct Named {
    id: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for InstanceId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Params(named) = Params::<Named>::from_request_parts(parts, state).await?;
        let id = match named.id {
            Some(id) => id,
            None => segment(parts, state, "id").await?,
        };
        match id.is_empty() || id.len() > LONGEST_ID || id.chars().any(char::is_control) {
            true => Err(Problem::no_instance("")),
            false => Ok(Self(id)),
        }
    }
}

/// The orchestration of the path.
pub(crate) struct OrchestrationName(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for OrchestrationName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let name = segment(parts, state, "orchestration").await?;
        match name.is_empty() || name.len() > LONGEST_ID || name.chars().any(char::is_control) {
            true => Err(Problem::invalid("the path has no name of an orchestration")),
            false => Ok(Self(name)),
        }
    }
}

/// The queue of the path: `turns` or `activities`.
pub(crate) struct QueueName(pub(crate) DeadLetterQueue);

impl<S: Send + Sync> FromRequestParts<S> for QueueName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        view::queue_of(&segment(parts, state, "queue").await?).map(Self)
    }
}

/// The execution of the path: a number, or `latest`.
pub(crate) struct Execution(pub(crate) Option<u64>);

impl<S: Send + Sync> FromRequestParts<S> for Execution {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match segment(parts, state, "execution").await?.as_str() {
            "latest" => Ok(Self(None)),
            number => match number.parse() {
                Ok(number) => Ok(Self(Some(number))),
                Err(_) => Err(Problem::invalid("the execution is a number, or `latest`")),
            },
        }
    }
}

/// A named segment of the path.
pub(crate) async fn segment<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    name: &str,
) -> Result<String, Problem> {
    let found = Path::<HashMap<String, String>>::from_request_parts(parts, state).await;
    let Ok(Path(mut found)) = found else {
        return Err(Problem::invalid("the path is not percent-encoded UTF-8"));
    };
    found.remove(name).ok_or_else(|| Problem::of_status(axum::http::StatusCode::NOT_FOUND))
}
