//! The status of an instance, as a client reads it.

use outlast_model::{ErrorDetails, ExecutionStatus};
use outlast_provider::InstanceOutcome;

/// The status of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrchestrationStatus {
    /// No turn of the instance is committed: it does not exist, or its start still waits in the queue.
    NotFound,
    /// The instance has not ended. An instance that continued as new is running.
    Running {
        /// The custom status that its code set.
        custom_status: Option<String>,
        /// Counts changes of the custom status.
        custom_status_version: u64,
    },
    /// The code of the instance returned a value.
    Completed {
        /// The value.
        output: String,
        /// The custom status that its code set last.
        custom_status: Option<String>,
        /// Counts changes of the custom status.
        custom_status_version: u64,
    },
    /// The code of the instance returned an error, or the instance was cancelled or poisoned.
    Failed {
        /// The error.
        details: ErrorDetails,
        /// The custom status that its code set last.
        custom_status: Option<String>,
        /// Counts changes of the custom status.
        custom_status_version: u64,
    },
}

impl OrchestrationStatus {
    /// Whether the instance has completed or failed.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed { .. } | Self::Failed { .. })
    }

    /// Converts the outcome that a store returns; `None` is `NotFound`.
    pub(crate) fn of(outcome: Option<InstanceOutcome>) -> Self {
        let Some(outcome) = outcome else { return Self::NotFound };
        let status = outcome.execution_status();
        let (custom_status, custom_status_version) = (outcome.custom_status, outcome.custom_status_version);
        match status {
            Some(ExecutionStatus::Completed) => Self::Completed {
                output: outcome.output.unwrap_or_default(),
                custom_status,
                custom_status_version,
            },
            Some(ExecutionStatus::Failed) => Self::Failed {
                details: outcome.failure.unwrap_or_else(|| undecodable(outcome.output)),
                custom_status,
                custom_status_version,
            },
            _ => Self::Running { custom_status, custom_status_version },
        }
    }
}

/// The details for a failure event that does not decode: the status row still has the message. So the status of an instance that
/// failed because of a damaged history can be read (C7).
fn undecodable(output: Option<String>) -> ErrorDetails {
    ErrorDetails::Infrastructure {
        operation: "read_outcome".to_string(),
        message: output.unwrap_or_else(|| "the recorded failure cannot be decoded".to_string()),
        retryable: false,
    }
}
