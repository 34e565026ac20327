//! Numbers in documents. Cosmos DB keeps numbers as doubles, which hold integers up to 2^53 exactly. A larger number, such as
//! the end of a lease that never ends, is written as a text.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// The largest integer that every reader of JSON reads exactly.
pub(crate) const LARGEST: u64 = (1 << 53) - 1;

/// A time for an index, which holds numbers only.
pub(crate) fn indexed(number: u64) -> u64 {
    number.min(LARGEST)
}

/// A number as a parameter of a query, in the form in which documents hold it.
pub(crate) fn parameter(number: u64) -> serde_json::Value {
    match number <= LARGEST {
        true => number.into(),
        false => number.to_string().into(),
    }
}

pub(crate) fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    match *number <= LARGEST {
        true => serializer.serialize_u64(*number),
        false => serializer.serialize_str(&number.to_string()),
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Number(u64),
    /// The service may return an integer as a double.
    Double(f64),
    Text(String),
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match Stored::deserialize(deserializer)? {
        Stored::Number(number) => Ok(number),
        Stored::Double(double) if double >= 0.0 && double <= LARGEST as f64 => Ok(double as u64),
        Stored::Double(double) => Err(D::Error::custom(format!("{double} is no number of this store"))),
        Stored::Text(text) => {
            text.parse().map_err(|_| D::Error::custom(format!("'{text:.40}' is no number of this store")))
        }
    }
}

/// The serialisation of a number that may be absent.
pub(crate) mod option {
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    struct Present(#[serde(with = "super")] u64);

    pub(crate) fn serialize<S: Serializer>(number: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        match number {
            Some(number) => super::serialize(number, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        Ok(Option::<Present>::deserialize(deserializer)?.map(|Present(number)| number))
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Numbers {
        #[serde(with = "super")]
        one: u64,
        #[serde(with = "super::option", default, skip_serializing_if = "Option::is_none")]
        other: Option<u64>,
    }

    #[test]
    fn numbers_beyond_doubles_are_texts_and_read_back() {
        for number in [0, 7, super::LARGEST, super::LARGEST + 1, u64::MAX] {
            let numbers = Numbers { one: number, other: Some(number) };
            let text = serde_json::to_string(&numbers).unwrap();
            assert_eq!(
                text.contains('"'.to_string().as_str()) && text.contains(&format!("\"{number}\"")),
                number > super::LARGEST
            );
            assert_eq!(serde_json::from_str::<Numbers>(&text).unwrap(), numbers);
        }
        let absent = Numbers { one: 1, other: None };
        assert_eq!(serde_json::to_string(&absent).unwrap(), r#"{"one":1}"#);
        assert_eq!(serde_json::from_str::<Numbers>(r#"{"one":1.0}"#).unwrap(), absent);
        for refused in [r#"{"one":-1}"#, r#"{"one":"x"}"#, r#"{"one":1e300}"#] {
            assert!(serde_json::from_str::<Numbers>(refused).is_err(), "{refused}");
        }
    }
}
