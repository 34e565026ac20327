//! Encoding of typed values as payload text.

use serde::{Serialize, de::DeserializeOwned};
use std::borrow::Cow;
use std::fmt;

/// Changes the text of every typed value before it is stored, and back: encryption, compression, a reference to another store.
///
/// [`Codec::custom`] makes a codec of it. It must return the same text for the same value at every time, because replay compares the
/// inputs of calls with those of the history: for encryption, use a deterministic mode such as AES-SIV.
pub trait PayloadCodec: Send + Sync + 'static {
    /// The name of the codec, which is stored with every value. It has no `:`.
    fn name(&self) -> &str;

    /// The text to store, for the JSON text of a value.
    ///
    /// # Errors
    ///
    /// A sentence for people, without the value.
    fn encode(&self, plain: &str) -> Result<String, String>;

    /// The JSON text of a value, for its stored text.
    ///
    /// # Errors
    ///
    /// A sentence for people, without the value.
    fn decode(&self, stored: &str) -> Result<String, String>;
}

/// A [`PayloadCodec`] that lives as long as the process.
#[derive(Clone, Copy)]
pub struct CustomCodec(&'static dyn PayloadCodec);

impl fmt::Debug for CustomCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomCodec").field(&self.0.name()).finish()
    }
}

impl PartialEq for CustomCodec {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self.0, other.0) && self.0.name() == other.0.name()
    }
}

impl Eq for CustomCodec {}

/// The beginning of a text that a [`PayloadCodec`] wrote. The name of the codec and a `:` follow.
const MARK: &str = "__outlast:codec:";

/// The encoding of typed values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Codec {
    /// A JSON string is stored without quotes, every other value as compact JSON. Decoding tries JSON first and takes the
    /// text as a string otherwise, so a string that is JSON itself does not round-trip: `"a"` with its quotes is decoded as
    /// `a`. It is the default because stored histories use it.
    #[default]
    Contract,
    /// Always JSON, strings with their quotes: every value round-trips. All clients and runtimes of a store must use the
    /// same codec.
    Json,
    /// JSON that a [`PayloadCodec`] changes before it is stored. Every value round-trips. Text without its mark is read as by
    /// [`Codec::Contract`], so that values of the string API and of earlier programs can be read.
    Custom(CustomCodec),
}

impl Codec {
    /// A codec that changes the text of every value. It lives until the process ends, so make it once.
    pub fn custom(codec: impl PayloadCodec) -> Self {
        Self::Custom(CustomCodec(Box::leak(Box::new(codec))))
    }

    /// The payload text of a value.
    pub fn encode<T: Serialize + ?Sized>(self, value: &T) -> Result<String, String> {
        let text = match (self, serde_json::to_value(value).map_err(|error| error.to_string())?) {
            (Self::Contract, serde_json::Value::String(text)) => return Ok(text),
            (_, value) => serde_json::to_string(&value),
        };
        self.seal(text.map_err(|error| error.to_string())?)
    }

    /// The value of a payload text.
    pub fn decode<T: DeserializeOwned>(self, text: &str) -> Result<T, String> {
        let opened = self.open(text)?;
        let decoded = match (self, &opened) {
            (Self::Json, _) | (Self::Custom(_), Cow::Owned(_)) => serde_json::from_str(&opened),
            (Self::Contract | Self::Custom(_), _) => serde_json::from_str(&opened)
                .or_else(|_| serde_json::from_value(serde_json::Value::String(opened.into_owned()))),
        };
        decoded.map_err(|error| error.to_string())
    }

    /// The text to store for a text: unchanged, unless this is a codec of [`Codec::custom`].
    pub fn seal(self, plain: String) -> Result<String, String> {
        let Self::Custom(CustomCodec(codec)) = self else { return Ok(plain) };
        let stored = codec.encode(&plain).map_err(|error| format!("codec '{}': {error}", codec.name()))?;
        Ok(format!("{MARK}{}:{stored}", codec.name()))
    }

    /// The text of [`Codec::seal`], for a stored text. Text without a mark is returned as it is.
    ///
    /// # Errors
    ///
    /// For a text of another codec, with the names of both; and if the codec refuses the text.
    pub fn open(self, stored: &str) -> Result<Cow<'_, str>, String> {
        let Some((written, text)) = marked(stored) else { return Ok(Cow::Borrowed(stored)) };
        let Self::Custom(CustomCodec(codec)) = self else {
            return Err(format!(
                "it was written with codec '{written}', and this process has none: set the same codec in \
                 RuntimeOptions::codec and Client::with_codec"
            ));
        };
        if codec.name() != written {
            return Err(format!(
                "it was written with codec '{written}', and this process has codec '{}': set the same codec in \
                 RuntimeOptions::codec and Client::with_codec",
                codec.name()
            ));
        }
        codec.decode(text).map(Cow::Owned).map_err(|error| format!("codec '{written}': {error}"))
    }
}

/// The name of the codec of a stored text, and the rest of the text. `None` for text that no [`PayloadCodec`] wrote.
#[inline]
pub fn marked(stored: &str) -> Option<(&str, &str)> {
    stored.strip_prefix(MARK)?.split_once(':')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Order {
        z: u32,
        a: Option<String>,
    }

    #[test]
    fn contract_codec_writes_strings_raw_and_other_values_as_json() {
        let encode = |value: &str| Codec::Contract.encode(value);
        assert_eq!(encode("hello").unwrap(), "hello");
        assert_eq!(Codec::Contract.encode(&()).unwrap(), "null");
        assert_eq!(Codec::Contract.encode(&7).unwrap(), "7");
        assert_eq!(Codec::Contract.encode(&Order { z: 1, a: None }).unwrap(), r#"{"a":null,"z":1}"#);
        assert_eq!(Codec::Contract.decode::<String>("hello").unwrap(), "hello");
        assert_eq!(
            Codec::Contract.decode::<Order>(r#"{"z":1,"a":"x"}"#).unwrap(),
            Order { z: 1, a: Some("x".into()) }
        );
        assert_eq!(
            Codec::Contract.decode::<String>("\"a\"").unwrap(),
            "a",
            "this codec does not round-trip the string"
        );
    }

    #[test]
    fn contract_codec_returns_the_error_of_the_string_attempt() {
        assert!(Codec::Contract.decode::<u32>("abc").unwrap_err().contains("invalid type: string"));
    }

    struct Reversed(&'static str);

    impl PayloadCodec for Reversed {
        fn name(&self) -> &str {
            self.0
        }

        fn encode(&self, plain: &str) -> Result<String, String> {
            Ok(plain.chars().rev().collect())
        }

        fn decode(&self, stored: &str) -> Result<String, String> {
            self.encode(stored)
        }
    }

    #[test]
    fn custom_codec_round_trips_every_value_and_reads_plain_text() {
        let codec = Codec::custom(Reversed("reversed"));
        for text in ["hello", "\"a\"", "null", "7", "", "{\"a\":1}", "__outlast:codec:other:x"] {
            let stored = codec.encode(text).unwrap();
            assert!(stored.starts_with("__outlast:codec:reversed:"), "{stored}");
            assert_eq!(codec.decode::<String>(&stored).unwrap(), text);
        }
        assert_eq!(codec.encode(&12).unwrap(), "__outlast:codec:reversed:21");
        assert_eq!(codec.decode::<u8>("12").unwrap(), 12);
        assert_eq!(codec.decode::<String>("plain").unwrap(), "plain");
        assert_eq!(codec, codec);
        assert_ne!(codec, Codec::custom(Reversed("reversed")));
    }

    #[test]
    fn text_of_another_codec_is_an_error_that_names_both() {
        let stored = Codec::custom(Reversed("reversed")).encode("s3cret").unwrap();
        for codec in [Codec::Contract, Codec::Json] {
            let error = codec.decode::<String>(&stored).unwrap_err();
            assert!(error.contains("written with codec 'reversed', and this process has none"), "{error}");
        }
        let error = Codec::custom(Reversed("other")).decode::<String>(&stored).unwrap_err();
        assert!(error.contains("codec 'reversed', and this process has codec 'other'"), "{error}");
        assert!(!error.contains("s3cret") && !error.contains("terc3s"), "{error}");
    }

    #[test]
    fn c18_json_codec_round_trips_every_value() {
        for text in ["hello", "\"a\"", "null", "7", "", "{\"a\":1}"] {
            let stored = Codec::Json.encode(text).unwrap();
            assert_eq!(Codec::Json.decode::<String>(&stored).unwrap(), text);
            let optional = Codec::Json.encode(&Some(text)).unwrap();
            assert_eq!(Codec::Json.decode::<Option<String>>(&optional).unwrap().as_deref(), Some(text));
        }
        assert!(Codec::Json.decode::<String>("raw").is_err(), "text that is not JSON is an error");
    }
}
