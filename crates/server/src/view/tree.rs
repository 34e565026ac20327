//! The descendants of an instance, and its executions.

use super::{Instance, info, rfc3339};
use crate::app::App;
use crate::problem::Problem;
use outlast::ExecutionInfo;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The most descendants of an answer; a tree may have thousands.
const MOST: usize = 200;
/// The most executions of an answer.
const MOST_EXECUTIONS: usize = 100;

/// An instance and its descendants, each after its parent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Tree {
    pub(crate) root: String,
    pub(crate) items: Vec<Node>,
    /// The number of descendants that are not in the answer.
    pub(crate) left_out: usize,
}

/// An instance of a tree.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Node {
    /// 0 for the root.
    pub(crate) depth: usize,
    #[serde(flatten)]
    pub(crate) instance: Instance,
}

/// The tree below an instance.
pub(crate) async fn tree(app: &App, id: &str) -> Result<Tree, Problem> {
    let root = info(&app.client, id).await?;
    let below: Vec<String> =
        app.client.get_instance_tree(id).await?.all_ids.into_iter().filter(|below| below != id).collect();
    let left_out = below.len().saturating_sub(MOST);
    let mut children: BTreeMap<String, Vec<Instance>> = BTreeMap::new();
    for child in below.into_iter().take(MOST) {
        // A child that was deleted after the tree was read is left out.
        if let Ok(child) = info(&app.client, &child).await {
            let child = Instance::from(child);
            children.entry(child.parent.clone().unwrap_or_default()).or_default().push(child);
        }
    }
    let mut items = Vec::new();
    let mut next = vec![Node { depth: 0, instance: root.into() }];
    while let Some(node) = next.pop() {
        let below = children.remove(&node.instance.id).unwrap_or_default();
        next.extend(below.into_iter().rev().map(|instance| Node { depth: node.depth + 1, instance }));
        items.push(node);
    }
    Ok(Tree { root: id.to_string(), items, left_out })
}

/// The executions of an instance, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Executions {
    pub(crate) items: Vec<ExecutionView>,
    /// The number of older executions that are not in the answer.
    pub(crate) left_out: usize,
}

/// An execution.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExecutionView {
    pub(crate) execution: u64,
    pub(crate) status: String,
    pub(crate) started_at: String,
    pub(crate) started_at_ms: u64,
    pub(crate) completed_at_ms: Option<u64>,
    pub(crate) events: usize,
}

/// One execution with its output.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExecutionDetail {
    #[serde(flatten)]
    pub(crate) execution: ExecutionView,
    /// Whether payloads are shown.
    pub(crate) payloads: bool,
    /// The output of a completed execution, or the error of a failed one as it is stored; null if payloads are hidden.
    pub(crate) output: Option<String>,
}

impl From<ExecutionInfo> for ExecutionView {
    fn from(info: ExecutionInfo) -> Self {
        Self {
            execution: info.execution_id,
            status: info.status,
            started_at: rfc3339(info.started_at),
            started_at_ms: info.started_at,
            completed_at_ms: info.completed_at,
            events: info.event_count,
        }
    }
}

/// One execution; the newest one without a number.
pub(crate) async fn execution_detail(
    app: &App,
    id: &str,
    wanted: Option<u64>,
    payloads: bool,
) -> Result<ExecutionDetail, Problem> {
    let found = super::execution(&app.client, id, wanted).await?;
    let mut info = app.client.get_execution_info(id, found.execution).await?;
    let output = info.output.take().filter(|_| payloads);
    Ok(ExecutionDetail { execution: info.into(), payloads, output })
}

/// The newest executions.
pub(crate) async fn executions(app: &App, id: &str) -> Result<Executions, Problem> {
    let all = app.client.list_executions(id).await?;
    if all.is_empty() {
        return Err(Problem::no_instance(id));
    }
    let left_out = all.len().saturating_sub(MOST_EXECUTIONS);
    let mut items = Vec::new();
    for execution in all.into_iter().rev().take(MOST_EXECUTIONS) {
        items.push(app.client.get_execution_info(id, execution).await?.into());
    }
    Ok(Executions { items, left_out })
}
