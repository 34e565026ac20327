//! Metrics of executions.

use super::{MetricsProvider, owned};
use metrics::{Counter, counter, histogram};

impl MetricsProvider {
    /// An execution started; `initiated_by` is `client` or `continueAsNew`.
    pub fn record_orchestration_start(&self, orchestration_name: &str, version: &str, initiated_by: &str) {
        self.counters.orch_starts.bump();
        counter!(
            "duroxide_orchestration_starts_total",
            "orchestration_name" => owned(orchestration_name),
            "version" => owned(version),
            "initiated_by" => owned(initiated_by),
        )
        .increment(1);
    }

    /// An execution ended as `success`, `failed` or `continuedAsNew`.
    pub fn record_orchestration_completion(
        &self,
        orchestration_name: &str,
        version: &str,
        status: &str,
        duration_seconds: f64,
        turn_count: u64,
        history_events: u64,
    ) {
        self.counters.orch_completions.bump();
        let name = || owned(orchestration_name);
        counter!(
            "duroxide_orchestration_completions_total",
            "orchestration_name" => name(),
            "version" => owned(version),
            "status" => owned(status),
            "final_turn_count" => turn_count_label(turn_count),
        )
        .increment(1);
        histogram!(
            "duroxide_orchestration_duration_seconds",
            "orchestration_name" => name(),
            "version" => owned(version),
            "status" => owned(status),
        )
        .record(duration_seconds);
        histogram!("duroxide_orchestration_turns", "orchestration_name" => name()).record(turn_count as f64);
        histogram!("duroxide_orchestration_history_size", "orchestration_name" => name())
            .record(history_events as f64);
    }

    /// An execution failed; `error_type` is `app_error`, `infrastructure_error`, `config_error` or `unknown`.
    pub fn record_orchestration_failure(
        &self,
        orchestration_name: &str,
        version: &str,
        error_type: &str,
        error_category: &str,
    ) {
        self.counters.orch_failures.bump();
        counter!(
            "duroxide_orchestration_failures_total",
            "orchestration_name" => owned(orchestration_name),
            "version" => owned(version),
            "error_type" => owned(error_type),
            "error_category" => owned(error_category),
        )
        .increment(1);
        let by_type = match error_type {
            "app_error" => return self.counters.orch_application_errors.bump(),
            "infrastructure_error" => {
                self.counters.orch_infrastructure_errors.bump();
                "duroxide_orchestration_infrastructure_errors_total"
            }
            "config_error" => {
                self.counters.orch_configuration_errors.bump();
                "duroxide_orchestration_configuration_errors_total"
            }
            _ => return,
        };
        counter!(
            by_type,
            "orchestration_name" => owned(orchestration_name),
            "error_category" => owned(error_category),
        )
        .increment(1);
    }

    /// An execution failed with an error of its code; for callers that do not have its name.
    pub fn record_orchestration_application_error(&self) {
        self.counters.orch_failures.bump();
        self.counters.orch_application_errors.bump();
        counter!("duroxide_orchestration_failures_total", "error_type" => "app_error").increment(1);
    }

    /// An execution failed with an error of the store or the runtime; for callers that do not have its name.
    pub fn record_orchestration_infrastructure_error(&self) {
        self.counters.orch_failures.bump();
        self.counters.orch_infrastructure_errors.bump();
        counter!("duroxide_orchestration_failures_total", "error_type" => "infrastructure_error")
            .increment(1);
        counter!("duroxide_orchestration_infrastructure_errors_total").increment(1);
    }

    /// An execution failed with an error of deployment; for callers that do not have its name.
    pub fn record_orchestration_configuration_error(&self) {
        self.counters.orch_failures.bump();
        self.counters.orch_configuration_errors.bump();
        counter!("duroxide_orchestration_failures_total", "error_type" => "config_error").increment(1);
        counter!("duroxide_orchestration_configuration_errors_total").increment(1);
    }

    /// An execution continued as new.
    pub fn record_continue_as_new(&self, orchestration_name: &str, execution_id: u64) {
        self.counters.orch_continue_as_new.bump();
        counter!(
            "duroxide_orchestration_continue_as_new_total",
            "orchestration_name" => owned(orchestration_name),
            "execution_id" => execution_id.to_string(),
        )
        .increment(1);
    }

    /// An instance failed because its messages were delivered too often.
    pub fn record_orchestration_poison(&self) {
        self.counters.orch_poison.bump();
        poisoned().increment(1);
    }

    /// A sub-orchestration was called.
    pub fn record_suborchestration_call(
        &self,
        parent_orchestration: &str,
        child_orchestration: &str,
        outcome: &str,
    ) {
        self.counters.suborchestration_calls.bump();
        count_suborchestration(parent_orchestration, child_orchestration, outcome);
    }

    /// The call of a sub-orchestration ended as `completed`, `failed`, `cancelled` or `abandoned`. Not counted in the snapshot, which
    /// counts calls when they start.
    pub(crate) fn suborchestration_ended(
        &self,
        parent_orchestration: &str,
        child_orchestration: &str,
        outcome: &'static str,
        duration_seconds: f64,
    ) {
        count_suborchestration(parent_orchestration, child_orchestration, outcome);
        self.record_suborchestration_duration(
            parent_orchestration,
            child_orchestration,
            duration_seconds,
            outcome,
        );
    }

    /// The duration of a call of a sub-orchestration.
    pub fn record_suborchestration_duration(
        &self,
        parent_orchestration: &str,
        child_orchestration: &str,
        duration_seconds: f64,
        outcome: &str,
    ) {
        histogram!(
            "duroxide_suborchestration_duration_seconds",
            "parent_orchestration" => owned(parent_orchestration),
            "child_orchestration" => owned(child_orchestration),
            "outcome" => owned(outcome),
        )
        .record(duration_seconds);
    }
}

/// The counter of [`MetricsProvider::record_orchestration_poison`].
pub(super) fn poisoned() -> Counter {
    counter!("duroxide_orchestration_poison_total")
}

fn count_suborchestration(parent_orchestration: &str, child_orchestration: &str, outcome: &str) {
    counter!(
        "duroxide_suborchestration_calls_total",
        "parent_orchestration" => owned(parent_orchestration),
        "child_orchestration" => owned(child_orchestration),
        "outcome" => owned(outcome),
    )
    .increment(1);
}

/// The label for a number of turns; it has four values.
fn turn_count_label(turns: u64) -> &'static str {
    match turns {
        0..=5 => "1-5",
        6..=10 => "6-10",
        11..=50 => "11-50",
        _ => "50+",
    }
}
