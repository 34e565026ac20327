//! The layout of spans: idle gaps, bins and lanes.

use super::{Gap, Span, SpanKind};
use crate::steps::step;
use outlast_model::Event;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// The least length of a gap.
const MIN_GAP_MS: u64 = 1_000;
/// A gap has at least this part of the time axis, so that a chart has a handful of gaps.
const GAP_PART: u64 = 20;

/// Long times without events and without a running activity.
pub(super) fn gaps(history: &[Event], spans: &[Span], from_ms: u64, to_ms: u64) -> Vec<Gap> {
    let least = MIN_GAP_MS.max((to_ms - from_ms) / GAP_PART);
    let mut busy: Vec<(u64, u64)> =
        history.iter().map(|event| (event.timestamp_ms, event.timestamp_ms)).collect();
    busy.extend(spans.iter().flat_map(|span| busy_times(span, to_ms)));
    busy.push((to_ms, to_ms));
    busy.sort_unstable();
    let mut gaps = Vec::new();
    let mut busy_until = from_ms;
    for (start, end) in busy {
        step();
        if start.saturating_sub(busy_until) >= least {
            gaps.push(Gap { from_ms: busy_until, to_ms: start });
        }
        busy_until = busy_until.max(end);
    }
    gaps
}

/// The times in which an activity ran.
fn busy_times(span: &Span, to_ms: u64) -> Vec<(u64, u64)> {
    match (span.kind, span.tries.as_slice()) {
        (SpanKind::Activity, []) => vec![(span.start_ms, span.end_within(to_ms))],
        (SpanKind::Activity, tries) => {
            tries.iter().map(|one| (one.start_ms, one.end_ms.unwrap_or(to_ms).max(one.start_ms))).collect()
        }
        _ => Vec::new(),
    }
}

/// The number of spans in each part of the time axis.
pub(super) fn bins(spans: &[Span], from_ms: u64, to_ms: u64, number: usize) -> Vec<u32> {
    if number == 0 {
        return Vec::new();
    }
    let length = u128::from(to_ms - from_ms) + 1;
    let bin = |at: u64| {
        let at = u128::from(at.clamp(from_ms, to_ms) - from_ms);
        usize::try_from(at * number as u128 / length).unwrap_or(number - 1)
    };
    // The changes at the starts and ends of spans; their sums are the numbers.
    let mut changes = vec![0_i64; number + 1];
    for span in spans {
        step();
        changes[bin(span.start_ms)] += 1;
        changes[bin(span.end_within(to_ms)) + 1] -= 1;
    }
    let mut running = 0;
    let sums = changes[..number].iter().map(|change| {
        running += change;
        u32::try_from(running).unwrap_or(u32::MAX)
    });
    sums.collect()
}

/// Gives each span the lowest lane that is free at its start, and returns the number of lanes. The spans are sorted by start.
pub(super) fn assign_lanes(spans: &mut [Span]) -> u32 {
    let mut busy: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    let mut free = BTreeSet::new();
    let mut lanes = 0;
    for span in spans {
        step();
        while let Some(&Reverse((until, lane))) = busy.peek() {
            if until > span.start_ms {
                break;
            }
            step();
            busy.pop();
            free.insert(lane);
        }
        span.lane = free.pop_first().unwrap_or_else(|| {
            lanes += 1;
            lanes - 1
        });
        // A span without length takes its lane for a moment, so that it does not cover another one.
        let until = span.end_ms.map_or(u64::MAX, |end| end.max(span.start_ms.saturating_add(1)));
        busy.push(Reverse((until, span.lane)));
    }
    lanes
}
