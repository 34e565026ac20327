//! Failures of activities and orchestrations, as recorded in history.

use serde::{Deserialize, Serialize};

/// A recorded failure.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub enum ErrorDetails {
    /// The storage or the runtime itself failed.
    Infrastructure {
        /// The operation that failed.
        operation: String,
        /// The error text.
        message: String,
        /// Whether trying again could help.
        retryable: bool,
    },
    /// The deployed code does not match the instance.
    Configuration {
        /// The kind of mismatch.
        kind: ConfigErrorKind,
        /// The orchestration or activity concerned.
        resource: String,
        /// The error text.
        message: Option<String>,
    },
    /// The user's code failed or was cancelled.
    Application {
        /// The code that failed, and the way in which it failed.
        kind: AppErrorKind,
        /// The error text.
        message: String,
        /// Whether trying again could help.
        retryable: bool,
    },
    /// A message was delivered too often without success.
    Poison {
        /// The number of deliveries.
        attempt_count: u32,
        /// The limit of deliveries.
        max_attempts: u32,
        /// The kind of the message.
        message_type: PoisonMessageType,
        /// The error text.
        message: String,
    },
}

/// The kind of a message that was delivered too often.
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
        /// The error text of the decoder.
        error: String,
    },
}

/// Kinds of [`ErrorDetails::Configuration`].
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub enum ConfigErrorKind {
    /// The code made other decisions than its history holds.
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
    /// The instance was cancelled.
    Cancelled {
        /// The reason.
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

    /// The failure in one line. Orchestration code gets this text as its error.
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

    /// The failure of an orchestration that the engine stopped: a limit was broken, or a call cannot work. The text ends with a mark, so that
    /// tools can tell it from an error that the code of the orchestration returned.
    pub fn refusal(text: &str, instance: &str) -> Self {
        let message = format!("{text}{REFUSED}{instance}')");
        Self::Application { kind: AppErrorKind::OrchestrationFailed, message, retryable: false }
    }

    /// Whether the engine stopped the orchestration: [`ErrorDetails::refusal`].
    pub fn is_refusal(&self) -> bool {
        let Self::Application { kind: AppErrorKind::OrchestrationFailed, message, .. } = self else {
            return false;
        };
        message.ends_with("')") && message.contains(REFUSED)
    }

    /// The `message` of a poison failure with a known cause: the cause, which is one line, and the delivered message.
    pub fn message_with_cause(cause: &str, delivered: &str) -> String {
        format!("{CAUSE}{cause}\n{delivered}")
    }

    /// The cause of a poison failure, if the runtime knew it: the handler that is not registered.
    pub fn poison_cause(&self) -> Option<&str> {
        match self {
            Self::Poison { message, .. } => message.strip_prefix(CAUSE)?.lines().next(),
            _ => None,
        }
    }
}

/// The last text of the message of a refusal, before the instance.
const REFUSED: &str = " (refused in instance '";

/// The first text of the message of a poison failure with a known cause.
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
