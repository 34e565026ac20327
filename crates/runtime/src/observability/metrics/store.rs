//! Metrics of the store, the dispatchers and the queues.

use super::{MetricsProvider, owned};
use crate::observability::Operation;
use metrics::{counter, gauge, histogram};
use outlast_provider::{HeldCounts, QueueBacklog, StoreGauges};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

const ACTIVE: &str = "duroxide_active_orchestrations";
const OPERATIONS: &str = "duroxide_provider_operation_duration_seconds";
const ERRORS: &str = "duroxide_provider_errors_total";
const QUEUE_MESSAGES: &str = "outlast_queue_messages";

/// The store and the dispatchers.
impl MetricsProvider {
    /// A call of the store ended with `success` or `error`.
    pub fn record_provider_operation(&self, operation: &str, duration_seconds: f64, status: &str) {
        histogram!(OPERATIONS, "operation" => owned(operation), "status" => owned(status))
            .record(duration_seconds);
    }

    /// A call of the store failed with an error of this type, one of the labels of `ErrorClass`.
    pub fn record_provider_error(&self, operation: &str, error_type: &str) {
        self.counters.provider_errors.bump();
        counter!(ERRORS, "operation" => owned(operation), "error_type" => owned(error_type)).increment(1);
    }

    /// An operation of the store failed. With `is_recorded` another component exports the error.
    pub(crate) fn store_error(&self, error_type: &'static str, operation: Operation, is_recorded: bool) {
        self.counters.provider_errors.bump();
        if !is_recorded {
            counter!(ERRORS, "operation" => operation.name(), "error_type" => error_type).increment(1);
        }
    }

    /// Turns were fetched.
    pub fn record_orch_dispatcher_items_fetched(&self, count: u64) {
        self.counters.orch_dispatcher_items_fetched.add(count);
        counter!("duroxide_orchestration_dispatcher_items_fetched").increment(count);
    }

    /// The time of a turn from its fetch to its commit.
    pub fn record_orch_dispatcher_processing_duration(&self, duration_ms: u64) {
        histogram!("duroxide_orchestration_dispatcher_processing_duration_ms").record(duration_ms as f64);
    }

    /// Activities were fetched.
    pub fn record_worker_dispatcher_items_fetched(&self, count: u64) {
        self.counters.worker_dispatcher_items_fetched.add(count);
        counter!("duroxide_worker_dispatcher_items_fetched").increment(count);
    }

    /// The time that the handler of an activity ran.
    pub fn record_worker_dispatcher_execution_duration(&self, duration_ms: u64) {
        histogram!("duroxide_worker_dispatcher_execution_duration_ms").record(duration_ms as f64);
    }
}

/// Gauges.
impl MetricsProvider {
    /// Sets the gauges of running instances and of waiting items in both queues: all items, and due and delayed items separately if
    /// the store splits them. Keeps the values for [`Self::get_store_gauges`].
    pub fn update_store_gauges(&self, gauges: &StoreGauges) {
        self.set_active_orchestrations(i64::try_from(gauges.running_instances).unwrap_or(i64::MAX));
        self.update_queue_depths(gauges.orchestrator_queue, gauges.worker_queue);
        for (queue, backlog) in
            [("orchestrator", gauges.orchestrator_backlog), ("worker", gauges.worker_backlog)]
        {
            if let Some(QueueBacklog { due, delayed }) = backlog {
                gauge!(QUEUE_MESSAGES, "queue" => queue, "state" => "due").set(due as f64);
                gauge!(QUEUE_MESSAGES, "queue" => queue, "state" => "delayed").set(delayed as f64);
            }
        }
        *self.store_gauges.lock().unwrap_or_else(PoisonError::into_inner) = *gauges;
    }

    /// Sets the gauges of held instances and of their messages, which the other gauges leave out.
    pub fn update_held_gauges(&self, held: HeldCounts) {
        gauge!("outlast_held_instances").set(held.instances as f64);
        gauge!(QUEUE_MESSAGES, "queue" => "orchestrator", "state" => "held").set(held.messages as f64);
    }

    /// The gauges that were last read from the store; all zero before the first read.
    pub fn get_store_gauges(&self) -> StoreGauges {
        *self.store_gauges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the number of waiting items in the two queues.
    pub fn update_queue_depths(&self, orch_depth: u64, worker_depth: u64) {
        self.orchestrator_queue_depth.store(orch_depth, Ordering::Relaxed);
        self.worker_queue_depth.store(worker_depth, Ordering::Relaxed);
        gauge!("duroxide_orchestrator_queue_depth").set(orch_depth as f64);
        gauge!("duroxide_worker_queue_depth").set(worker_depth as f64);
    }

    /// The queue depths that were set last: of messages, and of activities.
    pub fn get_queue_depths(&self) -> (u64, u64) {
        (
            self.orchestrator_queue_depth.load(Ordering::Relaxed),
            self.worker_queue_depth.load(Ordering::Relaxed),
        )
    }

    /// An instance became active. The runtime does not call this: it sets the gauge to the number that the store reports.
    pub fn increment_active_orchestrations(&self) {
        self.active_orchestrations.fetch_add(1, Ordering::Relaxed);
        gauge!(ACTIVE).increment(1.0);
    }

    /// An instance ended. The runtime does not call this: it sets the gauge to the number that the store reports.
    pub fn decrement_active_orchestrations(&self) {
        self.active_orchestrations.fetch_sub(1, Ordering::Relaxed);
        gauge!(ACTIVE).decrement(1.0);
    }

    /// Sets the number of active instances.
    pub fn set_active_orchestrations(&self, count: i64) {
        self.active_orchestrations.store(count, Ordering::Relaxed);
        gauge!(ACTIVE).set(count as f64);
    }

    /// The number of active instances.
    pub fn get_active_orchestrations(&self) -> i64 {
        self.active_orchestrations.load(Ordering::Relaxed)
    }
}
