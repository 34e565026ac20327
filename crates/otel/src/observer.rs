//! The observer of a runtime: passes committed turns and activities to the task that makes spans, and never waits for it.

use crate::export::{Counts, Job, StoreTraces};
use crate::fold::Opening;
use crate::ids::span_id;
use crate::origin::parsed;
use crate::seen::{Seen, error_type};
use crate::span::Delivered;
use async_trait::async_trait;
use opentelemetry::Context;
use opentelemetry::context::FutureExt;
use opentelemetry::trace::{SpanContext, TraceContextExt, TraceFlags, TraceState};
use outlast::INITIAL_EVENT_ID;
use outlast::runtime::observer::{
    ActivityDelivery, ActivityOutcome, AttemptFuture, CommitObserver, CommittedActivity, CommittedTurn,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

/// The longest wait of an activity for its trace, if the trace has to be read from the store. After it the activity runs without a
/// trace context.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

pub(crate) struct Observer {
    pub(crate) traces: Arc<StoreTraces>,
    pub(crate) jobs: Sender<Job>,
    pub(crate) counts: Arc<Counts>,
}

impl Observer {
    fn send(&self, job: Job) {
        match self.jobs.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.counts.dropped("queue_full", 1),
            Err(TrySendError::Closed(_)) => self.counts.dropped("stopped", 1),
        }
    }
}

#[async_trait]
impl CommitObserver for Observer {
    fn turn_committed(&self, turn: CommittedTurn<'_>) {
        let CommittedTurn { instance, execution_id, events, .. } = turn;
        let seen = Seen::all(events);
        // An activity of this turn may ask for its trace before the task has seen the turn.
        if seen.first().is_some_and(|first| first.id == INITIAL_EVENT_ID)
            && let Some(opening) = Opening::of(&seen)
        {
            self.traces.origins.begin(instance, execution_id, &opening);
        }
        let (traces, instance) = (Arc::clone(&self.traces), instance.to_string());
        self.send(Job::Turn { traces, instance, execution_id, seen });
    }

    fn activity_committed(&self, activity: CommittedActivity<'_>) {
        let ActivityDelivery { instance, execution_id, .. } = activity.delivery;
        let (outcome, error_type) = match activity.outcome {
            ActivityOutcome::Failed(details) => ("failed", Some(error_type(details))),
            ActivityOutcome::Retried(_) => ("retried", Some("app_error")),
            _ => ("completed", None),
        };
        let delivered = Delivered {
            activity_id: activity.delivery.activity_id,
            name: activity.delivery.activity.to_string(),
            tag: activity.delivery.tag.map(str::to_string),
            attempt: activity.delivery.attempt,
            from_ms: activity.started_at_ms,
            to_ms: activity.ended_at_ms,
            outcome,
            error_type,
        };
        let (traces, instance) = (Arc::clone(&self.traces), instance.to_string());
        self.send(Job::Activity { traces, instance, execution_id, delivered });
    }

    async fn traceparent(&self, delivery: &ActivityDelivery<'_>) -> Option<String> {
        let ActivityDelivery { instance, execution_id, activity_id, attempt, .. } = *delivery;
        let origins = &self.traces.origins;
        let origin = match origins.known(instance, execution_id) {
            Some(origin) => origin,
            None => tokio::time::timeout(LONGEST_WAIT, origins.find(instance, execution_id))
                .await
                .ok()?
                .ok()??,
        };
        let span = span_id(origin.trace, instance, execution_id, activity_id, attempt);
        Some(format!("00-{}-{span}-{:02x}", origin.trace, u8::from(origin.is_sampled)))
    }

    fn under(&self, traceparent: &str, run: AttemptFuture) -> AttemptFuture {
        let Some((trace, span, is_sampled)) = parsed(traceparent) else { return run };
        let flags = if is_sampled { TraceFlags::SAMPLED } else { TraceFlags::NOT_SAMPLED };
        let context = SpanContext::new(trace, span, flags, true, TraceState::default());
        Box::pin(run.with_context(Context::new().with_remote_span_context(context)))
    }
}
