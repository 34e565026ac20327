//! A delivery for the observer of the runtime: its report, and its trace context.

use super::Delivery;
use crate::activity_context::ActivityContext;
use crate::handler::{ActivityHandler, Attempt};
use crate::observer::{self, ActivityDelivery, ActivityOutcome};
use std::sync::Arc;
use tokio::task::JoinHandle;
use tracing::Instrument;

impl Delivery {
    pub(super) fn observed(&self) -> ActivityDelivery<'_> {
        ActivityDelivery {
            instance: &self.instance,
            execution_id: self.execution_id,
            activity_id: self.id,
            activity: &self.name,
            tag: self.tag.as_deref(),
            attempt: self.number(),
        }
    }

    /// Reports this delivery to the observer, after the store has accepted its end.
    pub(super) fn observe(&self, outcome: ActivityOutcome<'_>) {
        observer::activity(&self.core, self.observed(), self.times, outcome);
    }

    /// Spawns the run of the handler inside of its span, and under the trace context of the delivery if there is one.
    pub(super) fn spawn(
        &self,
        handler: Arc<dyn ActivityHandler>,
        context: ActivityContext,
        input: String,
    ) -> JoinHandle<Attempt> {
        let core = &self.core;
        let (Some(observer), Some(traceparent)) = (&core.observer, context.shared_traceparent()) else {
            let span = span(&self.observed(), &context);
            let body = async move { handler.attempt(context, input).await }.instrument(span);
            return core.slots.spawn(core.paced(body));
        };
        let (instance, name, tag) = (Arc::clone(&self.instance), self.name.clone(), self.tag.clone());
        let (execution_id, activity_id, attempt) = (self.execution_id, self.id, self.number());
        let body = Box::pin(async move {
            let (activity, tag) = (name.as_str(), tag.as_deref());
            let delivery =
                ActivityDelivery { instance: &instance, execution_id, activity_id, activity, tag, attempt };
            // Made here, so that the parent of the span is the context under which this future runs.
            let span = span(&delivery, &context);
            async move { handler.attempt(context, input).await }.instrument(span).await
        });
        core.slots.spawn(core.paced(observer.under(&traceparent, body)))
    }
}

/// The span of a delivery.
fn span(delivery: &ActivityDelivery<'_>, context: &ActivityContext) -> tracing::Span {
    // `00-TRACE-SPAN-FLAGS`.
    let ids = context.traceparent();
    tracing::debug_span!(
        target: "duroxide::runtime",
        "activity",
        instance_id = %delivery.instance,
        execution_id = delivery.execution_id,
        orchestration_name = context.orchestration_name(),
        activity_name = %delivery.activity,
        activity_id = delivery.activity_id,
        attempt = delivery.attempt,
        trace_id = ids.and_then(|ids| ids.get(3..35)),
        span_id = ids.and_then(|ids| ids.get(36..52))
    )
}
