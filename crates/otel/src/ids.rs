//! Trace and span ids: hashes of values in the history, so that every node computes the same ids at any time.

use opentelemetry::trace::{SpanId, TraceId};
use sha2::{Digest, Sha256};

/// The id of the trace that begins with an execution.
pub(crate) fn trace_id(root: &str, execution_id: u64, started_at_ms: u64) -> TraceId {
    let hash = Hash::new(b"outlast/1").text(root).number(execution_id).number(started_at_ms);
    TraceId::from_bytes(hash.first())
}

/// The id of a span of an execution: of the operation that an event started, in its delivery. The orchestration has event 1 and
/// delivery 0.
pub(crate) fn span_id(
    trace: TraceId,
    instance: &str,
    execution_id: u64,
    event_id: u64,
    attempt: u32,
) -> SpanId {
    let hash = Hash::new(&trace.to_bytes()).text(instance).number(execution_id).number(event_id);
    SpanId::from_bytes(hash.number(attempt.into()).first())
}

/// Hashes the length of each text too, so that no two lists of parts have the same bytes.
struct Hash(Sha256);

impl Hash {
    fn new(domain: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(domain);
        Self(hash)
    }

    fn text(mut self, text: &str) -> Self {
        self.0.update((text.len() as u64).to_be_bytes());
        self.0.update(text);
        self
    }

    fn number(mut self, number: u64) -> Self {
        self.0.update(number.to_be_bytes());
        self
    }

    /// The first bytes. An id of zeros is invalid in the W3C format; the last byte is then 1.
    fn first<const N: usize>(self) -> [u8; N] {
        let digest = self.0.finalize();
        let mut id = [0; N];
        id.iter_mut().zip(digest).for_each(|(byte, hashed)| *byte = hashed);
        if let (true, Some(last)) = (id.iter().all(|byte| *byte == 0), id.last_mut()) {
            *last = 1;
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_are_the_same_in_every_process_and_release() {
        let trace = trace_id("order-1", 1, 1_700_000_000_000);
        assert_eq!(trace.to_string(), "07bc29c1a2031a08931c0ff2804634af");
        assert_eq!(span_id(trace, "order-1", 1, 2, 1).to_string(), "a618a95d1c5e4be0");
    }

    #[test]
    fn every_part_changes_the_id() {
        let trace = trace_id("a", 1, 5);
        let traces = [trace, trace_id("b", 1, 5), trace_id("a", 2, 5), trace_id("a", 1, 6)];
        assert_eq!(HashSet::from(traces).len(), 4);
        let span = |instance, execution, event, attempt| span_id(trace, instance, execution, event, attempt);
        let spans = [
            span("a", 1, 2, 1),
            span("b", 1, 2, 1),
            span("a", 2, 2, 1),
            span("a", 1, 3, 1),
            span("a", 1, 2, 2),
            span_id(traces[1], "a", 1, 2, 1),
        ];
        assert_eq!(HashSet::from(spans).len(), 6);
    }
}
