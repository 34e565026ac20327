//! The errors of a PostgreSQL store. Their classes follow from codes, never from texts.

use deadpool::managed::{PoolError, TimeoutType};
use outlast_provider::{ClassifiedError, ErrorClass, ProviderError};
use outlast_provider_kit::migrations::MigrationRefusal;
use std::error::Error as _;
use std::io;
use std::time::Duration;
use tokio_postgres::error::SqlState;

/// The reason for which a store was not opened, or an operation failed. No text of it holds a password or a URL with one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresError {
    /// The database URL is not understood.
    #[error("cannot use database URL '{url}': {reason}")]
    InvalidUrl {
        /// The URL without its possible secrets.
        url: String,
        /// The defect of the URL, and its correction.
        reason: String,
    },
    /// The name of the schema is refused.
    #[error("cannot use '{name}' as a schema: {reason}")]
    InvalidSchema {
        /// The beginning of the name.
        name: String,
        /// The defect of the name.
        reason: String,
    },
    /// Certificates for TLS cannot be used.
    #[error(
        "cannot set up TLS: {reason}; check sslmode and sslrootcert of the URL, and the server's certificate"
    )]
    Tls {
        /// The cause.
        reason: String,
    },
    /// The server refused the user or the password, or has no such database.
    #[error("the server refused the login ({code}): {details}; {}", after_refusal(code))]
    Login {
        /// The SQLSTATE.
        code: String,
        /// The server's message.
        details: String,
    },
    /// Client and server require different settings: the URL requires TLS and the server offers none, or the server asks for a
    /// password and the URL has none.
    #[error("cannot connect: {details}; check sslmode and password of the URL")]
    Unsuited {
        /// The driver's message.
        details: String,
    },
    /// The server is older than the store needs.
    #[error("the server is PostgreSQL {version}: the store needs {oldest} or later", oldest = crate::connect::OLDEST)]
    TooOld {
        /// The version that the server announces.
        version: String,
    },
    /// The role lacks a right.
    #[error("the role lacks a right ({code}): {details}; docs/postgres.md lists what the two roles need")]
    Denied {
        /// The SQLSTATE.
        code: String,
        /// The server's message.
        details: String,
    },
    /// The schema cannot be brought up to date, or its migration table does not match this release.
    #[error("cannot use schema '{schema}': {refusal}")]
    Schema {
        /// The schema.
        schema: String,
        /// The reason for the refusal.
        refusal: MigrationRefusal,
    },
    /// The schema holds tables of another program.
    #[error(
        "schema '{schema}' is not an Outlast store ({found}): it was left untouched; choose another schema"
    )]
    Foreign {
        /// The schema.
        schema: String,
        /// The first foreign table.
        found: String,
    },
    /// Stored rows contradict each other or do not decode.
    #[error("the store is damaged: {details}; restore it from a backup")]
    Damaged {
        /// The contradiction.
        details: String,
    },
    /// The server cannot be reached, or a connection was lost. Whether the last commit is stored is unknown.
    #[error("no connection to the server: {details}; it may be away, or the URL names another host or port")]
    Disconnected {
        /// The cause.
        details: String,
    },
    /// The server did not answer before the deadline. The connection was closed; the next call has a new one.
    #[error(
        "the server did not answer within {limit:?}: the connection was closed; if the server is only slow, raise the \
         deadline of ProviderConfig"
    )]
    Silent {
        /// The deadline.
        limit: Duration,
    },
    /// The connection was lost or given up during a call that must not be sent twice.
    #[error(
        "it is unknown whether the call for instance '{instance}' was stored: {details}; a start may be repeated with the same \
         instance id; repeat a message only if the instance lacks it, since a message that is stored twice is delivered twice"
    )]
    Unknown {
        /// The instance.
        instance: String,
        /// The cause.
        details: String,
    },
    /// The callback for passwords failed.
    #[error("cannot connect: the callback for the password failed: {details}")]
    Password {
        /// The error of the callback.
        details: String,
    },
    /// The store itself panicked while it worked on the call: a defect of this library. The store continues.
    #[error(
        "the store panicked while it worked on the call for instance '{instance}' ({details}); the call is not tried again, and \
         whether it was stored is unknown; please report the panic"
    )]
    Panicked {
        /// The instance.
        instance: String,
        /// The message of the panic.
        details: String,
    },
    /// Two transactions conflicted, or a lock or a statement took too long. Nothing was stored.
    #[error("the transaction was given up ({code}): {details}")]
    Conflict {
        /// The SQLSTATE.
        code: String,
        /// The server's message.
        details: String,
    },
    /// The server has no connections, memory or disk space left.
    #[error("the server lacks connections, memory or disk space ({code}): {details}")]
    Busy {
        /// The SQLSTATE.
        code: String,
        /// The server's message.
        details: String,
    },
    /// The server takes no writes: it is a standby, or becomes one.
    #[error(
        "the server is read-only: {details}; if it is a standby, name the primary or all servers in the URL"
    )]
    ReadOnly {
        /// The server's message.
        details: String,
    },
    /// The store is being closed.
    #[error("the store is closed")]
    Closed,
    /// The call itself is wrong, or its lease is lost.
    #[error("{0}")]
    Refused(String),
    /// Any other error that the server reports.
    #[error("the server reports ({code}): {details}")]
    Other {
        /// The SQLSTATE, if there is one.
        code: String,
        /// The server's report.
        details: String,
    },
}

impl PostgresError {
    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Disconnected { .. }
                | Self::Conflict { .. }
                | Self::Busy { .. }
                | Self::ReadOnly { .. }
                | Self::Silent { .. }
                | Self::Unknown { .. }
                | Self::Password { .. }
                | Self::Closed
        )
    }

    /// Whether the server could not be reached or refuses all requests. An immediate second attempt would fail too, and so would an
    /// attempt with each request alone.
    pub(crate) fn is_away(&self) -> bool {
        matches!(
            self,
            Self::Disconnected { .. }
                | Self::Busy { .. }
                | Self::ReadOnly { .. }
                | Self::Silent { .. }
                | Self::Password { .. }
                | Self::Closed
        )
    }

    /// The same error if it occurred while a connection was opened.
    pub(crate) fn of_connecting(self) -> Self {
        match self {
            Self::Other { code, details } if code == DRIVER => Self::Unsuited { details },
            error => error,
        }
    }

    /// The class that metrics and logs show.
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::Conflict { code, .. } => class_of_conflict(code),
            Self::Silent { .. } => ErrorClass::Timeout,
            Self::Disconnected { .. }
            | Self::Unknown { .. }
            | Self::Unsuited { .. }
            | Self::TooOld { .. }
            | Self::Tls { .. } => ErrorClass::Connection,
            Self::Busy { .. } => ErrorClass::Exhausted,
            Self::ReadOnly { .. } => ErrorClass::ReadOnly,
            Self::Login { .. } | Self::Password { .. } | Self::Denied { .. } => ErrorClass::Denied,
            Self::Damaged { .. } | Self::Foreign { .. } => ErrorClass::Damaged,
            Self::Closed => ErrorClass::Closed,
            Self::Refused(_) | Self::InvalidUrl { .. } | Self::InvalidSchema { .. } => ErrorClass::Refused,
            Self::Schema { .. } | Self::Panicked { .. } | Self::Other { .. } => ErrorClass::Internal,
        }
    }

    /// The same error as the contract expresses it, for a call that returns it now.
    pub(crate) fn during(&self, operation: &str) -> ProviderError {
        self.classified(operation).into()
    }

    /// The same error as the contract expresses it, with its class, for a caller that waits elsewhere.
    pub(crate) fn classified(&self, operation: &str) -> ClassifiedError {
        let error = match self.is_retryable() {
            true => ProviderError::retryable(operation, self.to_string()),
            false => ProviderError::permanent(operation, self.to_string()),
        };
        ClassifiedError { class: self.class(), error }
    }

    /// The class of an error that the server reports, from its SQLSTATE.
    fn reported(state: &SqlState, details: String) -> Self {
        let code = state.code().to_string();
        match (state, &code[..2]) {
            (&SqlState::T_R_DEADLOCK_DETECTED | &SqlState::T_R_SERIALIZATION_FAILURE, _)
            | (&SqlState::LOCK_NOT_AVAILABLE | &SqlState::QUERY_CANCELED, _)
            // A migration has made the plan of a statement invalid: the next call makes a new plan.
            | (&SqlState::FEATURE_NOT_SUPPORTED, _)
            | (_, "40") => Self::Conflict { code, details },
            (&SqlState::READ_ONLY_SQL_TRANSACTION, _) => Self::ReadOnly { details },
            // The server has ended a session that waited for too long in the middle of a transaction.
            (&SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT, _) => {
                Self::Disconnected { details: format!("{details} ({code})") }
            }
            (&SqlState::INVALID_CATALOG_NAME, _) | (_, "28") => Self::Login { code, details },
            (&SqlState::INSUFFICIENT_PRIVILEGE, _) => Self::Denied { code, details },
            (_, "08" | "57") => Self::Disconnected { details: format!("{details} ({code})") },
            (_, "53" | "58") => Self::Busy { code, details },
            // The store's functions raise this code when rows contradict each other.
            (_, "OL") => Self::Damaged { details },
            _ => Self::Other { code, details },
        }
    }
}

/// The class of a transaction that the server gave up, from its SQLSTATE.
fn class_of_conflict(code: &str) -> ErrorClass {
    match SqlState::from_code(code) {
        SqlState::T_R_DEADLOCK_DETECTED => ErrorClass::Deadlock,
        SqlState::LOCK_NOT_AVAILABLE => ErrorClass::LockTimeout,
        SqlState::QUERY_CANCELED => ErrorClass::Timeout,
        SqlState::FEATURE_NOT_SUPPORTED => ErrorClass::Internal,
        _ => ErrorClass::Serialization,
    }
}

/// The advice after a refused login.
fn after_refusal(code: &str) -> &'static str {
    match code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION.code() {
        // The rules of the server check the user, the address and the encryption, not the password.
        true => {
            "its pg_hba.conf refuses such connections: if it asks for TLS, set sslmode=require in the URL or stricter"
        }
        false => "check user, password and database of the URL",
    }
}

/// The code of errors that the driver reports, not the server.
const DRIVER: &str = "driver";

impl From<tokio_postgres::Error> for PostgresError {
    fn from(error: tokio_postgres::Error) -> Self {
        if let Some(reported) = error.as_db_error() {
            return Self::reported(reported.code(), reported.message().to_string());
        }
        // The cause is more precise than the error: "connection refused" instead of "error connecting to server".
        let details = error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
        match error.source().map(|cause| cause.downcast_ref::<io::Error>()) {
            Some(Some(cause)) if is_about_tls(cause) => Self::Tls { reason: details },
            // The cause is neither the network nor the server: a value that cannot be sent, or a server without TLS.
            Some(None) if !error.is_closed() => Self::Other { code: DRIVER.to_string(), details },
            _ => Self::Disconnected { details },
        }
    }
}

fn is_about_tls(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|cause| cause.is::<rustls::Error>())
}

impl From<PoolError<PostgresError>> for PostgresError {
    fn from(error: PoolError<PostgresError>) -> Self {
        match error {
            PoolError::Backend(error) => error,
            PoolError::Timeout(TimeoutType::Wait) => Self::Busy {
                code: "pool".to_string(),
                details: "no connection of the pool became free: raise the size of the pool".to_string(),
            },
            PoolError::Timeout(_) => {
                Self::Disconnected { details: "the server did not answer in time".to_string() }
            }
            PoolError::Closed => Self::Closed,
            other => Self::Disconnected { details: other.to_string() },
        }
    }
}

impl From<PostgresError> for ProviderError {
    fn from(error: PostgresError) -> Self {
        error.during("postgres")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_of_metrics_follows_the_code_and_not_the_text() {
        let rows = [
            ("40P01", "deadlock", "deadlock"),
            ("40001", "serialization", "serialization_error"),
            ("40002", "serialization", "serialization_error"),
            ("55P03", "timeout", "lock_timeout"),
            ("57014", "timeout", "transaction_failed"),
            ("57P01", "connection", "transaction_failed"),
            ("08006", "connection", "transaction_failed"),
            ("53300", "exhausted", "transaction_failed"),
            ("25006", "read_only", "transaction_failed"),
            ("42501", "denied", "transaction_failed"),
            ("28P01", "denied", "transaction_failed"),
            ("OL001", "damaged", "transaction_failed"),
            ("XX000", "internal", "transaction_failed"),
        ];
        for (code, label, infrastructure) in rows {
            let details = "deadlock timeout connection".to_string();
            let error = PostgresError::reported(&SqlState::from_code(code), details).during("test");
            let class = ErrorClass::of(&error);
            assert_eq!((class.label(), class.infrastructure_label()), (label, infrastructure), "{code}");
            assert!(class.is_infrastructure(&error), "{code}");
        }
        let refused = PostgresError::Refused("deadlock".to_string()).during("test");
        assert_eq!(ErrorClass::of(&refused), ErrorClass::Refused);
    }

    #[test]
    fn classes_follow_the_code() {
        let retryable = [
            "40P01", "40001", "55P03", "57014", "57P01", "57P02", "57P03", "08006", "08000", "53300",
            "53100", "53200", "58030", "25006", "25P03", "0A000",
        ];
        let permanent =
            ["23505", "23503", "42501", "42P01", "22003", "28P01", "28000", "3D000", "OL001", "XX000"];
        let class = |code: &str| PostgresError::reported(&SqlState::from_code(code), "x".to_string());
        for code in retryable {
            assert!(class(code).is_retryable(), "{code}");
        }
        for code in permanent {
            assert!(!class(code).is_retryable(), "{code}");
        }
    }
}
