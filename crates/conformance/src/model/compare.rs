//! Compares the answers of two stores.

use super::apply::Answer;
use super::ops::*;
use outlast_provider::ProviderError;

/// The part of an answer that must be equal: the value, or the class of the error and the words that callers search for.
pub(super) fn verdict(op: &Op, answered: &Result<Answer, ProviderError>) -> String {
    match answered {
        Ok(answer) => format!("Ok {}", answer.text),
        Err(error) if is_malformed(op) => format!("Err retryable: {}", error.retryable),
        Err(error) => format!("Err retryable: {}, about: {:?}", error.retryable, words(&error.message)),
    }
}

/// An invalid call may be invalid in several ways; a store may report any of them.
fn is_malformed(op: &Op) -> bool {
    match op {
        Op::AckAhead { completion: Completion::Other(_), .. } => true,
        // Tokens that were never returned stand for an instance and an activity that the call makes up.
        Op::AckFused { .. } => true,
        Op::Reset(branch) => is_malformed_turn(&branch.turn),
        Op::AckTurn { turn, .. } | Op::AckAhead { turn, .. } | Op::StartAhead { turn, .. } => {
            is_malformed_turn(turn)
        }
        Op::AckWork { completion: Some(Completion::Other(_)), .. } | Op::Read(Read::BogusPage(_)) => true,
        _ => false,
    }
}

fn is_malformed_turn(turn: &Turn) -> bool {
    let is_activity = |message: &Message| matches!(message, Message::Activity { .. });
    let odd = |id: &EventId| matches!(id, EventId::Zero | EventId::Repeat);
    turn.events.iter().any(|(id, _)| odd(id))
        || turn.work.iter().any(|item| !is_activity(item) || item.has_invalid_instance())
        || turn.messages.iter().any(|item| is_activity(item) || item.has_invalid_instance())
}

/// The texts that section 3 of the contract names.
fn words(message: &str) -> Vec<&'static str> {
    let message = message.to_lowercase();
    let about = [
        ("token", &["invalid lock token", "lock_token"][..]),
        ("running", &["running"]),
        ("missing", &["not found"]),
        ("child", &["sub-orchestration", "root", "parent"]),
        ("orphan", &["child", "orphan", "tree"]),
    ];
    let named = about.into_iter().filter(|(_, texts)| texts.iter().any(|text| message.contains(text)));
    named.map(|(name, _)| name).collect()
}

/// Compares line by line, so that the message shows the difference in a large store.
pub(super) fn same(name: &str, expected: &str, found: &str) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    let missing = expected.lines().filter(|line| !found.lines().any(|other| other == *line));
    let extra = found.lines().filter(|line| !expected.lines().any(|other| other == *line));
    let lines: Vec<String> = missing
        .map(|line| format!("  {:<15}{line}", "specification:"))
        .chain(extra.map(|line| format!("  {:<15}{line}", format!("{name}:"))))
        .collect();
    match lines.is_empty() {
        true => Err(format!("  the same lines, in other numbers:\n{expected}\n  {name}:\n{found}")),
        false => Err(lines.join("\n")),
    }
}

/// The lines as one sorted text. A time that exceeds an `i64` is infinite.
pub(super) fn comparable(lines: Vec<String>) -> String {
    let (most, for_ever) = (u64::MAX.to_string(), i64::MAX.to_string());
    let mut lines: Vec<String> = lines.into_iter().map(|line| line.replace(&most, &for_ever)).collect();
    lines.sort();
    lines.join("\n")
}
