//! The contract's metrics (api 9.2): each event is counted once in the snapshot and once through the `metrics` facade.

mod activities;
mod operation;
mod orchestrations;
mod outlast;
mod store;

pub(crate) use operation::Operation;

use super::snapshot::{Counters, OutlastCounters};
use super::{MetricsSnapshot, ObservabilityConfig};
use metrics::SharedString;
use outlast_provider::StoreGauges;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64};

/// The metrics of a runtime. Without a recorder for the `metrics` facade only the snapshots are kept.
#[derive(Debug, Default)]
pub struct MetricsProvider {
    counters: Counters,
    outlast: OutlastCounters,
    active_orchestrations: AtomicI64,
    orchestrator_queue_depth: AtomicU64,
    worker_queue_depth: AtomicU64,
    store_gauges: Mutex<StoreGauges>,
}

impl MetricsProvider {
    /// Metrics that count from zero.
    ///
    /// # Errors
    /// None.
    pub fn new(_config: &ObservabilityConfig) -> Result<Self, String> {
        Ok(Self::default())
    }

    /// Exports the counters of poison, also with the value zero. An exporter shows a counter from its first use on. An alert on the
    /// increase of a counter misses an event whose counter appears only with this event.
    pub(crate) fn export_poison(&self) {
        orchestrations::poisoned().increment(0);
        activities::poisoned().increment(0);
    }

    /// Does nothing: there is nothing to flush, and exporters belong to the caller.
    ///
    /// # Errors
    /// None.
    pub async fn shutdown(self) -> Result<(), String> {
        Ok(())
    }

    /// The counts so far.
    pub fn snapshot(&self) -> MetricsSnapshot {
        self.counters.snapshot()
    }
}

/// Copies a label, because an exporter keeps it.
fn owned(label: &str) -> SharedString {
    label.to_string().into()
}
