//! Metrics of activities.

use super::{MetricsProvider, owned};
use metrics::{Counter, counter, histogram};

impl MetricsProvider {
    /// An activity ended with `success`, `app_error`, `infra_error`, `config_error` or `cancelled`. `retry_attempt` is the number of
    /// its earlier deliveries plus the earlier attempts of its retry policy that this process scheduled.
    pub fn record_activity_execution(
        &self,
        activity_name: &str,
        outcome: &str,
        duration_seconds: f64,
        retry_attempt: u32,
        tag: Option<&str>,
    ) {
        let tag = tag.unwrap_or("default");
        counter!(
            "duroxide_activity_executions_total",
            "activity_name" => owned(activity_name),
            "outcome" => owned(outcome),
            "retry_attempt" => retry_attempt_label(retry_attempt),
            "tag" => owned(tag),
        )
        .increment(1);
        histogram!(
            "duroxide_activity_duration_seconds",
            "activity_name" => owned(activity_name),
            "outcome" => owned(outcome),
            "tag" => owned(tag),
        )
        .record(duration_seconds);
        let by_outcome = match outcome {
            "success" => return self.counters.activity_success.bump(),
            "app_error" => return self.counters.activity_app_errors.bump(),
            "infra_error" => {
                self.counters.activity_infra_errors.bump();
                "duroxide_activity_infrastructure_errors_total"
            }
            "config_error" => {
                self.counters.activity_config_errors.bump();
                "duroxide_activity_configuration_errors_total"
            }
            _ => return,
        };
        counter!(by_outcome, "activity_name" => owned(activity_name)).increment(1);
    }

    /// An activity succeeded; for callers that do not have its name.
    pub fn record_activity_success(&self) {
        self.counters.activity_success.bump();
        counter!("duroxide_activity_executions_total", "outcome" => "success").increment(1);
    }

    /// An activity returned an error; for callers that do not have its name.
    pub fn record_activity_app_error(&self) {
        self.counters.activity_app_errors.bump();
        counter!("duroxide_activity_executions_total", "outcome" => "app_error").increment(1);
    }

    /// An activity failed with an error of the store or the runtime; for callers that do not have its name.
    pub fn record_activity_infra_error(&self) {
        self.counters.activity_infra_errors.bump();
        counter!("duroxide_activity_executions_total", "outcome" => "infra_error").increment(1);
        counter!("duroxide_activity_infrastructure_errors_total").increment(1);
    }

    /// An activity failed with an error of deployment; for callers that do not have its name.
    pub fn record_activity_config_error(&self) {
        self.counters.activity_config_errors.bump();
        counter!("duroxide_activity_executions_total", "outcome" => "config_error").increment(1);
        counter!("duroxide_activity_configuration_errors_total").increment(1);
    }

    /// An activity was delivered too often.
    pub fn record_activity_poison(&self) {
        self.counters.activity_poison.bump();
        poisoned().increment(1);
    }
}

/// The counter of [`MetricsProvider::record_activity_poison`].
pub(super) fn poisoned() -> Counter {
    counter!("duroxide_activity_poison_total")
}

/// The label for a number of retries; it has four values.
pub(super) fn retry_attempt_label(retry_attempt: u32) -> &'static str {
    match retry_attempt {
        0 => "0",
        1 => "1",
        2 => "2",
        _ => "3+",
    }
}
