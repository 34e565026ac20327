//! Resolves a batch of messages for an instance without a row: the cases A to E of the contract.

use outlast_model::defect::{self, Defect};
use outlast_model::{Event, EventKind, WorkItem};

/// The action of a fetch for a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Context {
    /// The fetch returns a turn with this name, version and execution.
    Known {
        /// The orchestration.
        name: String,
        /// Its version; `"unknown"` if neither history nor start has one.
        version: String,
        /// The execution that the turn belongs to.
        execution_id: u64,
        /// Whether the turn has stored history.
        has_history: bool,
    },
    /// Only queue messages, for an instance that does not exist: the store drops them.
    QueueOrphan,
    /// Other messages for an instance that does not exist: the store keeps and delays them.
    ControlOrphan,
}

/// Resolves a batch for an instance *without a row*. `history` is the history of its newest execution, or the reason why it does
/// not decode: an instance with a damaged history is not treated as missing.
pub fn resolve(messages: &[WorkItem], newest_execution: u64, history: Result<&[Event], &str>) -> Context {
    let started = messages.iter().find_map(|message| match message {
        WorkItem::StartOrchestration { orchestration, version, .. }
        | WorkItem::ContinueAsNew { orchestration, version, .. } => Some((orchestration, version)),
        _ => None,
    });
    let known = |name: &str, version: Option<&String>, execution_id, has_history| Context::Known {
        name: name.to_string(),
        version: version.map_or_else(|| "unknown".to_string(), Clone::clone),
        execution_id,
        has_history,
    };
    let recorded = history.iter().flat_map(|events| events.iter()).find_map(|event| match &event.kind {
        EventKind::OrchestrationStarted { name, version, .. } => Some((name, version)),
        _ => None,
    });
    match (recorded, history, started) {
        (Some((name, version)), _, _) => known(name, Some(version), newest_execution, true),
        (None, Err(_), started) => {
            known(started.map_or("unknown", |(name, _)| name), None, newest_execution, true)
        }
        (None, Ok(_), Some((name, version))) => {
            let version = version.as_ref().filter(|_| !defect::is_on(Defect::StartVersionLost));
            known(name, version, 1, false)
        }
        (None, Ok(_), None) if messages.iter().all(|m| matches!(m, WorkItem::QueueMessage { .. })) => {
            Context::QueueOrphan
        }
        (None, Ok(_), None) => Context::ControlOrphan,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(version: Option<&str>) -> WorkItem {
        WorkItem::StartOrchestration {
            instance: "i".into(),
            orchestration: "Started".into(),
            input: String::new(),
            version: version.map(str::to_string),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: 1,
        }
    }

    fn history() -> Vec<Event> {
        let kind = EventKind::OrchestrationStarted {
            name: "Recorded".into(),
            version: "3".into(),
            input: String::new(),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: None,
            initial_custom_status: None,
        };
        vec![Event::at(0, 1, "i", 4, None, kind)]
    }

    #[test]
    fn a_batch_without_an_instance_row_is_resolved_by_history_then_by_its_start() {
        let message = || WorkItem::QueueMessage { instance: "i".into(), name: "q".into(), data: "d".into() };
        let cancel = || WorkItem::CancelInstance { instance: "i".into(), reason: "r".into() };
        let known = |name: &str, version: &str, execution_id, has_history| Context::Known {
            name: name.into(),
            version: version.into(),
            execution_id,
            has_history,
        };
        let (recorded, none) = (history(), Vec::new());
        type Case<'a> = (Vec<WorkItem>, Result<&'a [Event], &'a str>, Context);
        let cases: [Case<'_>; 8] = [
            (vec![cancel()], Ok(&recorded), known("Recorded", "3", 4, true)),
            (vec![start(None)], Ok(&recorded), known("Recorded", "3", 4, true)),
            (vec![message(), start(Some("2"))], Ok(&none), known("Started", "2", 1, false)),
            (vec![start(None)], Ok(&none), known("Started", "unknown", 1, false)),
            (vec![message(), message()], Ok(&none), Context::QueueOrphan),
            (vec![message(), cancel()], Ok(&none), Context::ControlOrphan),
            (vec![message()], Err("damaged"), known("unknown", "unknown", 4, true)),
            (vec![start(None)], Err("damaged"), known("Started", "unknown", 4, true)),
        ];
        for (messages, history, expected) in cases {
            assert_eq!(resolve(&messages, 4, history), expected, "{messages:?}");
        }
    }
}
