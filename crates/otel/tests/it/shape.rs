//! Prints spans as a tree, with names instead of ids.

use crate::collector::Span;
use std::collections::{BTreeMap, HashSet};

/// The spans of one trace as lines `depth name`, siblings by name, because several events have the same millisecond. Fails if ids repeat, or if the trace has no single root.
pub(crate) fn tree(spans: &[Span]) -> Vec<String> {
    let ids: HashSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    assert_eq!(ids.len(), spans.len(), "ids repeat: {spans:#?}");
    let traces: HashSet<&str> = spans.iter().map(|span| span.trace.as_str()).collect();
    assert_eq!(traces.len(), 1, "{spans:#?}");
    let mut below: BTreeMap<&str, Vec<&Span>> = BTreeMap::new();
    for span in spans {
        let parent = if ids.contains(span.parent.as_str()) { span.parent.as_str() } else { "" };
        below.entry(parent).or_default().push(span);
    }
    for siblings in below.values_mut() {
        siblings.sort_by(|a, b| (&a.name, a.start_ns).cmp(&(&b.name, b.start_ns)));
    }
    let mut lines = Vec::new();
    print("", 0, &below, &mut lines);
    assert_eq!(lines.len(), spans.len(), "a span is its own ancestor: {spans:#?}");
    lines
}

fn print(parent: &str, depth: usize, below: &BTreeMap<&str, Vec<&Span>>, lines: &mut Vec<String>) {
    for span in below.get(parent).into_iter().flatten() {
        lines.push(format!("{}{}", "  ".repeat(depth), span.name));
        print(&span.id, depth + 1, below, lines);
    }
}

pub(crate) fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

/// The only span of this name.
#[track_caller]
pub(crate) fn only<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let found = named(spans, name);
    assert_eq!(found.len(), 1, "{name} in {spans:#?}");
    found[0]
}
