//! Classes of failed store operations, for metrics and logs.

use crate::ProviderError;
use std::cell::Cell;

/// The class of a failed store operation, for metrics and logs only. No code makes a decision by it.
///
/// [`ProviderError`] has no place for a class, since programs build it field by field. A store that knows the class of an
/// error notes it with [`ErrorClass::note`] or [`ProviderError::of_class`] in the same poll of the operation in which it
/// returns the error, and the code that measures the operation reads it with [`ErrorClass::of`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// Two transactions waited for each other, and the database rolled this one back.
    Deadlock,
    /// The database could not put concurrent transactions into an order.
    Serialization,
    /// A lock was not released in time.
    LockTimeout,
    /// The operation exceeded its time limit.
    Timeout,
    /// The store cannot be reached, or a connection was lost.
    Connection,
    /// A file could not be read or written.
    Io,
    /// No disk space, memory or connection is left.
    Exhausted,
    /// The store is read-only.
    ReadOnly,
    /// The store refuses the user or the permission.
    Denied,
    /// Stored data contradicts itself or does not decode.
    Damaged,
    /// The database reports an error that fits no other class.
    Internal,
    /// The store is being closed.
    Closed,
    /// The call is wrong, or its lease is gone. The store works.
    Refused,
    /// The store did not note a class.
    Other,
}

thread_local! {
    static NOTED: Cell<Option<ErrorClass>> = const { Cell::new(None) };
}

impl ErrorClass {
    /// Notes that the store operation which this thread polls returns an error of this class now.
    pub fn note(self) {
        NOTED.set(Some(self));
    }

    /// Clears the noted class. Call it before each poll of an operation that is measured.
    pub fn forget() {
        NOTED.set(None);
    }

    /// The class of an error that a poll on this thread has just returned: the noted one, or, from a store that notes
    /// none, the one that the first of the words `deadlock`, `timeout` and `connection` in its message names.
    pub fn of(error: &ProviderError) -> Self {
        if let Some(noted) = NOTED.get() {
            return noted;
        }
        let named =
            [("deadlock", Self::Deadlock), ("timeout", Self::Timeout), ("connection", Self::Connection)];
        let named = named.into_iter().find(|(word, _)| error.message.contains(word));
        named.map_or(Self::Other, |(_, class)| class)
    }

    /// The class as the label `error_type` of `duroxide_provider_errors_total` has it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Deadlock => "deadlock",
            Self::Serialization => "serialization",
            Self::LockTimeout | Self::Timeout => "timeout",
            Self::Connection => "connection",
            Self::Io => "io",
            Self::Exhausted => "exhausted",
            Self::ReadOnly => "read_only",
            Self::Denied => "denied",
            Self::Damaged => "damaged",
            Self::Internal => "internal",
            Self::Closed => "closed",
            Self::Refused => "refused",
            Self::Other => "other",
        }
    }

    /// The class as the label `error_type` of `provider.infrastructure_errors` has it.
    pub fn infrastructure_label(self) -> &'static str {
        match self {
            Self::Deadlock => "deadlock",
            Self::Serialization => "serialization_error",
            Self::LockTimeout => "lock_timeout",
            Self::Other => "unknown",
            _ => "transaction_failed",
        }
    }

    /// Whether the store is at fault, and not the call. A permanent error without a class counts as a fault of the call, because
    /// most of these errors are lost leases.
    pub fn is_infrastructure(self, error: &ProviderError) -> bool {
        match self {
            Self::Refused => false,
            Self::Other => error.retryable,
            _ => true,
        }
    }
}

impl ProviderError {
    /// The same error; notes its class for the operation that returns it now.
    #[must_use]
    pub fn of_class(self, class: ErrorClass) -> Self {
        class.note();
        self
    }
}

/// An error with its class, for a store that creates its errors on another thread than the caller's. The conversion into a
/// [`ProviderError`] notes the class, so convert on the thread that polls the operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassifiedError {
    /// The class.
    pub class: ErrorClass,
    /// The error.
    pub error: ProviderError,
}

impl From<ClassifiedError> for ProviderError {
    fn from(classified: ClassifiedError) -> Self {
        classified.error.of_class(classified.class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noted_class_counts_over_words_until_it_is_removed() {
        let error = ProviderError::retryable("read", "a timeout in a deadlock");
        ErrorClass::forget();
        assert_eq!(ErrorClass::of(&error), ErrorClass::Deadlock, "the first word of the contract");
        let error = error.of_class(ErrorClass::Serialization);
        assert_eq!(ErrorClass::of(&error), ErrorClass::Serialization);
        ErrorClass::forget();
        assert_eq!(ErrorClass::of(&error), ErrorClass::Deadlock);
    }

    #[test]
    fn class_of_a_classified_error_is_noted_when_it_is_converted() {
        ErrorClass::forget();
        let error = ProviderError::permanent("ack", "gone");
        let classified = ClassifiedError { class: ErrorClass::Refused, error };
        assert_eq!(ErrorClass::of(&classified.error), ErrorClass::Other, "not where it is made");
        let error = ProviderError::from(classified);
        assert_eq!(ErrorClass::of(&error), ErrorClass::Refused);
        assert!(!ErrorClass::of(&error).is_infrastructure(&error));
    }

    #[test]
    fn unclassified_errors_are_about_the_store_if_they_may_go_away() {
        let away = ProviderError::retryable("ack", "x");
        let gone = ProviderError::permanent("ack", "x");
        assert_eq!([&away, &gone].map(|error| ErrorClass::Other.is_infrastructure(error)), [true, false]);
        assert!(ErrorClass::Damaged.is_infrastructure(&gone));
    }
}
