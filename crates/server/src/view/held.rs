//! Held instances and paused orchestrations.

use super::rfc3339;
use super::store::checked;
use crate::app::App;
use crate::problem::Problem;
use outlast::providers::{HeldInstance, PausedOrchestration};
use serde::Serialize;
use utoipa::ToSchema;

/// The hold of a paused or parked instance.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Held {
    /// `paused`, `orchestration-paused` or `parked`.
    pub(crate) kind: &'static str,
    pub(crate) actor: String,
    pub(crate) reason: String,
    pub(crate) since: String,
    pub(crate) since_ms: u64,
}

impl From<HeldInstance> for Held {
    fn from(held: HeldInstance) -> Self {
        Self {
            kind: held.hold.kind.as_str(),
            actor: held.hold.actor,
            reason: held.hold.reason,
            since: rfc3339(held.held_at_ms),
            since_ms: held.held_at_ms,
        }
    }
}

/// The hold of an instance, which may wait for its first turn.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Hold {
    instance: String,
    /// Null if the instance is not held, or does not exist.
    held: Option<Held>,
}

/// A page of held instances by ascending id.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HeldPage {
    items: Vec<Hold>,
    /// The parameter `after` of the next page.
    next: Option<String>,
}

/// The paused orchestrations by ascending name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PausedOrchestrations {
    items: Vec<PausedView>,
    /// False if the store cannot pause orchestrations.
    supported: bool,
}

/// A paused orchestration.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PausedView {
    orchestration: String,
    actor: String,
    reason: String,
    since: String,
    since_ms: u64,
}

impl From<PausedOrchestration> for PausedView {
    fn from(paused: PausedOrchestration) -> Self {
        Self {
            orchestration: paused.orchestration,
            actor: paused.actor,
            reason: paused.reason,
            since: rfc3339(paused.paused_at_ms),
            since_ms: paused.paused_at_ms,
        }
    }
}

pub(crate) async fn hold(app: &App, id: &str) -> Result<Hold, Problem> {
    let held = app.client.held_instance(id).await?;
    Ok(Hold { instance: id.to_string(), held: held.map(Held::from) })
}

pub(crate) async fn held(app: &App, after: Option<&str>, limit: Option<usize>) -> Result<HeldPage, Problem> {
    let limit = checked(limit)?;
    if after.is_some_and(|after| after.chars().any(char::is_control)) {
        return Err(Problem::invalid("`after` is not the id of an instance"));
    }
    let found = app.client.list_held(after, limit).await?;
    let next = found.last().filter(|_| found.len() == limit).map(|last| last.instance_id.clone());
    let items =
        found.into_iter().map(|held| Hold { instance: held.instance_id.clone(), held: Some(held.into()) });
    Ok(HeldPage { items: items.collect(), next })
}

pub(crate) async fn paused_orchestrations(app: &App) -> Result<PausedOrchestrations, Problem> {
    let found = app.client.paused_orchestrations().await?;
    let supported = found.is_some();
    Ok(PausedOrchestrations {
        items: found.unwrap_or_default().into_iter().map(PausedView::from).collect(),
        supported,
    })
}
