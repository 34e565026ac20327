//! The status of an execution.

use std::fmt;

/// The status of an execution. Values of the contract and rows of stores hold its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExecutionStatus {
    /// The execution has no terminal event.
    Running,
    /// The orchestration returned.
    Completed,
    /// The orchestration failed or was cancelled.
    Failed,
    /// The execution ended, and the next execution of the instance begins.
    ContinuedAsNew,
}

impl ExecutionStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Running, Self::Completed, Self::Failed, Self::ContinuedAsNew];

    /// The text of the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
            Self::ContinuedAsNew => "ContinuedAsNew",
        }
    }

    /// The status that a text names, in the case of the contract; `None` for every other text.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Whether the execution has ended.
    pub const fn ends_execution(self) -> bool {
        !matches!(self, Self::Running)
    }

    /// Whether the instance has ended with the execution: no execution follows.
    pub const fn ends_instance(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

impl fmt::Display for ExecutionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_every_status_names_that_status_and_no_other_text_does() {
        for status in ExecutionStatus::ALL {
            assert_eq!(ExecutionStatus::from_text(status.as_str()), Some(status));
            assert_eq!(status.to_string(), format!("{status:?}"));
        }
        for text in ["", "running", "Completed ", "Unknown"] {
            assert_eq!(ExecutionStatus::from_text(text), None, "{text:?}");
        }
    }

    #[test]
    fn continued_execution_has_ended_and_its_instance_has_not() {
        let ends = ExecutionStatus::ALL.map(|status| (status.ends_execution(), status.ends_instance()));
        assert_eq!(ends, [(false, false), (true, true), (true, true), (true, false)]);
    }
}
