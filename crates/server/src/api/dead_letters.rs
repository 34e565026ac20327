//! Dead letters: pages, requeue and drop.

use super::Asked;
use super::operate::{Act, Ids, ReasonBody};
use super::store::Paging;
use crate::access::Caller;
use crate::app::Shared;
use crate::extract::{Body, Params, segment};
use crate::problem::{Code, Problem};
use crate::view::{self, DeadLetterView, DeadLetters};
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::{Extension, Json};
use outlast::providers::DeadLetterOutcome;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The number of a dead letter in the path.
pub(super) struct Number(u64);

impl<S: Send + Sync> FromRequestParts<S> for Number {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match segment(parts, state, "n").await?.parse() {
            Ok(number) => Ok(Self(number)),
            Err(_) => Err(Problem::invalid("a dead letter has a number: /api/v1/dead-letters lists them")),
        }
    }
}

/// A dead letter that was requeued or dropped. The audit has a record of it.
#[derive(Serialize, ToSchema)]
pub(crate) struct Settled {
    id: u64,
}

/// The parameters of a drop.
#[derive(Deserialize)]
pub(super) struct DropParams {
    #[serde(default)]
    reason: String,
}

pub(super) async fn list(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    Params(paging): Params<Paging>,
    Params(asked): Params<Asked>,
) -> Result<Json<DeadLetters>, Problem> {
    view::dead_letters(&app, paging.before, paging.limit, asked.granted(&caller)?).await.map(Json)
}

pub(super) async fn one(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    Number(id): Number,
    Params(asked): Params<Asked>,
) -> Result<Json<DeadLetterView>, Problem> {
    view::dead_letter(&app, id, asked.granted(&caller)?).await.map(Json)
}

/// The store records the requeue itself, in the same step.
pub(super) async fn requeue(
    State(app): State<Shared>,
    (caller, request): Ids,
    Number(id): Number,
    Body(body): Body<ReasonBody>,
) -> Result<Json<Settled>, Problem> {
    let act = Act::new(&app, (&caller, &request), "dead-letter.requeue", "", body.reason())?;
    let outcome =
        app.client.requeue_dead_letter(id, &caller.name, act.reason(), Some(request.0.0.as_str())).await?;
    settled(id, outcome)
}

/// The store records the drop itself, in the same step.
pub(super) async fn remove(
    State(app): State<Shared>,
    (caller, request): Ids,
    Number(id): Number,
    Params(params): Params<DropParams>,
) -> Result<Json<Settled>, Problem> {
    let act = Act::new(&app, (&caller, &request), "dead-letter.drop", "", &params.reason)?;
    let outcome =
        app.client.drop_dead_letter(id, &caller.name, act.reason(), Some(request.0.0.as_str())).await?;
    settled(id, outcome)
}

fn settled(id: u64, outcome: DeadLetterOutcome) -> Result<Json<Settled>, Problem> {
    match outcome {
        DeadLetterOutcome::Done => Ok(Json(Settled { id })),
        DeadLetterOutcome::NotFound => {
            Err(Problem::new(Code::NOT_FOUND, format!("there is no dead letter {id}")))
        }
        // The reason may quote the item.
        DeadLetterOutcome::Undeliverable { .. } => Err(Problem::new(
            Code::UNDELIVERABLE,
            format!(
                "dead letter {id} stays: this build of the server cannot decode it, or it belongs to another instance; requeue it with a build that decodes it, or drop it"
            ),
        )),
        _ => Err(Problem::new(Code::UNSUPPORTED, "this store cannot requeue or drop dead letters")),
    }
}
