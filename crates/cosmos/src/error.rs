//! The errors of a Cosmos DB store.

use azure_data_cosmos::CosmosError;
use outlast_provider::{ErrorClass, ProviderError};

/// The reason for which a store was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CosmosStoreError {
    /// A setting is missing or malformed.
    #[error("{setting}: {reason}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// The mistake, and the text to write instead.
        reason: String,
    },
    /// The account refuses the key, the token or the operation.
    #[error(
        "the account refuses {action} (status {status}): check the key, or the role assignment of the identity, and the \
         firewall of the account"
    )]
    Denied {
        /// The operation.
        action: String,
        /// The status of the answer.
        status: u16,
    },
    /// The container has another partition key than this store needs.
    #[error(
        "container '{database}/{container}' has the partition key {found:?}, and this store needs [\"/instanceId\"]: choose \
         another container, or let the store create one"
    )]
    PartitionKey {
        /// The database.
        database: String,
        /// The container.
        container: String,
        /// The partition key of the container.
        found: Vec<String>,
    },
    /// The container deletes documents after a time.
    #[error(
        "container '{database}/{container}' deletes documents after {seconds} s by default: set its time to live to \"On (no \
         default)\", which is a default of -1, or choose another container"
    )]
    TimeToLive {
        /// The database.
        database: String,
        /// The container.
        container: String,
        /// The default time to live.
        seconds: u32,
    },
    /// The container never deletes documents, whatever their time to live is.
    #[error(
        "the time to live of container '{database}/{container}' is off, so hints, heartbeats and remains of messages would be \
         kept for ever: set it to \"On (no default)\", which is a default of -1, or choose another container"
    )]
    NoTimeToLive {
        /// The database.
        database: String,
        /// The container.
        container: String,
    },
    /// The container tells only the first 101 bytes of partition keys apart.
    #[error(
        "container '{database}/{container}' has a partition key of version 1, which takes ids with the same first 101 bytes as \
         one id: choose another container, let the store create one, or create one with version 2 (large partition keys)"
    )]
    ShortPartitionKeys {
        /// The database.
        database: String,
        /// The container.
        container: String,
    },
    /// The database or the container does not exist, and the options do not create it.
    #[error(
        "there is no container '{database}/{container}' in the account: check both names, or let the store create it"
    )]
    Missing {
        /// The database.
        database: String,
        /// The container.
        container: String,
    },
    /// The account accepts writes in several regions, so that `If-Match` does not fence.
    #[error(
        "the account accepts writes in several regions ({regions}): conditions on documents do not hold across them, so two \
         runtimes could commit the same turn; switch multi-region writes off for this account"
    )]
    MultiRegionWrites {
        /// The regions.
        regions: String,
    },
    /// The system trusts no certificate authority, so that the SDK has no HTTP client.
    #[error(
        "this machine has no certificates of authorities: install them (Debian: the package ca-certificates), or name a file in \
         SSL_CERT_FILE"
    )]
    NoAuthorities,
    /// The account ignores `If-Match` on the read of a batch, so that staged turns have no fence.
    #[error(
        "the account executes a batch although the `If-Match` of a read in it does not hold, so two runtimes could commit the same \
         turn: use an account of the API for NoSQL in Azure, or a newer emulator"
    )]
    UnguardedReads,
    /// The account answers with an error.
    #[error("{action} failed: {reason}")]
    Failed {
        /// The operation.
        action: String,
        /// The error.
        reason: String,
        /// Whether a later attempt may succeed.
        is_transient: bool,
    },
}

impl CosmosStoreError {
    /// Classifies an error of the SDK.
    pub(crate) fn of(action: &str, error: &CosmosError) -> Self {
        let status = u16::from(error.status().status_code());
        match status {
            401 | 403 => Self::Denied { action: action.to_string(), status },
            _ => Self::Failed {
                action: action.to_string(),
                reason: format!("{} (status {status}) {}", advice(Some(status)), shortened(error)),
                is_transient: is_transient(status),
            },
        }
    }
}

impl From<CosmosStoreError> for ProviderError {
    fn from(error: CosmosStoreError) -> Self {
        let (class, is_transient) = match &error {
            CosmosStoreError::Denied { .. } => (ErrorClass::Denied, false),
            CosmosStoreError::Failed { is_transient, .. } => (ErrorClass::Connection, *is_transient),
            _ => (ErrorClass::Refused, false),
        };
        let text = error.to_string();
        let made = if is_transient { Self::retryable("open", text) } else { Self::permanent("open", text) };
        made.of_class(class)
    }
}

/// Whether the same request may succeed later.
pub(crate) fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 410 | 429 | 449 | 500..=599)
}

/// The text of an error of the SDK, which may hold a whole answer.
fn shortened(error: &CosmosError) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(300).collect()
}

/// The error of a read.
pub(crate) fn failed(operation: &str, error: &CosmosError) -> ProviderError {
    of_status(operation, Some(u16::from(error.status().status_code())), &shortened(error))
}

/// The meaning of a status for a user, and the advice.
pub(crate) fn advice(status: Option<u16>) -> &'static str {
    match status {
        Some(401 | 403) => {
            "check the key, or the role assignment of the identity, and the firewall of the account"
        }
        Some(404) => {
            "the container or the database does not exist: was it deleted while this store was open?"
        }
        Some(408) => "the request took too long",
        Some(413) => "the document is larger than Cosmos DB accepts",
        Some(429) => "the container is throttled: raise its throughput, or wait until the load is lower",
        Some(status) if !is_transient(status) => "Cosmos DB refuses the request",
        Some(_) => "Cosmos DB could not serve the request",
        None => "no answer came in time",
    }
}

fn class(status: Option<u16>) -> ErrorClass {
    match status {
        Some(401 | 403) => ErrorClass::Denied,
        Some(413) => ErrorClass::Refused,
        Some(429) => ErrorClass::Exhausted,
        Some(408) => ErrorClass::Timeout,
        Some(status) if !is_transient(status) => ErrorClass::Internal,
        Some(_) | None => ErrorClass::Connection,
    }
}

/// The error for the answer to a request.
pub(crate) fn of_status(operation: &str, status: Option<u16>, details: &str) -> ProviderError {
    let (class, advice, is_transient) = (class(status), advice(status), status.is_none_or(is_transient));
    let status = status.map_or_else(|| "no status".to_string(), |status| format!("status {status}"));
    let text = format!("{advice} ({status}) {details}");
    let text = text.trim_end().to_string();
    let error = match is_transient {
        true => ProviderError::retryable(operation, text),
        false => ProviderError::permanent(operation, text),
    };
    error.of_class(class)
}

/// A permanent refusal of a call.
pub(crate) fn refused(operation: &str, message: impl Into<String>) -> ProviderError {
    ProviderError::permanent(operation, message).of_class(ErrorClass::Refused)
}

/// The refusal of a token without a live lease.
pub(crate) fn lost(operation: &str, token: &str) -> ProviderError {
    refused(operation, outlast_provider_kit::invalid_token(token))
}

/// A write that failed in every repetition, because another process changes the same documents.
pub(crate) fn contended(operation: &str, instance: &str) -> ProviderError {
    ProviderError::retryable(
        operation,
        format!("documents of instance '{instance}' change too often: try again"),
    )
    .of_class(ErrorClass::Serialization)
}

/// Stored data that does not decode.
pub(crate) fn damaged(operation: &str, what: impl std::fmt::Display) -> ProviderError {
    ProviderError::permanent(operation, format!("a stored document does not decode: {what}"))
        .of_class(ErrorClass::Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The classes of the published provider, and those of the statuses that it does not list. 409 and 412 never become errors of a
    /// call: they report the state of a document, and `doubt.rs` handles them.
    #[test]
    fn a_status_is_retryable_or_permanent_and_has_a_class_and_advice() {
        let expected = [
            (Some(400), false, ErrorClass::Internal, "refuses the request"),
            (Some(401), false, ErrorClass::Denied, "check the key"),
            (Some(403), false, ErrorClass::Denied, "role assignment"),
            (Some(404), false, ErrorClass::Internal, "does not exist"),
            (Some(408), true, ErrorClass::Timeout, "took too long"),
            (Some(410), true, ErrorClass::Connection, "could not serve"),
            (Some(413), false, ErrorClass::Refused, "larger than Cosmos DB accepts"),
            (Some(429), true, ErrorClass::Exhausted, "raise its throughput"),
            (Some(449), true, ErrorClass::Connection, "could not serve"),
            (Some(500), true, ErrorClass::Connection, "could not serve"),
            (Some(503), true, ErrorClass::Connection, "could not serve"),
            (None, true, ErrorClass::Connection, "no answer came in time"),
        ];
        for (status, is_retryable, class, advice) in expected {
            let error = of_status("read", status, "details");
            let found = (error.is_retryable(), ErrorClass::of(&error));
            assert_eq!(found, (is_retryable, class), "{status:?}");
            assert!(error.message.contains(advice) && error.message.ends_with("details"), "{error}");
        }
    }
}
