//! The errors of typed client calls.

use outlast_runtime::{AlreadyExists, ClientError};
use std::fmt;

/// A start, a message or a read that did not reach its instance.
#[derive(Clone)]
#[non_exhaustive]
pub enum InstanceError {
    /// An instance with the id of the start existed already.
    AlreadyExists(AlreadyExists),
    /// No instance with this id was started.
    NotFound {
        /// The instance.
        instance: String,
    },
    /// The instance has ended, so it reads no message.
    Ended {
        /// The instance.
        instance: String,
        /// `Completed` or `Failed`.
        status: &'static str,
    },
    /// No answer came in time.
    TimedOut {
        /// The instance.
        instance: String,
        /// The wait, and the state of the instance, in a sentence for people.
        known: String,
    },
    /// A value does not encode or decode.
    Value {
        /// The instance.
        instance: String,
        /// The value, and the error of its encoding.
        problem: String,
    },
    /// The call of the client failed.
    Client(ClientError),
}

/// Prints the sentence of `Display`, because `unwrap` and a `main` that returns an error print `Debug`.
impl fmt::Debug for InstanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variant = match self {
            Self::AlreadyExists(_) => "AlreadyExists",
            Self::NotFound { .. } => "NotFound",
            Self::Ended { .. } => "Ended",
            Self::TimedOut { .. } => "TimedOut",
            Self::Value { .. } => "Value",
            Self::Client(_) => "Client",
        };
        f.debug_tuple(variant).field(&self.to_string()).finish()
    }
}

impl fmt::Display for InstanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyExists(error) => error.fmt(f),
            Self::NotFound { instance } => {
                write!(
                    f,
                    "instance '{instance}' does not exist: was it started under this id, in this store?"
                )
            }
            Self::Ended { instance, status } => {
                write!(f, "instance '{instance}' has ended ({status}): it reads no more messages")
            }
            Self::TimedOut { known, .. } => f.write_str(known),
            Self::Value { instance, problem } => write!(f, "instance '{instance}': {problem}"),
            Self::Client(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for InstanceError {}

impl From<ClientError> for InstanceError {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl From<AlreadyExists> for InstanceError {
    fn from(error: AlreadyExists) -> Self {
        Self::AlreadyExists(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_debug_text_of_an_error_contains_its_sentence() {
        let instance = || "o-1".to_string();
        let not_found = InstanceError::NotFound { instance: instance() };
        assert_eq!(
            format!("{not_found:?}"),
            "NotFound(\"instance 'o-1' does not exist: was it started under this id, in this store?\")"
        );
        for error in [
            not_found,
            InstanceError::Ended { instance: instance(), status: "Failed" },
            InstanceError::TimedOut { instance: instance(), known: "no answer".into() },
            InstanceError::Value { instance: instance(), problem: "not JSON".into() },
            InstanceError::Client(ClientError::InstanceStillRunning { instance_id: instance() }),
        ] {
            assert!(format!("{error:?}").contains(&error.to_string()), "{error:?}");
        }
        let client = ClientError::InstanceNotFound { instance_id: instance() };
        assert_eq!(format!("{client:?}"), "InstanceNotFound(\"Instance o-1 not found\")");
    }
}
