//! How an activity or an orchestration fails, as recorded in history.

use serde::{Deserialize, Serialize};

/// A recorded failure.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub enum ErrorDetails {
    /// The storage or the runtime itself failed.
    Infrastructure {
        /// What was being done.
        operation: String,
        /// What went wrong.
        message: String,
        /// Whether trying again could help.
        retryable: bool,
    },
    /// The deployed code does not fit the instance.
    Configuration {
        /// Which kind of misfit.
        kind: ConfigErrorKind,
        /// The orchestration or activity concerned.
        resource: String,
        /// What was found.
        message: Option<String>,
    },
    /// The user's code failed or was cancelled.
    Application {
        /// Which code, and how.
        kind: AppErrorKind,
        /// The error text.
        message: String,
        /// Whether trying again could help.
        retryable: bool,
    },
    /// A message was delivered too often without success.
    Poison {
        /// How often it was delivered.
        attempt_count: u32,
        /// How often it may be.
        max_attempts: u32,
        /// What it was.
        message_type: PoisonMessageType,
        /// What went wrong.
        message: String,
    },
}

/// What kind of message became poison.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub enum PoisonMessageType {
    /// A turn of an orchestration.
    Orchestration {
        /// The instance.
        instance: String,
        /// Its execution.
        execution_id: u64,
    },
    /// An activity.
    Activity {
        /// The instance that scheduled it.
        instance: String,
        /// The execution that scheduled it.
        execution_id: u64,
        /// Its name.
        activity_name: String,
        /// The id of its scheduling event.
        activity_id: u64,
    },
    /// A history that cannot be decoded.
    FailedDeserialization {
        /// The instance.
        instance: String,
        /// Its execution.
        execution_id: u64,
        /// The decoder's words.
        error: String,
    },
}

/// Kinds of [`ErrorDetails::Configuration`].
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub enum ConfigErrorKind {
    /// The code did not repeat what history says it did.
    Nondeterminism,
}

/// Kinds of [`ErrorDetails::Application`].
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub enum AppErrorKind {
    /// An activity returned an error.
    ActivityFailed,
    /// An orchestration returned an error, or broke a limit.
    OrchestrationFailed,
    /// An orchestration panicked.
    Panicked,
    /// Somebody asked for cancellation.
    Cancelled {
        /// Why.
        reason: String,
    },
}

impl ErrorDetails {
    /// A stable, lower-case name of the kind of failure, fit for a metric label.
    pub fn category(&self) -> &'static str {
        match self {
            Self::Infrastructure { .. } => "infrastructure",
            Self::Configuration { .. } => "configuration",
            Self::Application { .. } => "application",
            Self::Poison { .. } => "poison",
        }
    }

    /// Whether trying again could help.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Infrastructure { retryable, .. } | Self::Application { retryable, .. } => *retryable,
            Self::Configuration { .. } | Self::Poison { .. } => false,
        }
    }

    /// The failure in one line. This is what orchestration code sees as its error string.
    pub fn display_message(&self) -> String {
        match self {
            Self::Infrastructure { operation, message, .. } => {
                format!("infrastructure:{operation}: {message}")
            }
            Self::Configuration { kind: ConfigErrorKind::Nondeterminism, resource, message } => match message
            {
                Some(message) => format!("nondeterministic: {message}"),
                None => format!("nondeterministic in {resource}"),
            },
            Self::Application { kind: AppErrorKind::Cancelled { reason }, .. } => {
                format!("canceled: {reason}")
            }
            Self::Application { kind: AppErrorKind::Panicked, message, .. } => {
                format!("orchestration panicked: {message}")
            }
            Self::Application { message, .. } => message.clone(),
            Self::Poison { attempt_count, max_attempts, message_type, .. } => {
                let text = poison_message(*attempt_count, *max_attempts, message_type);
                match self.poison_cause() {
                    Some(cause) => format!("{text}: {cause}"),
                    None => text,
                }
            }
        }
    }

    /// The `message` of a poison failure whose cause is known: the cause, which is one line, and what was delivered.
    pub fn message_with_cause(cause: &str, delivered: &str) -> String {
        format!("{CAUSE}{cause}\n{delivered}")
    }

    /// Why no delivery of a poisoned message succeeded, if the runtime knew it: which handler was missing.
    pub fn poison_cause(&self) -> Option<&str> {
        match self {
            Self::Poison { message, .. } => message.strip_prefix(CAUSE)?.lines().next(),
            _ => None,
        }
    }
}

/// Begins the message of a poison failure whose cause is known.
const CAUSE: &str = "cause: ";

fn poison_message(attempt_count: u32, max_attempts: u32, message_type: &PoisonMessageType) -> String {
    match message_type {
        PoisonMessageType::Orchestration { instance, .. } => {
            format!("poison: orchestration {instance} exceeded {attempt_count} attempts (max {max_attempts})")
        }
        PoisonMessageType::Activity { activity_name, activity_id, .. } => format!(
            "poison: activity {activity_name}#{activity_id} exceeded {attempt_count} attempts (max {max_attempts})"
        ),
        PoisonMessageType::FailedDeserialization { instance, error, .. } => format!(
            "poison: orchestration {instance} history deserialization failed after {attempt_count} attempts \
             (max {max_attempts}): {error}"
        ),
    }
}
