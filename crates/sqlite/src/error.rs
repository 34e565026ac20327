//! The errors of a SQLite store.

use outlast_provider::{ClassifiedError, ErrorClass, ProviderError};
use outlast_provider_kit::migrations::MigrationRefusal;
use rusqlite::ErrorCode;
use std::path::{Path, PathBuf};

/// The reason for which a store was not opened, or an operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqliteError {
    /// The database URL is not understood.
    #[error("cannot use database URL '{url}': {reason}")]
    InvalidUrl {
        /// The URL, without parts that may be secret.
        url: String,
        /// The mistake, and the text to write instead.
        reason: String,
    },
    /// The file could not be created or opened.
    #[error("cannot open '{}': {reason}", path.display())]
    CannotOpen {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        reason: String,
    },
    /// The file is not a store of Outlast.
    #[error("'{}' is not an Outlast store ({found}): it was left untouched; choose another file", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The difference from a store.
        found: String,
    },
    /// The schema cannot be brought up to date.
    #[error("cannot use the store '{}': {refusal}", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// The reason.
        refusal: MigrationRefusal,
    },
    /// A setting did not take effect.
    #[error("'{}': PRAGMA {pragma} is {found}, but must be {wanted}", path.display())]
    Pragma {
        /// The file.
        path: PathBuf,
        /// The setting.
        pragma: &'static str,
        /// The value that was set.
        wanted: String,
        /// The value that the database reports.
        found: String,
    },
    /// The file is damaged.
    #[error("the store is damaged: {details}; restore it from a backup")]
    Damaged {
        /// The damage.
        details: String,
    },
    /// The disk is full. Nothing of the operation was stored; it can be retried when the disk has space.
    #[error("no space left on the device of the store")]
    DiskFull,
    /// The store was opened read-only, or its file or folder may not be written to.
    #[error("the store is read-only: {details}")]
    ReadOnly {
        /// The error of the database.
        details: String,
    },
    /// Another process holds the lock of the store for too long.
    #[error("the store is busy: {details}")]
    Busy {
        /// The error of the database.
        details: String,
    },
    /// Reading or writing the file failed. The commit is in doubt until it is retried.
    #[error("reading or writing the store failed: {details}")]
    Io {
        /// The error of the database.
        details: String,
    },
    /// The store panicked during this operation of a call. Nothing of that call is stored; other calls are not affected.
    #[error(
        "the store panicked during {operation}{}: nothing of this call is stored; the same call would panic again, \
         please report the panic message on the standard error of the process", of_instance(.instance)
    )]
    Panicked {
        /// The operation.
        operation: &'static str,
        /// The instance of the call, if it is known.
        instance: Option<String>,
    },
    /// The store is being closed.
    #[error("the store is closed")]
    Closed,
    /// The call is invalid, or its lease is lost.
    #[error("{0}")]
    Refused(String),
    /// Any other error of SQLite.
    #[error("{0}")]
    Other(String),
}

fn of_instance(instance: &Option<String>) -> String {
    instance.as_ref().map_or_else(String::new, |instance| format!(" for instance '{instance}'"))
}

impl SqliteError {
    /// The error of a call whose transaction panicked outside of any call.
    pub(crate) fn panicked_outside() -> Self {
        Self::Io { details: "the store panicked in the transaction of this call".to_string() }
    }

    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::DiskFull | Self::Busy { .. } | Self::Io { .. } | Self::Closed)
    }

    /// The class that metrics and logs show.
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::Busy { .. } => ErrorClass::LockTimeout,
            Self::DiskFull => ErrorClass::Exhausted,
            Self::Io { .. } | Self::CannotOpen { .. } => ErrorClass::Io,
            Self::ReadOnly { .. } => ErrorClass::ReadOnly,
            Self::Damaged { .. } | Self::Foreign { .. } => ErrorClass::Damaged,
            Self::Closed => ErrorClass::Closed,
            Self::Refused(_) | Self::InvalidUrl { .. } => ErrorClass::Refused,
            Self::Schema { .. } | Self::Pragma { .. } | Self::Panicked { .. } | Self::Other(_) => {
                ErrorClass::Internal
            }
        }
    }

    /// This error as an error of the contract.
    pub(crate) fn during(&self, operation: &str) -> ProviderError {
        self.classified(operation).into()
    }

    /// This error as an error of the contract, with its class, for a caller on another task.
    pub(crate) fn classified(&self, operation: &str) -> ClassifiedError {
        let error = match self.is_retryable() {
            true => ProviderError::retryable(operation, self.to_string()),
            false => ProviderError::permanent(operation, self.to_string()),
        };
        ClassifiedError { class: self.class(), error }
    }

    /// This error with the path of the file, unless it has one.
    pub(crate) fn about(self, path: &Path) -> Self {
        let named = |details: String| format!("'{}': {details}", path.display());
        match self {
            Self::Damaged { details } => Self::Damaged { details: named(details) },
            Self::ReadOnly { details } => Self::ReadOnly { details: named(details) },
            Self::Busy { details } => Self::Busy { details: named(details) },
            Self::Io { details } => Self::Io { details: named(details) },
            Self::Other(details) => Self::Other(named(details)),
            other => other,
        }
    }

    /// This error, if it happened while an open store was opened again. It is retryable, because a file that cannot be reached may
    /// become reachable.
    pub(crate) fn while_reopening(self) -> Self {
        match self {
            Self::CannotOpen { .. } | Self::Pragma { .. } | Self::Other(_) => {
                Self::Io { details: self.to_string() }
            }
            other => other,
        }
    }

    /// Whether the connection must be closed: after a failed write or sync its cache may differ from the file.
    pub(crate) fn breaks_connection(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Damaged { .. })
    }
}

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> Self {
        let details = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::DiskFull,
            Some(ErrorCode::SystemIoFailure) if is_no_space(&error) => Self::DiskFull,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly { details },
            Some(
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed,
            ) => Self::Busy {
                details: format!("{details}: another process holds its lock; try again, or end that process"),
            },
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::OutOfMemory) => {
                Self::Io { details }
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged { details },
            _ => Self::Other(details),
        }
    }
}

/// SQLite has a separate code for a full disk when it extends the index of the write-ahead log.
fn is_no_space(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE)
}

impl From<SqliteError> for ProviderError {
    fn from(error: SqliteError) -> Self {
        error.during("sqlite")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    #[test]
    fn class_depends_on_the_code_and_not_on_the_text() {
        let rows = [
            (ffi::SQLITE_BUSY, "timeout", "lock_timeout"),
            (ffi::SQLITE_LOCKED, "timeout", "lock_timeout"),
            (ffi::SQLITE_FULL, "exhausted", "transaction_failed"),
            (ffi::SQLITE_IOERR, "io", "transaction_failed"),
            (ffi::SQLITE_CANTOPEN, "io", "transaction_failed"),
            (ffi::SQLITE_READONLY, "read_only", "transaction_failed"),
            (ffi::SQLITE_CORRUPT, "damaged", "transaction_failed"),
            (ffi::SQLITE_CONSTRAINT, "internal", "transaction_failed"),
        ];
        for (code, label, infrastructure) in rows {
            let text = Some("deadlock timeout connection".to_string());
            let reported = rusqlite::Error::SqliteFailure(ffi::Error::new(code), text);
            let error = SqliteError::from(reported).during("test");
            let class = ErrorClass::of(&error);
            assert_eq!((class.label(), class.infrastructure_label()), (label, infrastructure), "{code}");
            assert!(class.is_infrastructure(&error), "{code}");
        }
        let refused = SqliteError::Refused("deadlock".to_string()).during("test");
        assert_eq!(ErrorClass::of(&refused), ErrorClass::Refused);
    }
}
