//! Rules about a turn that runs or is due.

use super::diagnosis::{Finding, Rule};
use super::evidence::{Code, Evidence};
use super::node::{Registering, on_node, owner, registering};
use super::words::{SUSPICIOUS_MS, code_name, delivery, quoted, since, times, uncommitted, unfetched, until};
use crate::count::counted;
use crate::wait::{TurnState, is_future_timer, turn_state};
use outlast_model::{NodeRecord, NodeReport, PendingWork, QueuedItem, patch_of};

/// The finding about the turn that `which` names; `None` if no message can be fetched now or was given back.
pub(super) fn diagnose(evidence: &Evidence<'_>, which: &str) -> Option<Finding> {
    diagnose_code(evidence, which, evidence.code())
}

/// The finding of [`diagnose`] for an instance whose code is not in its history.
pub(super) fn diagnose_code(evidence: &Evidence<'_>, which: &str, code: Option<Code<'_>>) -> Option<Finding> {
    let pending = evidence.pending?;
    let now = pending.now_ms;
    let registering = registering_code(evidence, code);
    let what = code.map_or_else(|| "its orchestration".to_string(), code_name);
    match turn_state(pending) {
        TurnState::Leased { until_ms, deliveries } => {
            let delivery = delivery(deliveries, evidence);
            let end = until(until_ms, now);
            let owner = owner(evidence, None);
            let says = match owner.is_some_and(NodeRecord::is_lost) {
                true => format!(
                    "runs {which}{} and is delivered again {end}, when the lease ends ({delivery})",
                    on_node(owner)
                ),
                false => format!(
                    "runs {which}{} ({delivery}), whose lease ends {end}: if its process has died, the turn is delivered again then",
                    on_node(owner)
                ),
            };
            Some(Finding::new(Rule::TurnLeased, says))
        }
        TurnState::Due { since_ms, deliveries: 0, messages } => {
            let waited = since(since_ms, now);
            let messages = messages_text(messages, pending);
            let says = format!("has had {which} due for {waited} ({messages})");
            let advice = unfetched(registering, &what);
            Some(match now.saturating_sub(since_ms) >= SUSPICIOUS_MS {
                true => {
                    Finding::new(Rule::TurnDue, format!("{says}, and no runtime has fetched it: {advice}"))
                }
                false => Finding { early_advice: Some(advice), ..Finding::new(Rule::TurnDue, says) },
            })
        }
        TurnState::Due { since_ms, deliveries, .. } => {
            let says = format!(
                "was delivered {} without a commit, and {which} has been due for {}: {}",
                times(deliveries, evidence),
                since(since_ms, now),
                uncommitted(registering, &what)
            );
            Some(Finding::new(Rule::TurnNotCommitted, says))
        }
        TurnState::Idle => {
            let next = given_back(pending)?;
            let says = format!(
                "was delivered {} without a commit of {which}, and the next delivery is {}: {}",
                times(next.attempt_count, evidence),
                until(next.visible_at, now),
                uncommitted(registering, &what)
            );
            Some(Finding::new(Rule::TurnGivenBack, says))
        }
    }
}

/// The finding about a turn that live nodes gave back, because its history takes a patch that their code does not ask for. Their
/// deliveries are not counted.
pub(super) fn needs_patch(evidence: &Evidence<'_>) -> Option<Finding> {
    let pending = evidence.pending?;
    let code = evidence.code()?;
    let mut markers = evidence.history.iter().filter_map(|event| patch_of(&event.kind));
    let patch =
        markers.find(|patch| matches!(misses(evidence, code.name, patch), Registering::Nodes(1..)))?;
    let next = next_delivery(evidence, pending)?;
    if pending.turn_locked_until.is_some() {
        return None;
    }
    let patch_is_missed = |node: &NodeReport| node.misses(code.name, patch);
    let missed = registering(evidence, patch_is_missed);
    let has_newer =
        registering(evidence, |node| node.registers(code.name, code.version) && !patch_is_missed(node));
    let nodes = match (missed, has_newer) {
        (_, Registering::Nodes(0)) => {
            "no live node's code asks for: start the build that has the patch".to_string()
        }
        (Registering::Nodes(1), _) => {
            "the code of 1 live node does not ask for: a node with newer code takes it".to_string()
        }
        (Registering::Nodes(count), _) => {
            format!("the code of {count} live nodes does not ask for: a node with newer code takes it")
        }
        (Registering::Unknown, _) => return None,
    };
    let is_later = next.visible_at > pending.now_ms;
    if !is_later && has_newer != Registering::Nodes(0) {
        // A node with newer code can take it now: the other rules say whether it does.
        return None;
    }
    let when = match is_later {
        true => format!("the next delivery of a turn is {}", until(next.visible_at, pending.now_ms)),
        false => "a turn is due".to_string(),
    };
    let says =
        format!("waits for newer code, and {when}: its history takes patch {}, which {nodes}", quoted(patch));
    Some(Finding::new(Rule::TurnNeedsPatch, says))
}

/// The live nodes that gave turns of the orchestration back because of the patch.
fn misses(evidence: &Evidence<'_>, orchestration: &str, patch: &str) -> Registering {
    registering(evidence, |node| node.misses(orchestration, patch))
}

/// The next message of a turn, other than a timer that is not due.
fn next_delivery<'a>(evidence: &Evidence<'_>, pending: &'a PendingWork) -> Option<&'a QueuedItem> {
    let is_future_timer = |item: &QueuedItem| is_future_timer(evidence.history, pending.now_ms, item);
    pending.messages.iter().filter(|item| !is_future_timer(item)).min_by_key(|item| item.visible_at)
}

/// The next message that was delivered, given back and is visible later.
fn given_back(pending: &PendingWork) -> Option<&QueuedItem> {
    let later = pending.messages.iter().filter(|item| item.attempt_count > 0);
    later.min_by_key(|item| item.visible_at)
}

/// The live nodes that register the code.
fn registering_code(evidence: &Evidence<'_>, code: Option<Code<'_>>) -> Registering {
    match code {
        Some(code) => registering(evidence, |node| node.registers(code.name, code.version)),
        None => Registering::Unknown,
    }
}

fn messages_text(count: usize, pending: &PendingWork) -> String {
    let is_cancellation = |item: &QueuedItem| item.kind.as_deref() == Some("CancelInstance");
    match pending.messages.iter().any(is_cancellation) {
        true if count == 1 => "1 message, a request to cancel it".to_string(),
        true => format!("{}, one of them a request to cancel it", counted(count, "message")),
        false => counted(count, "message"),
    }
}
