//! Errors of store operations.

use outlast_model::ErrorDetails;
use std::fmt;

/// A failed store operation.
///
/// *Retryable* means that the same call may succeed later: the store was busy, a connection broke, or the outcome
/// of a commit is unknown. *Permanent* means that it cannot: the lease is gone, the input is wrong, or stored data
/// does not decode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderError {
    /// The operation that failed.
    pub operation: String,
    /// The cause, and the instance or token that it concerns.
    pub message: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
}

impl ProviderError {
    /// An error of a call that may succeed later.
    pub fn retryable(operation: impl Into<String>, message: impl Into<String>) -> Self {
        Self { operation: operation.into(), message: message.into(), retryable: true }
    }

    /// An error of a call that cannot succeed later.
    pub fn permanent(operation: impl Into<String>, message: impl Into<String>) -> Self {
        Self { operation: operation.into(), message: message.into(), retryable: false }
    }

    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// The error in the form that histories record.
    pub fn to_infrastructure_error(&self) -> ErrorDetails {
        ErrorDetails::Infrastructure {
            operation: self.operation.clone(),
            message: self.message.clone(),
            retryable: self.retryable,
        }
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.message)
    }
}

impl std::error::Error for ProviderError {}

impl From<String> for ProviderError {
    fn from(message: String) -> Self {
        Self::retryable("unknown", message)
    }
}

impl From<&str> for ProviderError {
    fn from(message: &str) -> Self {
        Self::retryable("unknown", message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_class_and_conversions_follow_the_contract() {
        let error = ProviderError::permanent("ack", "gone");
        assert_eq!((error.to_string().as_str(), error.is_retryable()), ("ack: gone", false));
        assert_eq!(ProviderError::from("x"), ProviderError::retryable("unknown", "x"));
        assert_eq!(ProviderError::from("x".to_string()), ProviderError::retryable("unknown", "x"));
        assert_eq!(
            error.to_infrastructure_error(),
            ErrorDetails::Infrastructure {
                operation: "ack".into(),
                message: "gone".into(),
                retryable: false
            }
        );
    }
}
