//! Words that several rules use.

use super::evidence::{Code, Evidence};
use super::node::Registering;
use crate::count;
use crate::time::{moment, span};

/// After this time, a turn or activity that no node fetched needs attention.
pub(super) const SUSPICIOUS_MS: u64 = 5_000;

/// A text of the user in quotes, on one line: control characters are escaped.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", one_line(text))
}

pub(super) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for char in text.chars() {
        match char.is_control() {
            true => line.extend(char.escape_default()),
            false => line.push(char),
        }
    }
    line
}

/// A text as an argument of a shell command.
pub(super) fn argument(text: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_.:/@+,=".contains(char);
    match !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        true => text.to_string(),
        false => format!("'{}'", one_line(text).replace('\'', r"'\''")),
    }
}

pub(super) fn code_name(code: Code<'_>) -> String {
    match code.version {
        Some(version) => format!("{} {}", quoted(code.name), one_line(version)),
        None => quoted(code.name),
    }
}

/// `once`, `7 of 10 times`.
pub(super) fn times(count: u32, evidence: &Evidence<'_>) -> String {
    match evidence.max_attempts {
        Some(most) => format!("{count} of {most} times"),
        None => count::times(count),
    }
}

/// `delivery 2 of 10`.
pub(super) fn delivery(number: u32, evidence: &Evidence<'_>) -> String {
    match evidence.max_attempts {
        Some(most) => format!("delivery {number} of {most}"),
        None => format!("delivery {number}"),
    }
}

/// `in 9.0s`.
pub(super) fn until(at_ms: u64, now_ms: u64) -> String {
    format!("in {}", span(at_ms.saturating_sub(now_ms)))
}

/// `until 2026-03-01 12:34:56.789 UTC, in 9.0s`.
pub(super) fn until_moment(at_ms: u64, now_ms: u64) -> String {
    format!("until {} UTC, {}", moment(at_ms), until(at_ms, now_ms))
}

/// The time since a moment.
pub(super) fn since(at_ms: u64, now_ms: u64) -> String {
    span(now_ms.saturating_sub(at_ms))
}

/// The advice for code that no node fetches.
pub(super) fn unfetched(registering: Registering, what: &str) -> String {
    match registering {
        Registering::Unknown => format!("start a runtime that registers {what}"),
        Registering::Nodes(0) => format!("no live node registers {what}"),
        Registering::Nodes(1) => format!("1 live node registers {what}"),
        Registering::Nodes(count) => format!("{count} live nodes register {what}"),
    }
}

/// The advice for code whose deliveries end without a commit.
pub(super) fn uncommitted(registering: Registering, what: &str) -> String {
    match registering {
        Registering::Nodes(0) => format!("no live node registers {what}"),
        _ => format!(
            "either the nodes that fetched it do not register {what}, or their processes ended; their logs have the cause"
        ),
    }
}
