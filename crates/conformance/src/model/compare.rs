//! What two stores must agree on, and where they do not.

use super::apply::Answer;
use super::ops::*;
use outlast_provider::ProviderError;

/// What two stores must agree on: the answer, or the class of the error and the words that callers look for.
pub(super) fn verdict(op: &Op, answered: &Result<Answer, ProviderError>) -> String {
    match answered {
        Ok(answer) => format!("Ok {}", answer.text),
        Err(error) if is_malformed(op) => format!("Err retryable: {}", error.retryable),
        Err(error) => format!("Err retryable: {}, about: {:?}", error.retryable, words(&error.message)),
    }
}

/// A call that is wrong in itself may be wrong in other ways too, and then any of them may be named.
fn is_malformed(op: &Op) -> bool {
    match op {
        Op::AckAhead { completion: Completion::Other(_), .. } => true,
        Op::AckTurn { turn, .. } | Op::AckAhead { turn, .. } => {
            let is_activity = |message: &Message| matches!(message, Message::Activity { .. });
            let odd = |id: &EventId| matches!(id, EventId::Zero | EventId::Repeat);
            turn.events.iter().any(|(id, _)| odd(id))
                || turn.work.iter().any(|item| !is_activity(item) || item.is_for_nobody())
                || turn.messages.iter().any(|item| is_activity(item) || item.is_for_nobody())
        }
        Op::AckWork { completion: Some(Completion::Other(_)), .. } | Op::Read(Read::BogusPage(_)) => true,
        _ => false,
    }
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

/// Line by line, so that a difference in a large store is found at a glance.
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

/// One text, sorted. A column ends where an `i64` ends, which is as good as for ever.
pub(super) fn comparable(lines: Vec<String>) -> String {
    let (most, for_ever) = (u64::MAX.to_string(), i64::MAX.to_string());
    let mut lines: Vec<String> = lines.into_iter().map(|line| line.replace(&most, &for_ever)).collect();
    lines.sort();
    lines.join("\n")
}
