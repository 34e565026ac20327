//! An error that every other error converts into and that a history can hold.

use crate::call_error::CallError;
use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use std::any::type_name;
use std::fmt;
use std::time::Duration;

/// The result of functions that do not need an error type of their own.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error for functions that do not need an error type of their own: `?` converts every `std::error::Error` into it. It keeps the
/// texts of the causes, and it can be stored.
///
/// `{}` shows the message, `{:#}` the message with its causes. `{:?}`, which `unwrap` and a `main` that returns an error print, shows
/// the message, the marks for retries, and each cause in a line; `{:#?}` shows all fields.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    chain: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    kind: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    permanent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

impl Error {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            chain: Vec::new(),
            kind: String::new(),
            permanent: false,
            retry_after_ms: None,
        }
    }

    /// The same error, marked so that nothing retries.
    #[must_use]
    pub fn permanent(self) -> Self {
        Self { permanent: true, ..self }
    }

    /// The same error with the wait before the next attempt.
    #[must_use]
    pub fn with_retry_after(self, wait: Duration) -> Self {
        Self { retry_after_ms: Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)), ..self }
    }

    /// The same error under a new message; the old message becomes the first cause. Kind and permanence stay.
    #[must_use]
    pub fn context(mut self, message: impl Into<String>) -> Self {
        self.chain.insert(0, std::mem::replace(&mut self.message, message.into()));
        self
    }

    /// The name of the Rust type that this error was made from, for logs; empty for [`Error::new`].
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The messages of the causes, outermost first.
    pub fn chain(&self) -> &[String] {
        &self.chain
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            let mut fields = f.debug_struct("Error");
            fields.field("message", &self.message).field("chain", &self.chain).field("kind", &self.kind);
            return fields
                .field("permanent", &self.permanent)
                .field("retry_after_ms", &self.retry_after_ms)
                .finish();
        }
        f.write_str(&self.message)?;
        if self.permanent {
            f.write_str(" (permanent)")?;
        }
        if let Some(wait) = self.retry_after() {
            write!(f, " (retry after {wait:?})")?;
        }
        if !self.chain.is_empty() {
            f.write_str("\n\nCaused by:")?;
        }
        self.chain.iter().try_for_each(|cause| write!(f, "\n    {cause}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match f.alternate() {
            true => self.chain.iter().try_for_each(|cause| write!(f, ": {cause}")),
            false => Ok(()),
        }
    }
}

impl Failure for Error {
    fn is_permanent(&self) -> bool {
        self.permanent
    }

    fn retry_after(&self) -> Option<Duration> {
        self.retry_after_ms.map(Duration::from_millis)
    }

    fn from_text(text: String) -> Option<Self> {
        Some(Self::new(text))
    }

    fn causes(&self) -> Vec<String> {
        self.chain.clone()
    }
}

// `Error` itself is no `std::error::Error`: otherwise this would overlap with the conversion of a type into itself.
impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        let of_call = (&error as &(dyn std::error::Error + 'static)).downcast_ref::<CallError<Self>>();
        if let Some(CallError::Failed(error)) = of_call {
            return error.clone();
        }
        let mut chain = Vec::new();
        let mut cause = error.source();
        while let Some(found) = cause {
            chain.push(found.to_string());
            cause = found.source();
        }
        Self { chain, kind: type_name::<E>().to_string(), ..Self::new(error.to_string()) }
    }
}

/// Adds a message to the error of a result.
pub trait Context<T> {
    /// The result with an [`Error`] under this message.
    fn context(self, message: impl Into<String>) -> Result<T>;
    /// [`Context::context`] with a message that is made only for an error.
    fn with_context<M: Into<String>>(self, message: impl FnOnce() -> M) -> Result<T>;
}

impl<T, E: Into<Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, message: impl Into<String>) -> Result<T> {
        self.map_err(|error| error.into().context(message))
    }

    fn with_context<M: Into<String>>(self, message: impl FnOnce() -> M) -> Result<T> {
        self.map_err(|error| error.into().context(message()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_keeps_causes_kind_and_permanence() {
        let parsed: Result<u8> = "x".parse::<u8>().map_err(Error::from).map_err(Error::permanent);
        let error = parsed.context("reading the order").unwrap_err();
        assert_eq!(error.to_string(), "reading the order");
        assert_eq!(format!("{error:#}"), "reading the order: invalid digit found in string");
        assert!(error.is_permanent() && error.kind().ends_with("ParseIntError"), "{error:?}");
        assert_eq!(
            format!("{error:?}"),
            "reading the order (permanent)\n\nCaused by:\n    invalid digit found in string"
        );
        assert_eq!(
            format!("{:?}", Error::new("a").with_retry_after(Duration::from_secs(5))),
            "a (retry after 5s)"
        );
        let stored: Error = serde_json::from_str(&serde_json::to_string(&error).unwrap()).unwrap();
        assert_eq!(stored, error);
    }

    #[test]
    fn the_error_of_a_call_keeps_its_permanence() {
        let inner = Error::new("declined").permanent();
        let outer = Error::from(CallError::Failed(inner.clone()));
        assert_eq!(outer, inner);
        assert_eq!(Error::from(CallError::<Error>::TimedOut("late".into())).to_string(), "timed out: late");
    }
}
