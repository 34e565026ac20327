//! Status and result of an instance, without its history.

use outlast_model::{ErrorDetails, Event, EventKind, ExecutionStatus};

/// Status and result of an instance's newest execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceOutcome {
    /// The execution.
    pub execution_id: u64,
    /// `Running`, `Completed`, `Failed` or `ContinuedAsNew`.
    pub status: String,
    /// Result, error text or next input.
    pub output: Option<String>,
    /// The recorded failure, if the execution failed and its terminal event decodes.
    pub failure: Option<ErrorDetails>,
    /// Custom status.
    pub custom_status: Option<String>,
    /// The number of changes of the custom status.
    pub custom_status_version: u64,
}

impl InstanceOutcome {
    /// The status; `None` for a text that the contract does not name.
    pub fn execution_status(&self) -> Option<ExecutionStatus> {
        ExecutionStatus::from_text(&self.status)
    }

    /// The outcome in a history; `None` for an empty history. The first terminal event counts.
    pub fn from_history(history: &[Event]) -> Option<Self> {
        let execution_id = history.first()?.execution_id;
        let terminal = history.iter().find(|event| event.is_terminal()).map(|event| &event.kind);
        let (status, output, failure) = match terminal {
            Some(EventKind::OrchestrationCompleted { output }) => {
                (ExecutionStatus::Completed, Some(output.clone()), None)
            }
            Some(EventKind::OrchestrationFailed { details }) => {
                (ExecutionStatus::Failed, Some(details.display_message()), Some(details.clone()))
            }
            Some(EventKind::OrchestrationContinuedAsNew { input }) => {
                (ExecutionStatus::ContinuedAsNew, Some(input.clone()), None)
            }
            _ => (ExecutionStatus::Running, None, None),
        };
        Some(Self {
            execution_id,
            status: status.to_string(),
            output,
            failure,
            custom_status: None,
            custom_status_version: 0,
        })
    }
}
