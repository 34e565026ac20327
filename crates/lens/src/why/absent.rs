//! Rules about an instance without events.

use super::diagnosis::{Finding, Rule};
use super::evidence::{Code, Evidence};
use super::turn;
use super::words::until_moment;
use crate::count::counted;
use crate::time::moment;
use outlast_model::{PendingWork, QueuedItem, decode_head};

pub(super) fn diagnose(evidence: &Evidence<'_>) -> Finding {
    if let Some(start) = evidence.pending.and_then(start_of) {
        return first_turn(evidence, start);
    }
    if evidence.is_recorded {
        let says =
            "has no events of its current execution: the store is damaged, so restore it from a backup";
        return Finding::new(Rule::NoHistory, says);
    }
    if let Some(finding) = set_aside(evidence) {
        return finding;
    }
    match evidence.pending.map(|pending| pending.message_count) {
        None => {
            let says = "does not exist, or has no turn yet: this store does not report queued messages";
            Finding::new(Rule::NotFound, says)
        }
        Some(0) => {
            Finding::new(Rule::NotFound, "does not exist: the store has no event and no message of it")
        }
        Some(count) => {
            let messages = match count {
                1 => "1 message for it is queued and becomes a dead letter".to_string(),
                count => format!("{count} messages for it are queued and become dead letters"),
            };
            Finding::new(
                Rule::Orphans,
                format!("does not exist, and {messages} unless the instance is started"),
            )
        }
    }
}

fn start_of(pending: &PendingWork) -> Option<&QueuedItem> {
    let is_start = |item: &&QueuedItem| item.kind.as_deref() == Some("StartOrchestration");
    pending.messages.iter().find(is_start)
}

/// The start waits for its first turn.
fn first_turn(evidence: &Evidence<'_>, start: &QueuedItem) -> Finding {
    let code = start.name.as_deref().map(|name| Code { name, version: None });
    let turn = turn::diagnose_code(evidence, "its first turn", code);
    turn.unwrap_or_else(|| {
        let says = format!(
            "was started with a delay, and does not begin {}",
            until_moment(
                start.visible_at,
                evidence.pending.map_or(evidence.now_ms, |pending| pending.now_ms)
            )
        );
        Finding::new(Rule::StartDelayed, says)
    })
}

/// The messages of an instance that never had a turn are dead letters.
fn set_aside(evidence: &Evidence<'_>) -> Option<Finding> {
    let last = evidence.dead_letters.iter().max_by_key(|letter| letter.dead_at)?;
    let is_start = |text: &str| decode_head(text).is_none_or(|head| head.kind == "StartOrchestration");
    let says = match evidence.dead_letters.iter().find(|letter| is_start(&letter.work_item)) {
        Some(start) => format!(
            "does not exist: its start, or a message that does not decode, became a dead letter at {} UTC",
            moment(start.dead_at)
        ),
        None => format!(
            "does not exist, and the store keeps {} of it, the last of them from {} UTC",
            counted(evidence.dead_letters.len(), "dead letter"),
            moment(last.dead_at)
        ),
    };
    Some(Finding::new(Rule::StartSetAside, says))
}
