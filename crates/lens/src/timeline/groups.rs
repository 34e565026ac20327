//! Joins the spans of one name into one span, for executions with thousands of operations.

use super::{Span, SpanKind};
use crate::steps::step;
use std::collections::HashMap;

/// One span for each kind and name; one span for each kind if the names are more than `most` too.
pub(super) fn by_name(spans: Vec<Span>, most: usize) -> Vec<Span> {
    let named = grouped(spans, |span| (span.kind, span.name.clone()));
    if named.len() <= most {
        return named;
    }
    let mut kinds = grouped(named, |span| (span.kind, String::new()));
    for kind in &mut kinds {
        kind.name.clear();
    }
    kinds
}

/// The groups in the order of their first spans.
fn grouped(spans: Vec<Span>, key: impl Fn(&Span) -> (SpanKind, String)) -> Vec<Span> {
    let mut groups: Vec<Span> = Vec::new();
    let mut positions: HashMap<(SpanKind, String), usize> = HashMap::new();
    for span in spans {
        step();
        match positions.get(&key(&span)) {
            Some(position) => groups[*position].absorb(span),
            None => {
                positions.insert(key(&span), groups.len());
                groups.push(span);
            }
        }
    }
    groups
}

impl Span {
    fn absorb(&mut self, other: Span) {
        self.start_ms = self.start_ms.min(other.start_ms);
        self.end_ms = self.end_ms.zip(other.end_ms).map(|(own, other)| own.max(other));
        self.due_ms = self.due_ms.into_iter().chain(other.due_ms).min();
        self.status = self.status.max(other.status);
        self.attempts = self.attempts.saturating_add(other.attempts);
        self.count = self.count.saturating_add(other.count);
        // A group has no single instance and no list of tries.
        self.instance = None;
        self.tries = Vec::new();
    }
}
