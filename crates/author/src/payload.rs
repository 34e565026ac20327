//! Values as text. Every value of the typed layer passes [`encode`] and [`decode`].
//!
//! Text of the string API decodes as the same value. A value that is written here is read back exactly, with every codec of the
//! runtime.

use crate::definition::Orchestration;
use outlast_model::codec::{Codec, marked};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use std::any::{Any, TypeId};

/// A type whose values a history can hold: every type with serde's traits.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored in a history",
    label = "is not `Serialize + Deserialize + Send`",
    note = "put `#[derive(serde::Serialize, serde::Deserialize)]` on it"
)]
pub trait Payload: Sized + Send + 'static {
    /// The text of a value.
    fn encode(&self, codec: Codec) -> Result<String, String>;
    /// [`Payload::encode`] of a value that is not needed any more: a string is not copied.
    fn into_text(self, codec: Codec) -> Result<String, String>;
    /// The value of a text.
    fn decode(text: String, codec: Codec) -> Result<Self, String>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + 'static> Payload for T {
    fn encode(&self, codec: Codec) -> Result<String, String> {
        encode(codec, self)
    }

    fn into_text(self, codec: Codec) -> Result<String, String> {
        match cast::<Self, String>(self) {
            Ok(text) if matches!(codec, Codec::Custom(_)) => codec.seal(encode_string(codec, text)),
            Ok(text) => Ok(encode_string(codec, text)),
            Err(value) => encode(codec, &value),
        }
    }

    fn decode(text: String, codec: Codec) -> Result<Self, String> {
        if TypeId::of::<Self>() == TypeId::of::<String>() && is_plain(&text) && marked(&text).is_none() {
            // `cast` gives the text back if the types differ, and they do not.
            return cast::<String, Self>(text).or_else(|text| decode(codec, &text));
        }
        decode(codec, &text)
    }
}

/// The text of a value. It is the text of [`Codec::encode`], so that a typed call repeats a recorded call of the string API. The one
/// exception is a string that is JSON itself: with the codec of the contract it would be read back as another value.
pub(crate) fn encode<T: Serialize + 'static>(codec: Codec, value: &T) -> Result<String, String> {
    let text = match serde_json::to_value(value) {
        Ok(Value::String(text)) => return codec.seal(encode_string(codec, text)),
        Ok(value) => serde_json::to_string(&value),
        // Integers above 64 bits have a text and no `Value`.
        Err(_) => serde_json::to_string(value),
    };
    codec.seal(text.map_err(|error| error.to_string())?)
}

#[inline]
fn encode_string(codec: Codec, text: String) -> String {
    match matches!(codec, Codec::Contract) && !is_json(&text) && marked(&text).is_none() {
        true => text,
        // `Value` displays as JSON.
        false => Value::from(text).to_string(),
    }
}

/// The value if both types are the same, without a copy.
fn cast<From: 'static, To: 'static>(value: From) -> Result<To, From> {
    let mut value = Some(value);
    let same = (&mut value as &mut dyn Any).downcast_mut::<Option<To>>().and_then(Option::take);
    match (same, value) {
        (Some(same), _) => Ok(same),
        (None, Some(value)) => Err(value),
        (None, None) => unreachable!("a value is taken only if the types are the same"),
    }
}

/// Whether the text is no JSON string.
fn is_plain(text: &str) -> bool {
    !text.trim_ascii_start().starts_with('"')
}

/// The text of the input of an orchestration.
pub(crate) fn encode_input<O: Orchestration>(codec: Codec, input: O::Input) -> Result<String, String> {
    input
        .into_text(codec)
        .map_err(|error| format!("the input of orchestration '{}' does not encode: {error}", O::NAME))
}

/// The value of a text. The text may come from this codec, from the codecs without a mark, or from the string API. An empty text is
/// also the value of a function without input.
pub(crate) fn decode<T: DeserializeOwned + 'static>(codec: Codec, text: &str) -> Result<T, String> {
    let text = &*codec.open(text)?;
    if TypeId::of::<T>() == TypeId::of::<String>()
        && is_plain(text)
        && let Ok(decoded) = cast(text.to_string())
    {
        return Ok(decoded);
    }
    let decoded = Codec::Contract.decode(text);
    match decoded {
        Err(error) if text.is_empty() => serde_json::from_value(Value::Null).map_err(|_| error),
        decoded => decoded,
    }
}

fn is_json(text: &str) -> bool {
    let first = text.trim_ascii_start().bytes().next();
    let can_be = |first: u8| matches!(first, b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n');
    first.is_some_and(can_be) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::fmt::Debug;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Order {
        z: f64,
        a: Option<String>,
        big: u128,
    }

    #[track_caller]
    fn round_trips<T: Serialize + DeserializeOwned + PartialEq + Debug + 'static>(value: T) {
        for codec in [Codec::Contract, Codec::Json] {
            let text = encode(codec, &value).unwrap();
            assert_eq!(decode::<T>(codec, &text).as_ref(), Ok(&value), "{codec:?}: {text}");
        }
    }

    #[test]
    fn every_value_round_trips_with_both_codecs() {
        for text in [
            "",
            " ",
            "hello",
            "\"quoted\"",
            "null",
            "7",
            "-",
            "-1",
            "true",
            "{\"a\":1}",
            "[",
            " 7 ",
            "nul",
            "\u{feff}7",
            "__outlast:codec:x:y",
        ] {
            round_trips(text.to_string());
            round_trips(Some(text.to_string()));
            round_trips(vec![text.to_string()]);
            round_trips(serde_json::json!(text));
        }
        round_trips(None::<String>);
        round_trips(());
        round_trips('"');
        round_trips(u128::MAX);
        round_trips(i64::MIN);
        round_trips(f32::MIN_POSITIVE);
        for number in [31.245270191439438, 2.638344616030823e-256, f64::MAX, 0.1 + 0.2] {
            round_trips(number);
            round_trips(Order { z: number, a: Some("null".into()), big: u128::from(u64::MAX) });
        }
    }

    #[test]
    fn texts_are_those_of_the_string_api() {
        for codec in [Codec::Contract, Codec::Json] {
            let same = |value: &Value| assert_eq!(encode(codec, value), codec.encode(value));
            same(&serde_json::json!({"z": 1, "a": [null, "x"]}));
            same(&serde_json::json!("plain"));
            same(&serde_json::json!(1.5));
        }
    }

    #[test]
    fn text_of_the_string_api_decodes_as_the_value() {
        assert_eq!(decode::<String>(Codec::Contract, "hello"), Ok("hello".to_string()));
        assert_eq!(decode::<()>(Codec::Contract, ""), Ok(()));
        assert_eq!(decode::<Option<u8>>(Codec::Contract, ""), Ok(None));
        assert!(decode::<u8>(Codec::Contract, "").unwrap_err().contains("invalid type: string"));
    }
}
