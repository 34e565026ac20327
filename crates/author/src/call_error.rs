//! The error of a durable call, and of an instance that a client waits for.

use crate::failure::{self, Failure};
use outlast_model::codec::Codec;
use outlast_model::{AppErrorKind, ErrorDetails};
use std::any::Any;
use std::fmt;

/// The way in which a call of an activity or a child ended without a value, or an instance that a client waits for.
///
/// Only [`CallError::Failed`] is an error that the called code returned. The other variants come from Outlast, and hold a sentence for
/// people: code should not compare it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError<E> {
    /// The called code returned this error. With retries it is the error of the last attempt.
    Failed(E),
    /// The time for the call, the activity or the wait is over.
    TimedOut(String),
    /// The call was cancelled, with this reason.
    Cancelled(String),
    /// The called code panicked.
    Panicked(String),
    /// Any other failure: a value that does not decode, poison, code that does not match its history, an error of the store, or an
    /// error of called code that is not an `E`.
    Other(String),
}

/// The code that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callee {
    Activity,
    Orchestration,
    /// It stores its errors as text (`errors = text`).
    OfText,
}

impl<E> CallError<E> {
    /// The error of the called code, if it returned one.
    pub fn into_failed(self) -> Result<E, Self> {
        match self {
            Self::Failed(error) => Ok(error),
            other => Err(other),
        }
    }

    /// The error that the called code returned, if it returned one.
    pub fn failed(&self) -> Option<&E> {
        match self {
            Self::Failed(error) => Some(error),
            _ => None,
        }
    }
}

impl<E: Failure> CallError<E> {
    /// The error for a recorded failure.
    pub(crate) fn of(details: ErrorDetails, callee: Callee, codec: Codec) -> Self {
        match details {
            ErrorDetails::Application { kind: AppErrorKind::Cancelled { reason }, .. } => {
                Self::Cancelled(reason)
            }
            ErrorDetails::Application { kind: AppErrorKind::Panicked, message, .. } => {
                Self::Panicked(message)
            }
            ErrorDetails::Application { .. } if details.is_refusal() => {
                Self::Other(details.display_message())
            }
            ErrorDetails::Application { message, .. } => failure::read(message, callee, codec),
            other => Self::Other(other.display_message()),
        }
    }

    /// Whether another attempt can help.
    pub(crate) fn is_permanent(&self) -> bool {
        self.failed().is_some_and(Failure::is_permanent)
    }
}

impl<E: fmt::Display> fmt::Display for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::TimedOut(text) => write!(f, "timed out: {text}"),
            Self::Cancelled(reason) => write!(f, "cancelled: {reason}"),
            Self::Panicked(text) => write!(f, "panicked: {text}"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl<E: fmt::Display + fmt::Debug> std::error::Error for CallError<E> {}

/// The error of the called code if it has the type `T`; otherwise the sentence for people. `#[failure(call)]` uses it.
///
/// # Errors
///
/// The sentence.
pub fn failed_or_text<E: fmt::Display + 'static, T: 'static>(error: CallError<E>) -> Result<T, String> {
    let error = match error.into_failed() {
        Ok(failed) => {
            let mut failed = Some(failed);
            let same = (&mut failed as &mut dyn Any).downcast_mut::<Option<T>>().and_then(Option::take);
            match (same, failed) {
                (Some(same), _) => return Ok(same),
                (None, Some(other)) => CallError::Failed(other),
                (None, None) => return Err(String::new()),
            }
        }
        Err(other) => other,
    };
    Err(error.to_string())
}

/// The bound of the conversion that `derive(Failure)` writes for a type without `#[failure(call)]`, where `C` is a [`CallError`]. No type
/// implements it: it carries the message that the compiler prints for a `?` that needs the attribute. For `?` the compiler shows
/// the label only.
#[diagnostic::on_unimplemented(
    message = "the error of a call does not convert into `{Self}`",
    label = "a call can also time out, be cancelled or panic: put `#[failure(call)]` on a variant of `{Self}` with one `String`",
    note = "for example: `#[error(\"{{0}}\")] #[failure(call)] Broken(String)`"
)]
pub trait HasCallVariant<C>: Sized {
    /// The variant for the error of a call.
    fn from_call(error: C) -> Self;
}

/// For functions whose error is text: `?` keeps the sentence.
impl<E: fmt::Display> From<CallError<E>> for String {
    fn from(error: CallError<E>) -> Self {
        error.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_same_type_stays_as_it_is() {
        assert_eq!(failed_or_text::<u8, u8>(CallError::Failed(7)), Ok(7));
        assert_eq!(failed_or_text::<u8, u16>(CallError::Failed(7)), Err("7".to_string()));
        let late = CallError::<u8>::TimedOut("late".into());
        assert_eq!(failed_or_text::<u8, u8>(late), Err("timed out: late".to_string()));
    }
}
