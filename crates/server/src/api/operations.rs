//! Changes of many instances: dry run, start, progress and stop.

use super::operate::{Act, Ids, ReasonBody};
use crate::app::{App, Shared};
use crate::extract::{Body, segment};
use crate::operations::{OperationView, check_scope};
use crate::problem::{Code, Problem};
use crate::view::stored_status;
use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use outlast::client::{BulkChange, BulkVerb};
use outlast::providers::InstanceQuery;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

/// The most instances of an operation.
const MOST: usize = 100_000;
/// The most ids of a request.
const MOST_IDS: usize = 500;
/// The ids that a dry run shows.
const SAMPLES: usize = 10;

/// The change of an operation.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    /// Asks running instances to stop.
    Cancel,
    /// Ends running instances at their next turns.
    Terminate,
    /// Pauses running instances.
    Pause,
    /// Resumes held instances.
    Resume,
    /// Deletes ended roots with their descendants; needs the scope admin.
    Delete,
}

impl From<Action> for BulkVerb {
    fn from(action: Action) -> Self {
        match action {
            Action::Cancel => Self::Cancel,
            Action::Terminate => Self::Terminate,
            Action::Pause => Self::Pause,
            Action::Resume => Self::Resume,
            Action::Delete => Self::Delete,
        }
    }
}

/// The instances of an operation: all conditions must hold, and the instance must be in a state for the action.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OperationFilter {
    /// `Running`, `Completed`, `Failed` or `ContinuedAsNew`.
    status: Option<String>,
    /// The orchestration.
    name: Option<String>,
    /// The start of the id.
    prefix: Option<String>,
    parent: Option<String>,
    created_from_ms: Option<u64>,
    created_before_ms: Option<u64>,
    /// Only these instances, at most 500.
    ids: Option<Vec<String>>,
}

/// A change of many instances. A dry run returns `mark` and `count`, which the change itself must name.
#[derive(Deserialize, ToSchema)]
pub(crate) struct OperationBody {
    action: Action,
    filter: OperationFilter,
    /// True selects and changes nothing.
    #[serde(default)]
    dry_run: bool,
    /// `mark` of the dry run.
    mark: Option<String>,
    /// `count` of the dry run.
    count: Option<u64>,
    /// The reason, for the audit; a dry run needs none.
    #[serde(default)]
    reason: String,
}

/// The instances that an operation would change.
#[derive(Serialize, ToSchema)]
pub(crate) struct DryRun {
    action: &'static str,
    count: u64,
    /// The first ids.
    samples: Vec<String>,
    /// Identifies the selected instances. The operation touches no instance that is newer.
    mark: String,
}

/// The operations of this server, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct OperationList {
    items: Vec<OperationView>,
}

/// The answer to a dry run, or to an operation that has begun.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum OperationAnswer {
    DryRun(DryRun),
    Operation(OperationView),
}

/// The operation of the path.
pub(super) struct OperationId(String);

impl<S: Send + Sync> FromRequestParts<S> for OperationId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        segment(parts, state, "op").await.map(Self)
    }
}

/// A mark: the time of the newest instance of the store, and a digest of the selected ids.
struct Mark {
    created_before: u64,
    digest: String,
}

impl Mark {
    fn text(&self) -> String {
        format!("{}-{}", self.created_before, self.digest)
    }

    fn of_text(text: &str) -> Option<Self> {
        let (created_before, digest) = text.split_once('-')?;
        Some(Self { created_before: created_before.parse().ok()?, digest: digest.to_string() })
    }
}

/// The digest of a set of ids, in any order.
fn digest(ids: &[String]) -> String {
    let mut sorted: Vec<&str> = ids.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    let mut hasher = Sha256::new();
    for id in sorted {
        hasher.update((id.len() as u64).to_be_bytes());
        hasher.update(id.as_bytes());
    }
    hasher.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

impl OperationFilter {
    fn query(&self, created_before: u64) -> Result<InstanceQuery, Problem> {
        let before = self.created_before_ms.map_or(created_before, |before| before.min(created_before));
        Ok(InstanceQuery {
            status: stored_status(self.status.as_deref())?,
            orchestration_name: self.name.clone().filter(|name| !name.is_empty()),
            id_prefix: self.prefix.clone().filter(|prefix| !prefix.is_empty()),
            parent_instance_id: self.parent.clone().filter(|parent| !parent.is_empty()),
            created_from: self.created_from_ms,
            created_before: Some(before),
            limit: None,
            after: None,
        })
    }

    /// The ids of the instances that the verb is for.
    async fn select(&self, app: &App, verb: BulkVerb, created_before: u64) -> Result<Vec<String>, Problem> {
        let query = self.query(created_before)?;
        let found = match &self.ids {
            Some(ids) if ids.len() > MOST_IDS => {
                return Err(Problem::invalid(format!(
                    "`ids` has at most {MOST_IDS} ids: use the other conditions"
                )));
            }
            Some(ids) => app.client.bulk_select_ids(verb, &query, ids).await?,
            None => app.client.bulk_select(verb, &query, MOST).await?,
        };
        match found.len() > MOST {
            true => Err(Problem::invalid(format!(
                "more than {MOST} instances match: narrow the filter, for example by the time of creation"
            ))),
            false => Ok(found),
        }
    }
}

/// The time after the creation of the newest instance. It comes from the rows of the store, so that no clock of the server matters.
async fn newest(app: &App) -> Result<u64, Problem> {
    let query = InstanceQuery { limit: Some(1), ..InstanceQuery::default() };
    let page = app.client.list_instances_page(query).await?;
    Ok(page.instances.first().map_or(0, |info| info.created_at.saturating_add(1)))
}

pub(super) async fn create(
    State(app): State<Shared>,
    (caller, request): Ids,
    Body(body): Body<OperationBody>,
) -> Result<(StatusCode, Json<OperationAnswer>), Problem> {
    let verb = BulkVerb::from(body.action);
    check_scope(&caller, verb)?;
    if body.dry_run {
        let created_before = newest(&app).await?;
        let found = body.filter.select(&app, verb, created_before).await?;
        let mark = Mark { created_before, digest: digest(&found) };
        let dry_run = DryRun {
            action: verb.as_str(),
            count: found.len() as u64,
            mark: mark.text(),
            samples: found.into_iter().take(SAMPLES).collect(),
        };
        return Ok((StatusCode::OK, Json(OperationAnswer::DryRun(dry_run))));
    }
    let (Some(mark), Some(count)) = (&body.mark, body.count) else {
        return Err(Problem::invalid("give `mark` and `count` of a dry run, or `dry_run`: true"));
    };
    let mark = Mark::of_text(mark).ok_or_else(|| Problem::invalid("`mark` is not that of a dry run"))?;
    let act = Act::new(&app, (&caller, &request), "operation.start", verb.as_str(), &body.reason)?;
    let found = body.filter.select(&app, verb, mark.created_before).await?;
    let change = BulkChange {
        verb,
        actor: caller.name.clone(),
        reason: act.reason().to_string(),
        request: Some(request.0.0.clone()),
        created_before: Some(mark.created_before),
    };
    let matching = found.len() as u64;
    let begin = async {
        match matching == count && digest(&found) == mark.digest {
            true => app.operations.start(&app.client, change, found),
            false => Err(changed_set(count, matching)),
        }
    };
    let (operation, _) = act.run(begin).await?;
    Ok((StatusCode::ACCEPTED, Json(OperationAnswer::Operation(operation.view()))))
}

fn changed_set(expected: u64, matching: u64) -> Problem {
    let detail = match expected == matching {
        true => format!(
            "the set has changed since the dry run: it has {matching} instances again, but not the same ones; nothing was changed, look again"
        ),
        false => format!(
            "the set has changed since the dry run: {expected} instances matched, and {matching} match now; nothing was changed, look again"
        ),
    };
    Problem { counts: Some((expected, matching)), ..Problem::new(Code::SET_CHANGED, detail) }
}

pub(super) async fn list(State(app): State<Shared>) -> Json<OperationList> {
    Json(OperationList { items: app.operations.list() })
}

pub(super) async fn one(
    State(app): State<Shared>,
    OperationId(id): OperationId,
) -> Result<Json<OperationView>, Problem> {
    Ok(Json(app.operations.find(&id)?.view()))
}

pub(super) async fn stop(
    State(app): State<Shared>,
    (caller, request): Ids,
    OperationId(id): OperationId,
    Body(body): Body<ReasonBody>,
) -> Result<(StatusCode, Json<OperationView>), Problem> {
    let act = Act::new(&app, (&caller, &request), "operation.stop", &id, body.reason())?;
    let operation = app.operations.find(&id)?;
    let end = async {
        match operation.stop() {
            true => Ok(()),
            false => Err(Problem::new(Code::ENDED, "the operation has ended already")),
        }
    };
    act.run(end).await?;
    Ok((StatusCode::ACCEPTED, Json(operation.view())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_depends_on_the_set_and_not_on_its_order() {
        let of = |ids: &[&str]| digest(&ids.iter().map(|id| id.to_string()).collect::<Vec<_>>());
        assert_eq!(of(&["a", "b"]), of(&["b", "a"]));
        assert_ne!(of(&["a", "b"]), of(&["ab"]));
        assert_ne!(of(&["a"]), of(&["b"]));
        assert_eq!(of(&[]).len(), 32);
    }

    #[test]
    fn mark_survives_its_text() {
        let mark = Mark::of_text(&Mark { created_before: 7, digest: "ab".to_string() }.text()).unwrap();
        assert_eq!((mark.created_before, mark.digest.as_str()), (7, "ab"));
        assert!(
            Mark::of_text("7").is_none() && Mark::of_text("x-ab").is_none() && Mark::of_text("").is_none()
        );
    }
}
