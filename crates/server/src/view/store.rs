//! The store as a whole: counts, queues, dead letters, audit and system.

use super::{Nodes, TagView, queue, rfc3339};
use crate::app::{App, Totals};
use crate::problem::{Code, Problem};
use outlast::lens::{grouped, span};
use outlast::providers::{AuditRecord, Clock, DeadLetter, QueueBacklog, SystemClock};
use serde::Serialize;
use utoipa::ToSchema;

/// The most rows of a page.
const MOST: usize = 500;

/// The numbers of instances. A store with many instances takes its time to count them: the answer does not wait for it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Counts {
    /// Null until the store has counted its instances once.
    pub(crate) total: Option<u64>,
    pub(crate) running: u64,
    /// Null until the store has counted its instances once.
    pub(crate) completed: Option<u64>,
    /// Null until the store has counted its instances once.
    pub(crate) failed: Option<u64>,
    /// False while the store counts; then the numbers are older, or missing.
    pub(crate) exact: bool,
    /// The time of the count.
    pub(crate) as_of: String,
    pub(crate) as_of_ms: u64,
}

impl Counts {
    fn of(totals: &Totals) -> Self {
        Self {
            total: Some(totals.metrics.total_instances),
            running: totals.metrics.running_instances,
            completed: Some(totals.metrics.completed_instances),
            failed: Some(totals.metrics.failed_instances),
            exact: totals.is_fresh,
            as_of: rfc3339(totals.at_ms),
            as_of_ms: totals.at_ms,
        }
    }

    pub(crate) fn shown_running(&self) -> String {
        self.shown(&Some(self.running))
    }

    /// A number for a page.
    pub(crate) fn shown(&self, number: &Option<u64>) -> String {
        match number {
            Some(number) if self.exact => grouped(*number),
            Some(number) => format!("≈{}", grouped(*number)),
            None => "…".to_string(),
        }
    }
}

/// The numbers that are known now. Running instances have an index.
pub(crate) async fn counts(app: &App) -> Result<Counts, Problem> {
    if let Some(totals) = app.known_totals().await? {
        return Ok(Counts::of(&totals));
    }
    let now_ms = SystemClock.now_ms();
    Ok(Counts {
        total: None,
        running: app.client.get_gauges().await?.running_instances,
        completed: None,
        failed: None,
        exact: false,
        as_of: rfc3339(now_ms),
        as_of_ms: now_ms,
    })
}

/// The two queues of the store, and held instances.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Queues {
    /// Messages for instances, which turns fetch.
    pub(crate) turns: Depth,
    pub(crate) activities: Depth,
    /// Null if the store cannot hold instances.
    pub(crate) held_instances: Option<u64>,
    pub(crate) held_messages: Option<u64>,
    /// The activities by ascending tag, those without a tag first, at most 200 tags; null if the store does not count them.
    pub(crate) tags: Option<Vec<TagView>>,
}

/// The items of a queue that are not leased.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Depth {
    pub(crate) waiting: u64,
    /// Items that a fetch may take now; null if the store does not tell them apart.
    pub(crate) due: Option<u64>,
    /// Items that become visible later; null if the store does not tell them apart.
    pub(crate) delayed: Option<u64>,
    /// The longest wait of an item that a fetch may take now; null without such an item, or if the store does not look.
    pub(crate) oldest_ms: Option<u64>,
}

impl Depth {
    fn of(waiting: u64, backlog: Option<QueueBacklog>, oldest_ms: Option<u64>) -> Self {
        Self {
            waiting,
            due: backlog.map(|backlog| backlog.due),
            delayed: backlog.map(|backlog| backlog.delayed),
            oldest_ms,
        }
    }

    /// The longest wait for a page.
    pub(crate) fn oldest(&self) -> String {
        self.oldest_ms.map_or_else(|| "–".to_string(), span)
    }
}

pub(crate) async fn queues(app: &App) -> Result<Queues, Problem> {
    Ok(queues_and_nodes(app).await?.0)
}

/// The queues, and the nodes that take their items.
pub(crate) async fn queues_and_nodes(app: &App) -> Result<(Queues, Nodes), Problem> {
    let nodes = super::nodes(app).await?;
    let gauges = app.client.get_gauges().await?;
    let oldest = app.client.oldest_due().await?.unwrap_or_default();
    let held = app.client.count_held().await?;
    let queues = Queues {
        turns: Depth::of(gauges.orchestrator_queue, gauges.orchestrator_backlog, oldest.message_ms),
        activities: Depth::of(gauges.worker_queue, gauges.worker_backlog, oldest.activity_ms),
        held_instances: held.map(|held| held.instances),
        held_messages: held.map(|held| held.messages),
        tags: queue::tags(app, &nodes).await?,
    };
    Ok((queues, nodes))
}

/// A page of dead letters, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeadLetters {
    pub(crate) items: Vec<DeadLetterView>,
    /// The number of items of this page by reason, most frequent first.
    pub(crate) reasons: Vec<Reason>,
    /// The parameter `before` of the next page.
    pub(crate) next: Option<u64>,
    /// Whether payloads are shown.
    pub(crate) payloads: bool,
}

/// An item that the store no longer delivers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeadLetterView {
    /// The number; null if the store does not number dead letters, which can then not be requeued or dropped.
    pub(crate) id: Option<u64>,
    /// `orchestrator` or `worker`.
    pub(crate) queue: &'static str,
    pub(crate) instance: Option<String>,
    pub(crate) reason: String,
    pub(crate) deliveries: u32,
    pub(crate) at: String,
    pub(crate) at_ms: u64,
    pub(crate) bytes: usize,
    /// The stored text; null if payloads are hidden.
    pub(crate) item: Option<String>,
}

/// A reason, and the number of dead letters that have it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Reason {
    pub(crate) reason: String,
    pub(crate) count: usize,
}

pub(crate) async fn dead_letters(
    app: &App,
    before: Option<u64>,
    limit: Option<usize>,
    payloads: bool,
) -> Result<DeadLetters, Problem> {
    let limit = checked(limit)?;
    let items: Vec<(Option<u64>, DeadLetter)> = match app.client.dead_letter_page(before, limit).await? {
        Some(page) => page.into_iter().map(|record| (Some(record.id), record.letter)).collect(),
        None => app.client.list_dead_letters(limit).await?.into_iter().map(|letter| (None, letter)).collect(),
    };
    let next = items.last().filter(|_| items.len() == limit).and_then(|(id, _)| *id);
    let mut reasons: Vec<Reason> = Vec::new();
    for (_, letter) in &items {
        match reasons.iter_mut().find(|known| known.reason == letter.reason) {
            Some(known) => known.count += 1,
            None => reasons.push(Reason { reason: letter.reason.clone(), count: 1 }),
        }
    }
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.count));
    let items = items.into_iter().map(|(id, letter)| shown(id, letter, payloads)).collect();
    Ok(DeadLetters { items, reasons, next, payloads })
}

/// One dead letter.
pub(crate) async fn dead_letter(app: &App, id: u64, payloads: bool) -> Result<DeadLetterView, Problem> {
    match app.client.dead_letter(id).await? {
        Some(record) => Ok(shown(Some(record.id), record.letter, payloads)),
        None => Err(Problem::new(Code::NOT_FOUND, format!("there is no dead letter {id}"))),
    }
}

fn shown(id: Option<u64>, letter: DeadLetter, payloads: bool) -> DeadLetterView {
    DeadLetterView {
        id,
        queue: letter.queue.as_str(),
        instance: letter.instance_id,
        reason: letter.reason,
        deliveries: letter.attempt_count,
        at: rfc3339(letter.dead_at),
        at_ms: letter.dead_at,
        bytes: letter.work_item.len(),
        item: payloads.then_some(letter.work_item),
    }
}

/// A page of the audit, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditPage {
    pub(crate) items: Vec<AuditView>,
    /// The parameter `before` of the next page.
    pub(crate) next: Option<u64>,
    /// False if the store keeps no audit.
    pub(crate) supported: bool,
}

/// A record of the audit.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditView {
    pub(crate) id: u64,
    pub(crate) at: String,
    pub(crate) at_ms: u64,
    pub(crate) actor: String,
    pub(crate) action: String,
    pub(crate) target: String,
    pub(crate) reason: String,
    pub(crate) request: Option<String>,
    pub(crate) result: String,
}

impl From<AuditRecord> for AuditView {
    fn from(record: AuditRecord) -> Self {
        Self {
            id: record.id,
            at: rfc3339(record.at_ms),
            at_ms: record.at_ms,
            actor: record.entry.actor,
            action: record.entry.action,
            target: record.entry.target,
            reason: record.entry.reason,
            request: record.entry.request,
            result: record.entry.result,
        }
    }
}

pub(crate) async fn audit(
    app: &App,
    before: Option<u64>,
    limit: Option<usize>,
) -> Result<AuditPage, Problem> {
    let limit = checked(limit)?;
    let found = app.client.audit_page(before, limit).await?;
    let supported = found.is_some();
    let items: Vec<AuditView> = found.unwrap_or_default().into_iter().map(AuditView::from).collect();
    let next = items.last().filter(|_| items.len() == limit).map(|last| last.id);
    Ok(AuditPage { items, next, supported })
}

/// The server and the totals of its store.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct System {
    pub(crate) store: String,
    pub(crate) version: &'static str,
    /// Whether requests may change instances.
    pub(crate) operate: bool,
    /// Whether requests need a token.
    pub(crate) tokens: bool,
    pub(crate) instances: Counts,
    /// Null on a page that did not wait for the count.
    pub(crate) executions: Option<u64>,
    /// Null on a page that did not wait for the count.
    pub(crate) events: Option<u64>,
}

/// The server and its store. It waits until the instances are counted.
pub(crate) async fn system(app: &App) -> Result<System, Problem> {
    let totals = app.totals().await?;
    Ok(of_system(app, Counts::of(&totals), Some(&totals)))
}

/// The server and the numbers of its store that are known now.
pub(crate) async fn known_system(app: &App) -> Result<System, Problem> {
    let instances = counts(app).await?;
    Ok(of_system(app, instances, app.known_totals().await?.as_ref()))
}

fn of_system(app: &App, instances: Counts, totals: Option<&Totals>) -> System {
    System {
        store: app.options.store.clone(),
        version: env!("CARGO_PKG_VERSION"),
        operate: app.options.operate,
        tokens: app.options.tokens.is_some(),
        instances,
        executions: totals.map(|totals| totals.metrics.total_executions),
        events: totals.map(|totals| totals.metrics.total_events),
    }
}

pub(super) fn checked(limit: Option<usize>) -> Result<usize, Problem> {
    match limit.unwrap_or(100) {
        limit @ 1..=MOST => Ok(limit),
        _ => Err(Problem::invalid(format!("the limit of a page is from 1 to {MOST}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_pages_say_whether_they_are_exact() {
        let counts = |exact| Counts {
            total: Some(1_234_567),
            running: 0,
            completed: None,
            failed: None,
            exact,
            as_of: String::new(),
            as_of_ms: 0,
        };
        assert_eq!(counts(true).shown(&Some(1_234_567)), "1,234,567");
        assert_eq!(counts(false).shown(&Some(12)), "≈12");
        assert_eq!(counts(false).shown(&None), "…");
        assert_eq!([0, 999, 1_000, 100_000].map(grouped), ["0", "999", "1,000", "100,000"]);
    }
}
