//! The parts of the answers that the client reads.

use outlast::providers::{AuditEntry, AuditRecord, DeadLetter, DeadLetterQueue, InstanceInfo};
use outlast::{ErrorDetails, Event, OrchestrationStatus};
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
}

#[derive(Deserialize)]
pub(crate) struct Depth {
    pub(crate) waiting: u64,
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
