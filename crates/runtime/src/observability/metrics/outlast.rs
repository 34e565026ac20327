//! Metrics that the contract does not have, named `outlast_*`.

use super::activities::retry_attempt_label;
use super::{MetricsProvider, owned};
use crate::observability::OutlastMetricsSnapshot;
use metrics::{counter, gauge};

impl MetricsProvider {
    /// The counters that the contract does not have.
    pub fn outlast_snapshot(&self) -> OutlastMetricsSnapshot {
        self.outlast.snapshot()
    }

    /// A turn used an entry of the warm cache.
    pub fn record_warm_hit(&self) {
        self.outlast.warm_hits.bump();
        counter!("outlast_warm_hits_total").increment(1);
    }

    /// A turn replayed its history.
    pub fn record_warm_miss(&self) {
        self.outlast.warm_misses.bump();
        counter!("outlast_warm_misses_total").increment(1);
    }

    /// A turn was run ahead. `committed`: the store committed it together with the activity's outcome. `queued`: the store queued the
    /// outcome and rejected the turn.
    pub fn record_turn_ahead(&self, result: &'static str) {
        self.outlast.turns_ahead.bump();
        counter!("outlast_turns_ahead_total", "result" => result).increment(1);
    }

    /// Entries were evicted from the warm cache.
    pub fn record_warm_evictions(&self, count: u64) {
        self.outlast.warm_evictions.add(count);
        counter!("outlast_warm_evictions_total").increment(count);
    }

    /// The size of the warm cache.
    pub fn update_warm_cache(&self, executions: u64, bytes: u64) {
        gauge!("outlast_warm_executions").set(executions as f64);
        gauge!("outlast_warm_bytes").set(bytes as f64);
    }

    /// The lease of a `turn` or an `activity` was lost while in use.
    pub fn record_lease_lost(&self, kind: &'static str) {
        self.outlast.leases_lost.bump();
        counter!("outlast_leases_lost_total", "kind" => kind).increment(1);
    }

    /// The commit of a `turn` or an `activity` was repeated after an error.
    pub fn record_commit_retry(&self, kind: &'static str) {
        self.outlast.commit_retries.bump();
        counter!("outlast_commit_retries_total", "kind" => kind).increment(1);
        if kind == "turn" {
            counter!("provider.ack_orchestration_retries").increment(1);
        }
    }

    /// A turn scheduled an activity again, as this attempt of its retry policy; the first retry is attempt 2.
    pub fn record_activity_retry(&self, activity_name: &str, attempt: u32, tag: Option<&str>) {
        self.outlast.activity_retries.bump();
        counter!(
            "outlast_activity_retries_total",
            "activity_name" => owned(activity_name),
            "retry_attempt" => retry_attempt_label(attempt.saturating_sub(1)),
            "tag" => owned(tag.unwrap_or("default")),
        )
        .increment(1);
    }

    /// A pass of retention deleted instances, records of the audit and dead letters.
    pub fn record_retention(&self, instances: u64, audit_records: u64, dead_letters: u64) {
        for (kind, count) in
            [("instance", instances), ("audit", audit_records), ("dead_letter", dead_letters)]
        {
            if count > 0 {
                counter!("outlast_retention_deleted_total", "kind" => kind).increment(count);
            }
        }
    }

    /// Messages were dropped without effect, for this reason.
    pub fn record_dropped_messages(&self, reason: &'static str, count: u64) {
        self.outlast.dropped_messages.add(count);
        counter!("outlast_dropped_messages_total", "reason" => reason).increment(count);
    }
}
