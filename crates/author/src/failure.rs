//! Errors that travel, and their text.
//!
//! A history has one text for an error. A typed error is the JSON object `{"error": .., "data": ..}`: `error` is the sentence for
//! people, `data` the error itself, `permanent` and `retry_after_ms` are for retries, `chain` holds the causes. A failure of Outlast
//! that occurs in a handler has `fault` instead of `data`. So no failure of Outlast looks like an error of the user's type. For a
//! `String` the sentence is the error, and there is no `data`.

use crate::call_error::{CallError, Callee};
use outlast_model::codec::{Codec, marked};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::any::TypeId;
use std::fmt;
use std::time::Duration;

/// An error that travels from an activity or orchestration to its caller. `#[derive(outlast::Failure)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot travel as the error of an activity or orchestration",
    label = "does not implement `outlast::Failure`",
    note = "derive it: `#[derive(Debug, thiserror::Error, Serialize, Deserialize, outlast::Failure)]`, or use `String` or `outlast::Error`"
)]
pub trait Failure: Serialize + DeserializeOwned + fmt::Display + Send + 'static {
    /// Whether another attempt cannot help.
    fn is_permanent(&self) -> bool {
        false
    }

    /// The wait before the next attempt, if the error knows it.
    fn retry_after(&self) -> Option<Duration> {
        None
    }

    /// The error for a text of code that does not return this type: of the string API, or of a newer program with another variant.
    fn from_text(_text: String) -> Option<Self> {
        None
    }

    /// The causes, outermost first.
    fn causes(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Failure for String {
    fn from_text(text: String) -> Option<Self> {
        Some(text)
    }
}

/// A field that `#[failure(retry_after = field)]` can name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a wait",
    note = "`retry_after` names a field of the type `Duration` or `Option<Duration>`"
)]
pub trait RetryAfter {
    /// The wait.
    fn retry_after(&self) -> Option<Duration>;
}

impl RetryAfter for Duration {
    fn retry_after(&self) -> Option<Duration> {
        Some(*self)
    }
}

impl RetryAfter for Option<Duration> {
    fn retry_after(&self) -> Option<Duration> {
        *self
    }
}

/// A failure of Outlast that occurs in a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    TimedOut,
    Panicked,
    /// A value does not encode or decode, or is too large.
    Value,
    #[serde(other)]
    Unknown,
}

/// The JSON object of an error.
#[derive(Serialize, Deserialize)]
struct Envelope {
    error: String,
    #[serde(default, skip_serializing_if = "is_false")]
    permanent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fault: Option<Fault>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    chain: Vec<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Envelope {
    fn of(error: String) -> Self {
        Self { error, permanent: false, retry_after_ms: None, fault: None, data: None, chain: Vec::new() }
    }

    fn read(text: &str) -> Option<Self> {
        if !text.starts_with("{\"error\":") {
            return None;
        }
        serde_json::from_str(text).ok()
    }

    fn into_text(self) -> String {
        serde_json::to_string(&self).unwrap_or(self.error)
    }
}

/// The text of an error.
pub fn write<E: Failure>(error: &E, as_text: bool, codec: Codec) -> String {
    if as_text {
        return sealed(error.to_string(), codec);
    }
    let mut envelope = Envelope::of(error.to_string());
    envelope.permanent = error.is_permanent();
    envelope.retry_after_ms =
        error.retry_after().map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    envelope.chain = error.causes();
    if TypeId::of::<E>() != TypeId::of::<String>() {
        envelope.data = serde_json::to_value(error).ok();
    }
    sealed(envelope.into_text(), codec)
}

/// The stored text of an error. An error that the codec refuses is lost: its text must not be stored.
fn sealed(text: String, codec: Codec) -> String {
    codec.seal(text).unwrap_or_else(|error| {
        let text = format!("the error of the code does not encode: {error}");
        Envelope { fault: Some(Fault::Value), ..Envelope::of(text) }.into_text()
    })
}

/// The text of a failure of Outlast.
pub(crate) fn write_fault(fault: Fault, text: String, as_text: bool, codec: Codec) -> String {
    let text = match as_text {
        true => text,
        false => Envelope { fault: Some(fault), ..Envelope::of(text) }.into_text(),
    };
    // It may quote a value.
    sealed(text, codec)
}

/// The error for a text.
pub(crate) fn read<E: Failure>(text: String, callee: Callee, codec: Codec) -> CallError<E> {
    let text = match codec.open(&text) {
        Ok(text) => text.into_owned(),
        Err(error) => return CallError::Other(format!("the error does not decode: {error}")),
    };
    let Some(envelope) = Envelope::read(&text) else {
        return match callee {
            // A handler of the string API, or an older one with `errors = text`.
            Callee::Activity | Callee::OfText => from_text(text),
            // An orchestration that broke a limit failed with a text of Outlast.
            Callee::Orchestration => CallError::Other(text),
        };
    };
    match envelope.fault {
        Some(Fault::TimedOut) => CallError::TimedOut(envelope.error),
        Some(Fault::Panicked) => CallError::Panicked(envelope.error),
        Some(Fault::Value | Fault::Unknown) => CallError::Other(envelope.error),
        None if TypeId::of::<E>() == TypeId::of::<String>() => from_text(envelope.error),
        // JSON does not tell `null` from a missing field.
        None => match serde_json::from_value(envelope.data.unwrap_or(Value::Null)) {
            Ok(error) => CallError::Failed(error),
            Err(_) => from_text(envelope.error),
        },
    }
}

fn from_text<E: Failure>(text: String) -> CallError<E> {
    match E::from_text(text.clone()) {
        Some(error) => CallError::Failed(error),
        None => CallError::Other(text),
    }
}

/// The sentence for people in the text of an error: for tools that show failures. Text of the string API is returned as it is.
pub fn plain_text(text: &str) -> String {
    if let Some((codec, _)) = marked(text) {
        return format!("(a text of codec '{codec}')");
    }
    Envelope::read(text).map_or_else(|| text.to_string(), |envelope| envelope.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Payment {
        Declined { code: String },
        Unit,
    }

    impl fmt::Display for Payment {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "payment: {self:?}")
        }
    }

    impl Failure for Payment {
        fn is_permanent(&self) -> bool {
            matches!(self, Self::Declined { .. })
        }
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Nothing;

    impl fmt::Display for Nothing {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("nothing")
        }
    }

    impl Failure for Nothing {}

    #[track_caller]
    fn returns<E: Failure + PartialEq + fmt::Debug>(error: E) {
        let text = write(&error, false, Codec::Contract);
        for callee in [Callee::Activity, Callee::Orchestration] {
            assert_eq!(read::<E>(text.clone(), callee, Codec::Contract).failed(), Some(&error), "{text}");
        }
        assert_eq!(plain_text(&text), error.to_string());
    }

    #[test]
    fn errors_of_every_type_return_as_they_were() {
        returns(Payment::Declined { code: "05".into() });
        returns(Payment::Unit);
        returns(Nothing);
        for text in ["", "plain", "{\"error\":\"x\"}", "{\"error\":\"x\",\"fault\":\"timed_out\"}", "null"] {
            returns(text.to_string());
        }
    }

    #[test]
    fn a_failure_of_outlast_is_no_error_of_the_users_type() {
        let fault = |fault| {
            read::<String>(write_fault(fault, "t".into(), false, Codec::Json), Callee::Activity, Codec::Json)
        };
        assert_eq!(fault(Fault::TimedOut), CallError::TimedOut("t".into()));
        assert_eq!(fault(Fault::Panicked), CallError::Panicked("t".into()));
        assert_eq!(fault(Fault::Value), CallError::Other("t".into()));
        let newer = "{\"error\":\"t\",\"fault\":\"of a newer version\"}".to_string();
        assert_eq!(read::<String>(newer, Callee::Activity, Codec::Contract), CallError::Other("t".into()));
        let limit = "more than 1000 decisions in one turn".to_string();
        assert_eq!(
            read::<String>(limit.clone(), Callee::Orchestration, Codec::Contract),
            CallError::Other(limit)
        );
    }

    #[test]
    fn text_of_the_string_api_is_an_error_of_types_that_take_text() {
        assert_eq!(
            read::<String>("busy".into(), Callee::Activity, Codec::Contract),
            CallError::Failed("busy".into())
        );
        assert_eq!(
            read::<Payment>("busy".into(), Callee::Activity, Codec::Contract),
            CallError::Other("busy".into())
        );
        let newer = "{\"error\":\"frozen\",\"data\":{\"Frozen\":1}}".to_string();
        assert_eq!(
            read::<Payment>(newer, Callee::Activity, Codec::Contract),
            CallError::Other("frozen".into())
        );
    }
}
