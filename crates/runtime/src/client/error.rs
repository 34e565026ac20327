//! The errors of client calls.

use outlast_provider::ProviderError;
use std::fmt;

/// A client call that failed.
#[derive(Clone)]
pub enum ClientError {
    /// The store failed.
    Provider(ProviderError),
    /// The store has no management interface.
    ManagementNotAvailable,
    /// An argument was rejected; nothing was stored.
    InvalidInput {
        /// The problem with the argument, and its remedy.
        message: String,
    },
    /// The condition of a wait did not hold before its timeout.
    Timeout,
    /// The instance runs; only a deletion with `force` removes it.
    InstanceStillRunning {
        /// The instance.
        instance_id: String,
    },
    /// The instance is a child; only the deletion of its root removes it.
    CannotDeleteSubOrchestration {
        /// The child.
        instance_id: String,
    },
    /// There is no such instance.
    InstanceNotFound {
        /// The instance.
        instance_id: String,
    },
}

impl ClientError {
    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Provider(error) => error.is_retryable(),
            Self::Timeout => true,
            Self::ManagementNotAvailable
            | Self::InvalidInput { .. }
            | Self::InstanceStillRunning { .. }
            | Self::CannotDeleteSubOrchestration { .. }
            | Self::InstanceNotFound { .. } => false,
        }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidInput { message: message.into() }
    }
}

/// Prints the sentence of `Display`, because `unwrap` and a `main` that returns an error print `Debug`.
impl fmt::Debug for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variant = match self {
            Self::Provider(_) => "Provider",
            Self::ManagementNotAvailable => "ManagementNotAvailable",
            Self::InvalidInput { .. } => "InvalidInput",
            Self::Timeout => "Timeout",
            Self::InstanceStillRunning { .. } => "InstanceStillRunning",
            Self::CannotDeleteSubOrchestration { .. } => "CannotDeleteSubOrchestration",
            Self::InstanceNotFound { .. } => "InstanceNotFound",
        };
        f.debug_tuple(variant).field(&self.to_string()).finish()
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider(error) => error.fmt(f),
            Self::ManagementNotAvailable => {
                write!(f, "Management features not available - provider doesn't implement ProviderAdmin")
            }
            Self::InvalidInput { message } => write!(f, "Invalid input: {message}"),
            Self::Timeout => write!(f, "Operation timed out"),
            Self::InstanceStillRunning { instance_id } => {
                write!(f, "Instance {instance_id} is still running. Use force=true or cancel first.")
            }
            Self::CannotDeleteSubOrchestration { instance_id } => write!(
                f,
                "Cannot delete sub-orchestration {instance_id} directly. Delete the root orchestration instead."
            ),
            Self::InstanceNotFound { instance_id } => write!(f, "Instance {instance_id} not found"),
        }
    }
}

impl std::error::Error for ClientError {}

impl From<ProviderError> for ClientError {
    fn from(error: ProviderError) -> Self {
        Self::Provider(error)
    }
}
