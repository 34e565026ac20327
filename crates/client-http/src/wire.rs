//! The parts of the answers that the client reads.

use outlast::client::ResetSummary;
use outlast::providers::{
    AuditEntry, AuditRecord, DeadLetter, DeadLetterQueue, ExecutionInfo, HeldInstance, HoldKind,
    InstanceInfo, InstanceItem, PausedOrchestration, PendingWork, ProviderError, QueueBacklog, QueuePage,
    QueuedItem, TagDepth,
};
use outlast::{ErrorDetails, Event, OrchestrationStatus, SystemStats};
use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct ProblemBody {
    pub(crate) code: String,
    pub(crate) detail: String,
    pub(crate) retryable: bool,
}

#[derive(Deserialize)]
pub(crate) struct Detail {
    #[serde(flatten)]
    pub(crate) instance: Instance,
    pub(crate) state: String,
    pub(crate) output: Option<String>,
    pub(crate) failure: Option<Failure>,
    pub(crate) custom_status: Option<String>,
    pub(crate) custom_status_version: u64,
    pub(crate) kv: Vec<KeyValue>,
}

#[derive(Deserialize)]
pub(crate) struct Instance {
    pub(crate) id: String,
    orchestration: String,
    version: String,
    status: String,
    execution: u64,
    parent: Option<String>,
    created_at_ms: u64,
    updated_at_ms: u64,
}

#[derive(Deserialize)]
pub(crate) struct Failure {
    details: Option<ErrorDetails>,
}

#[derive(Deserialize)]
pub(crate) struct KeyValue {
    pub(crate) key: String,
    pub(crate) value: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct InstancePage {
    pub(crate) items: Vec<Instance>,
    pub(crate) next: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Executions {
    pub(crate) items: Vec<ExecutionId>,
}

#[derive(Deserialize)]
pub(crate) struct ExecutionId {
    pub(crate) execution: u64,
}

#[derive(Deserialize)]
pub(crate) struct Tree {
    pub(crate) items: Vec<Instance>,
}

#[derive(Deserialize)]
pub(crate) struct Why {
    pub(crate) sentence: String,
}

#[derive(Deserialize)]
pub(crate) struct Queues {
    pub(crate) turns: Depth,
    pub(crate) activities: Depth,
    pub(crate) held_instances: Option<u64>,
    pub(crate) held_messages: Option<u64>,
    pub(crate) tags: Option<Vec<Tag>>,
}

#[derive(Deserialize)]
pub(crate) struct Tag {
    tag: Option<String>,
    due: u64,
    delayed: u64,
    leased: u64,
    oldest_ms: Option<u64>,
}

#[derive(Deserialize)]
pub(crate) struct QueueMessages {
    now_ms: u64,
    items: Vec<QueueMessage>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct QueueMessage {
    instance: String,
    item: Queued,
}

#[derive(Deserialize)]
pub(crate) struct Depth {
    pub(crate) waiting: u64,
    due: Option<u64>,
    delayed: Option<u64>,
    pub(crate) oldest_ms: Option<u64>,
}

#[derive(Deserialize)]
pub(crate) struct Running {
    pub(crate) running: u64,
}

#[derive(Deserialize)]
pub(crate) struct Stats {
    events: u64,
    event_bytes: u64,
    carried_messages: u64,
    keys: u64,
    value_bytes: u64,
}

#[derive(Deserialize)]
pub(crate) struct Execution {
    execution: u64,
    status: String,
    started_at_ms: u64,
    completed_at_ms: Option<u64>,
    events: usize,
    output: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Pending {
    now_ms: u64,
    turn_lease_until_ms: Option<u64>,
    messages: Vec<Queued>,
    message_count: u64,
    activities: Vec<Queued>,
    activity_count: u64,
}

#[derive(Deserialize)]
struct Queued {
    kind: Option<String>,
    name: Option<String>,
    execution: Option<u64>,
    of_event: Option<u64>,
    bytes: u64,
    visible_at_ms: u64,
    lease_until_ms: Option<u64>,
    deliveries: u32,
    failures: u32,
    tag: Option<String>,
    session: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct HeldPage {
    pub(crate) items: Vec<Hold>,
}

#[derive(Deserialize)]
pub(crate) struct Hold {
    instance: String,
    held: Option<Held>,
}

#[derive(Deserialize)]
struct Held {
    kind: String,
    actor: String,
    reason: String,
    since_ms: u64,
}

#[derive(Deserialize)]
pub(crate) struct PausedOrchestrations {
    pub(crate) items: Vec<Paused>,
    pub(crate) supported: bool,
}

#[derive(Deserialize)]
pub(crate) struct Paused {
    orchestration: String,
    actor: String,
    reason: String,
    since_ms: u64,
}

#[derive(Deserialize)]
pub(crate) struct OrchestrationChanged {
    pub(crate) instances: u64,
}

#[derive(Deserialize)]
pub(crate) struct ResetAnswer {
    execution: u64,
    kept_events: usize,
    left_events: usize,
    activities: usize,
    /// Absent in answers of earlier servers.
    #[serde(default)]
    repeated_activities: usize,
    timers: usize,
    messages: usize,
    answered_children: Vec<String>,
    cancelled_children: Vec<String>,
}

#[derive(Deserialize)]
pub(crate) struct Counts {
    pub(crate) total: u64,
    pub(crate) running: u64,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
}

#[derive(Deserialize)]
pub(crate) struct System {
    pub(crate) instances: Counts,
    pub(crate) executions: u64,
    pub(crate) events: u64,
}

#[derive(Deserialize)]
pub(crate) struct Started {
    pub(crate) instance: String,
    pub(crate) started: bool,
    pub(crate) status: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct StoredEvents {
    pub(crate) items: Vec<Event>,
    pub(crate) next: Option<u64>,
}

#[derive(Deserialize)]
pub(crate) struct DeadLetters {
    pub(crate) items: Vec<Letter>,
}

#[derive(Deserialize)]
pub(crate) struct Letter {
    pub(crate) id: Option<u64>,
    queue: String,
    instance: Option<String>,
    reason: String,
    deliveries: u32,
    at_ms: u64,
    item: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Settled {}

#[derive(Deserialize)]
pub(crate) struct AuditPage {
    pub(crate) items: Vec<Record>,
    pub(crate) supported: bool,
}

#[derive(Deserialize)]
pub(crate) struct Record {
    id: u64,
    at_ms: u64,
    actor: String,
    action: String,
    target: String,
    reason: String,
    request: Option<String>,
    result: String,
}

#[derive(Deserialize)]
pub(crate) struct Operations {
    pub(crate) items: Vec<crate::Operation>,
}

#[derive(Deserialize)]
pub(crate) struct Accepted {
    pub(crate) changed: bool,
}

#[derive(Deserialize)]
pub(crate) struct Removed {
    pub(crate) instances: u64,
    pub(crate) executions: u64,
    pub(crate) events: u64,
    pub(crate) messages: u64,
}

impl Letter {
    /// The dead letter as the client of a store returns it.
    pub(crate) fn into_dead_letter(self) -> DeadLetter {
        DeadLetter {
            queue: match self.queue.as_str() {
                "worker" => DeadLetterQueue::Worker,
                _ => DeadLetterQueue::Orchestrator,
            },
            instance_id: self.instance,
            work_item: self.item.unwrap_or_default(),
            reason: self.reason,
            attempt_count: self.deliveries,
            dead_at: self.at_ms,
        }
    }
}

impl From<Record> for AuditRecord {
    fn from(record: Record) -> Self {
        let Record { id, at_ms, actor, action, target, reason, request, result } = record;
        Self { id, at_ms, entry: AuditEntry { actor, action, target, reason, request, result } }
    }
}

impl From<Tag> for TagDepth {
    fn from(Tag { tag, due, delayed, leased, oldest_ms }: Tag) -> Self {
        Self { tag, due, delayed, leased, oldest_ms }
    }
}

impl From<QueueMessages> for QueuePage {
    fn from(page: QueueMessages) -> Self {
        let item = |found: QueueMessage| InstanceItem {
            instance_id: found.instance,
            item: QueuedItem::from(found.item),
        };
        Self { now_ms: page.now_ms, items: page.items.into_iter().map(item).collect(), next: page.next }
    }
}

impl Depth {
    /// The waiting items, if the store tells due and delayed ones apart.
    pub(crate) fn backlog(&self) -> Option<QueueBacklog> {
        let (due, delayed) = self.due.zip(self.delayed)?;
        Some(QueueBacklog { due, delayed })
    }
}

impl From<Stats> for SystemStats {
    fn from(stats: Stats) -> Self {
        Self {
            history_event_count: stats.events,
            history_size_bytes: stats.event_bytes,
            queue_pending_count: stats.carried_messages,
            kv_user_key_count: stats.keys,
            kv_total_value_bytes: stats.value_bytes,
        }
    }
}

impl From<Execution> for ExecutionInfo {
    fn from(found: Execution) -> Self {
        Self {
            execution_id: found.execution,
            status: found.status,
            output: found.output,
            started_at: found.started_at_ms,
            completed_at: found.completed_at_ms,
            event_count: found.events,
        }
    }
}

impl Pending {
    /// The work as the client of a store returns it, with at most `limit` items of each kind.
    pub(crate) fn into_work(self, limit: usize) -> PendingWork {
        let items = |items: Vec<Queued>| items.into_iter().take(limit).map(QueuedItem::from).collect();
        PendingWork {
            now_ms: self.now_ms,
            turn_locked_until: self.turn_lease_until_ms,
            messages: items(self.messages),
            message_count: self.message_count,
            activities: items(self.activities),
            activity_count: self.activity_count,
        }
    }
}

impl From<Queued> for QueuedItem {
    fn from(item: Queued) -> Self {
        Self {
            kind: item.kind,
            name: item.name,
            execution_id: item.execution,
            id: item.of_event,
            stored_bytes: item.bytes,
            visible_at: item.visible_at_ms,
            locked_until: item.lease_until_ms,
            attempt_count: item.deliveries,
            failures: item.failures,
            tag: item.tag,
            session_id: item.session,
        }
    }
}

impl Hold {
    /// The hold as the client of a store returns it.
    pub(crate) fn into_held(self) -> Result<Option<HeldInstance>, ProviderError> {
        let Some(Held { kind, actor, reason, since_ms }) = self.held else { return Ok(None) };
        let unknown =
            || ProviderError::permanent("http", format!("a later release holds instances as '{kind:.40}'"));
        let kind = HoldKind::from_text(&kind).ok_or_else(unknown)?;
        let hold = outlast::providers::Hold { kind, actor, reason };
        Ok(Some(HeldInstance { instance_id: self.instance, hold, held_at_ms: since_ms }))
    }
}

impl From<Paused> for PausedOrchestration {
    fn from(paused: Paused) -> Self {
        Self {
            orchestration: paused.orchestration,
            actor: paused.actor,
            reason: paused.reason,
            paused_at_ms: paused.since_ms,
        }
    }
}

impl From<ResetAnswer> for ResetSummary {
    fn from(answer: ResetAnswer) -> Self {
        Self {
            execution_id: answer.execution,
            kept_events: answer.kept_events,
            left_events: answer.left_events,
            activities: answer.activities,
            repeated_activities: answer.repeated_activities,
            timers: answer.timers,
            messages: answer.messages,
            answered_children: answer.answered_children,
            cancelled_children: answer.cancelled_children,
        }
    }
}

impl Instance {
    /// The row as the client of a store returns it; `output` stays with [`Detail`].
    pub(crate) fn into_info(self, output: Option<String>) -> InstanceInfo {
        InstanceInfo {
            instance_id: self.id,
            orchestration_name: self.orchestration,
            orchestration_version: self.version,
            current_execution_id: self.execution,
            status: self.status,
            output,
            created_at: self.created_at_ms,
            updated_at: self.updated_at_ms,
            parent_instance_id: self.parent,
        }
    }
}

impl Detail {
    /// The value of a key.
    pub(crate) fn value_of(self, key: &str) -> Option<String> {
        self.kv.into_iter().find(|pair| pair.key == key)?.value
    }

    /// The status; `None` if the answer lacks the payload of an ended instance.
    pub(crate) fn into_status(self) -> Option<OrchestrationStatus> {
        let (custom_status, custom_status_version) = (self.custom_status, self.custom_status_version);
        match self.state.as_str() {
            "completed" => Some(OrchestrationStatus::Completed {
                output: self.output?,
                custom_status,
                custom_status_version,
            }),
            "failed" => Some(OrchestrationStatus::Failed {
                details: self.failure?.details?,
                custom_status,
                custom_status_version,
            }),
            _ => Some(OrchestrationStatus::Running { custom_status, custom_status_version }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_letters_are_those_of_a_store() {
        let text = r#"{"items":[{"queue":"worker","instance":"a","reason":"does not decode","deliveries":2,"at":"","at_ms":7,"bytes":1,"item":"x"}]}"#;
        let letters: DeadLetters = serde_json::from_str(text).unwrap();
        let found = letters.items.into_iter().map(Letter::into_dead_letter).next();
        let expected = DeadLetter {
            queue: DeadLetterQueue::Worker,
            instance_id: Some("a".into()),
            work_item: "x".into(),
            reason: "does not decode".into(),
            attempt_count: 2,
            dead_at: 7,
        };
        assert_eq!(found, Some(expected));
    }
}
