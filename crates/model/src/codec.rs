//! Encoding of typed values as payload text.

use serde::{Serialize, de::DeserializeOwned};

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
}

impl Codec {
    /// The payload text of a value.
    pub fn encode<T: Serialize + ?Sized>(self, value: &T) -> Result<String, String> {
        let text = match (self, serde_json::to_value(value).map_err(|error| error.to_string())?) {
            (Self::Contract, serde_json::Value::String(text)) => return Ok(text),
            (_, value) => serde_json::to_string(&value),
        };
        text.map_err(|error| error.to_string())
    }

    /// The value of a payload text.
    pub fn decode<T: DeserializeOwned>(self, text: &str) -> Result<T, String> {
        let decoded = match self {
            Self::Json => serde_json::from_str(text),
            Self::Contract => serde_json::from_str(text)
                .or_else(|_| serde_json::from_value(serde_json::Value::String(text.to_string()))),
        };
        decoded.map_err(|error| error.to_string())
    }
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
