//! How an instance stands, as a client sees it.

use outlast_model::{ErrorDetails, ExecutionStatus};
use outlast_provider::InstanceOutcome;

/// How an instance stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrchestrationStatus {
    /// Nothing was committed for it: it does not exist, or its start still waits in the queue.
    NotFound,
    /// It has not ended. One that continued as new runs on.
    Running {
        /// What its code says about itself.
        custom_status: Option<String>,
        /// Counts changes of the custom status.
        custom_status_version: u64,
    },
    /// Its code returned a value.
    Completed {
        /// The value.
        output: String,
        /// What its code said last about itself.
        custom_status: Option<String>,
        /// Counts changes of the custom status.
        custom_status_version: u64,
    },
    /// Its code returned an error, was cancelled, or could not go on.
    Failed {
        /// Why.
        details: ErrorDetails,
        /// What its code said last about itself.
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

    /// The status that a store's outcome tells.
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

/// The event that says why does not decode, but the status row still has its text: an instance that failed because of
/// its damaged history must not become one that cannot be asked about (C7).
fn undecodable(output: Option<String>) -> ErrorDetails {
    ErrorDetails::Infrastructure {
        operation: "read_outcome".to_string(),
        message: output.unwrap_or_else(|| "the recorded failure cannot be decoded".to_string()),
        retryable: false,
    }
}
