//! The items of a queue in pages, and the activities by tag, without payloads.

use super::pending::Queued;
use super::rfc3339;
use super::store::checked;
use super::{NodeView, Nodes};
use crate::app::App;
use crate::problem::{Code, Problem};
use outlast::client::ClientError;
use outlast::lens::span;
use outlast::providers::{DeadLetterQueue, InstanceItem, TagDepth};
use serde::Serialize;
use utoipa::ToSchema;

/// The most tags of an answer.
const MOST_TAGS: usize = 200;

/// A page of the items of a queue, in the order of the store: leased, delayed and due ones.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueueMessages {
    /// `turns` or `activities`.
    pub(crate) queue: &'static str,
    /// The store's time.
    pub(crate) now: String,
    pub(crate) now_ms: u64,
    pub(crate) items: Vec<QueueMessage>,
    /// The parameter `after` of the next page; null if no item follows.
    pub(crate) next: Option<String>,
}

/// A queued message or activity with its instance.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueueMessage {
    pub(crate) instance: String,
    pub(crate) item: Queued,
}

/// The activities in the queue that have one tag.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TagView {
    /// Null for the activities without a tag.
    pub(crate) tag: Option<String>,
    /// Activities that a worker may take now.
    pub(crate) due: u64,
    pub(crate) delayed: u64,
    /// Activities under a live lease.
    pub(crate) leased: u64,
    /// The longest wait of an activity that a worker may take now; null without such an activity.
    pub(crate) oldest_ms: Option<u64>,
    /// The number of live nodes that take activities with this tag; null if the store keeps no reports of nodes.
    pub(crate) nodes: Option<usize>,
}

impl TagView {
    fn of(depth: TagDepth, nodes: &Nodes) -> Self {
        let TagDepth { tag, due, delayed, leased, oldest_ms } = depth;
        let takers = nodes.items.iter().filter(|node| !node.is_lost() && takes(node, tag.as_deref()));
        let takers = nodes.supported.then(|| takers.count());
        Self { tag, due, delayed, leased, oldest_ms, nodes: takers }
    }

    /// The longest wait for a page.
    pub(crate) fn oldest(&self) -> String {
        self.oldest_ms.map_or_else(|| "–".to_string(), span)
    }
}

/// Whether a node takes activities with this tag.
fn takes(node: &NodeView, tag: Option<&str>) -> bool {
    let tags = &node.tags;
    let by_name = match tag {
        Some(tag) => tags.named.iter().any(|named| named == tag),
        None => tags.untagged,
    };
    node.activities.limit > 0 && (tags.any || by_name)
}

/// The queue with this name in addresses.
pub(crate) fn queue_of(name: &str) -> Result<DeadLetterQueue, Problem> {
    match name {
        "turns" => Ok(DeadLetterQueue::Orchestrator),
        "activities" => Ok(DeadLetterQueue::Worker),
        _ => Err(Problem::new(Code::NOT_FOUND, "the queues are `turns` and `activities`")),
    }
}

pub(crate) async fn queue_messages(
    app: &App,
    queue: DeadLetterQueue,
    after: Option<&str>,
    limit: Option<usize>,
) -> Result<QueueMessages, Problem> {
    let limit = checked(limit)?;
    let page = app.client.queue_page(queue, after, limit).await.map_err(|error| match error {
        ClientError::Provider(ref cause) if !cause.is_retryable() && after.is_some() => {
            Problem::invalid("`after` is not a position of this queue: start again without it")
        }
        error => error.into(),
    })?;
    let Some(page) = page else {
        return Err(Problem::new(Code::UNSUPPORTED, "the store does not list the items of its queues"));
    };
    let view = |InstanceItem { instance_id, item }| QueueMessage { instance: instance_id, item: item.into() };
    Ok(QueueMessages {
        queue: match queue {
            DeadLetterQueue::Orchestrator => "turns",
            DeadLetterQueue::Worker => "activities",
        },
        now: rfc3339(page.now_ms),
        now_ms: page.now_ms,
        items: page.items.into_iter().map(view).collect(),
        next: page.next,
    })
}

/// The activities by tag; `None` if the store does not count them.
pub(super) async fn tags(app: &App, nodes: &Nodes) -> Result<Option<Vec<TagView>>, Problem> {
    let found = app.client.tag_depths(MOST_TAGS).await?;
    Ok(found.map(|found| found.into_iter().map(|depth| TagView::of(depth, nodes)).collect()))
}
