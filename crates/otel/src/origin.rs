//! Finds the trace of an execution: in memory, or from the first events of the execution and of its parents in the store.

use crate::fold::Opening;
use crate::ids::{span_id, trace_id};
use crate::seen::Seen;
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use outlast::INITIAL_EXECUTION_ID;
use outlast::providers::{Provider, ProviderError};
use outlast::runtime::observer::{StartNote, is_traceparent};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most executions in memory. All of them can be found again, so the map is cleared at this size.
const MOST: usize = 10_000;

/// The events at the beginning of an execution that can hold the note of its start.
const FIRST_EVENTS: usize = 16;

/// The deepest tree of children whose root is looked for.
const DEEPEST: usize = 64;

/// The trace of an execution, and the place of the orchestration's span in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) trace: TraceId,
    pub(crate) is_sampled: bool,
    /// The span of the orchestration.
    pub(crate) span: SpanId,
    /// Its parent; invalid for a root.
    pub(crate) parent: SpanId,
    pub(crate) orchestration: Arc<str>,
}

impl Origin {
    pub(crate) fn context(&self, span: SpanId) -> SpanContext {
        let flags = if self.is_sampled { TraceFlags::SAMPLED } else { TraceFlags::NOT_SAMPLED };
        SpanContext::new(self.trace, span, flags, false, TraceState::default())
    }
}

/// The parts of a W3C `traceparent`: trace, span, and whether the caller samples the trace.
pub(crate) fn parsed(traceparent: &str) -> Option<(TraceId, SpanId, bool)> {
    if !is_traceparent(traceparent) {
        return None;
    }
    let mut parts = traceparent.split('-').skip(1);
    let trace = TraceId::from_hex(parts.next()?).ok()?;
    let span = SpanId::from_hex(parts.next()?).ok()?;
    let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
    Some((trace, span, flags & 1 == 1))
}

/// The origins of the executions of one store.
pub(crate) struct Origins {
    store: Arc<dyn Provider>,
    /// The part of the traces without a caller that are exported, from 0 to 1.
    ratio: f64,
    known: Mutex<HashMap<String, HashMap<u64, Origin>>>,
}

type Found<'a> = Pin<Box<dyn Future<Output = Result<Option<Origin>, ProviderError>> + Send + 'a>>;

impl Origins {
    pub(crate) fn new(store: Arc<dyn Provider>, ratio: f64) -> Self {
        Self { store, ratio, known: Mutex::default() }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Provider> {
        &self.store
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, HashMap<u64, Origin>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The origin of an execution, if it is in memory.
    pub(crate) fn known(&self, instance: &str, execution_id: u64) -> Option<Origin> {
        self.lock().get(instance)?.get(&execution_id).cloned()
    }

    /// Keeps the origin of an execution that begins, without a read. A child whose parent is not in memory is found later. An
    /// instance that was deleted and started again replaces its predecessor.
    pub(crate) fn begin(&self, instance: &str, execution_id: u64, opening: &Opening) {
        let parent =
            parent_of(opening, execution_id).map(|(parent, execution)| self.known(parent, execution));
        if execution_id == INITIAL_EXECUTION_ID {
            self.lock().remove(instance);
        }
        if !matches!(parent, Some(None)) {
            self.keep(instance, execution_id, self.origin(instance, execution_id, opening, parent.flatten()));
        }
    }

    /// The origin of an execution. `None` if the store does not have the execution.
    pub(crate) async fn find(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Option<Origin>, ProviderError> {
        self.find_within(instance, execution_id, DEEPEST).await
    }

    /// The origin of an execution whose beginning is known.
    pub(crate) async fn of(
        &self,
        instance: &str,
        execution_id: u64,
        opening: &Opening,
    ) -> Result<Origin, ProviderError> {
        match self.known(instance, execution_id) {
            Some(origin) => Ok(origin),
            None => self.of_within(instance, execution_id, opening, DEEPEST).await,
        }
    }

    fn find_within<'a>(&'a self, instance: &'a str, execution_id: u64, depth: usize) -> Found<'a> {
        Box::pin(async move {
            if let Some(origin) = self.known(instance, execution_id) {
                return Ok(Some(origin));
            }
            let Some(admin) = self.store.as_management_capability() else { return Ok(None) };
            let events = admin.history_page(instance, execution_id, 0, FIRST_EVENTS).await?;
            match Opening::of(&Seen::all(&events)) {
                Some(opening) => self.of_within(instance, execution_id, &opening, depth).await.map(Some),
                None => Ok(None),
            }
        })
    }

    async fn of_within(
        &self,
        instance: &str,
        execution_id: u64,
        opening: &Opening,
        depth: usize,
    ) -> Result<Origin, ProviderError> {
        let parent = match parent_of(opening, execution_id).filter(|_| depth > 0) {
            Some((parent, execution)) => self.find_within(parent, execution, depth - 1).await?,
            None => None,
        };
        let origin = self.origin(instance, execution_id, opening, parent);
        self.keep(instance, execution_id, origin.clone());
        Ok(origin)
    }

    /// A child is in the trace of its parent, an instance with a caller in the trace of the caller, all others begin a trace.
    fn origin(&self, instance: &str, execution_id: u64, opening: &Opening, parent: Option<Origin>) -> Origin {
        let caller = match &opening.note {
            Some(StartNote::Caller { traceparent, .. }) if execution_id == INITIAL_EXECUTION_ID => {
                parsed(traceparent)
            }
            _ => None,
        };
        let (trace, is_sampled, parent) = match (parent, caller) {
            (Some(parent), _) => (parent.trace, parent.is_sampled, parent.span),
            (None, Some((trace, _, is_sampled))) => {
                (trace, is_sampled, span_id(trace, instance, execution_id, 0, 0))
            }
            (None, None) => {
                let trace = trace_id(instance, execution_id, opening.at_ms);
                (trace, is_within(trace, self.ratio), SpanId::INVALID)
            }
        };
        let span = span_id(trace, instance, execution_id, 1, 0);
        Origin { trace, is_sampled, span, parent, orchestration: opening.name.as_str().into() }
    }

    fn keep(&self, instance: &str, execution_id: u64, origin: Origin) {
        let mut known = self.lock();
        if known.len() >= MOST {
            known.clear();
        }
        let executions = known.entry(instance.to_string()).or_default();
        if executions.len() >= FIRST_EVENTS {
            executions.clear();
        }
        executions.insert(execution_id, origin);
    }
}

/// The parent in whose trace an execution is: continue-as-new leaves it.
fn parent_of(opening: &Opening, execution_id: u64) -> Option<(&str, u64)> {
    let (parent, execution) = opening.parent.as_ref().filter(|_| execution_id == INITIAL_EXECUTION_ID)?;
    Some((parent.as_str(), *execution))
}

/// Whether a trace is in the exported part. Every node gives the same answer.
fn is_within(trace: TraceId, ratio: f64) -> bool {
    let low = trace.to_bytes()[8..].iter().fold(0u64, |low, byte| (low << 8) | u64::from(*byte));
    // 53 bits are exact in a floating-point number.
    ((low >> 11) as f64) < ratio * (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_samples_its_part_of_the_traces() {
        let sampled = |ratio| (0..1_000).filter(|n| is_within(trace_id("i", 1, *n), ratio)).count();
        assert_eq!((sampled(0.0), sampled(1.0)), (0, 1_000));
        assert!((150..350).contains(&sampled(0.25)), "{}", sampled(0.25));
    }

    #[test]
    fn a_traceparent_is_parsed_with_its_flag() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let (found, parent, is_sampled) = parsed(&format!("00-{trace}-{span}-01")).unwrap();
        assert_eq!(
            (found.to_string().as_str(), parent.to_string().as_str(), is_sampled),
            (trace, span, true)
        );
        assert!(!parsed(&format!("00-{trace}-{span}-02")).unwrap().2);
        assert!(parsed("00-0-0-01").is_none());
    }
}
