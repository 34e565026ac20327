//! Reads the key-value state of instances. Only the turns of an instance write it.

use super::wait::PollInterval;
use super::{Client, ClientError};
use outlast_engine::layer::RESERVED_KEY_PREFIX;
use outlast_provider::Interest;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::time::Duration;

impl Client {
    /// The value of a key; `None` if the instance or the key does not exist.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ClientError> {
        Ok(self.store.get_kv_value(instance, key).await?)
    }

    /// [`Client::get_kv_value`] decoded from JSON.
    ///
    /// Cancellation safety: the call only reads.
    ///
    /// # Errors
    ///
    /// Also [`ClientError::InvalidInput`] when the value does not decode.
    pub async fn get_kv_value_typed<T: DeserializeOwned>(
        &self,
        instance: &str,
        key: &str,
    ) -> Result<Option<T>, ClientError> {
        self.get_kv_value(instance, key).await?.map(|value| self.decoded(&value)).transpose()
    }

    /// All keys and values, without the reserved keys of Outlast; empty if the instance does not exist.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ClientError> {
        let mut values = self.store.get_kv_all_values(instance).await?;
        values.retain(|key, _| !key.starts_with(RESERVED_KEY_PREFIX));
        Ok(values)
    }

    /// Waits until a key has a value, or the instance has completed or failed: then `None`, unless its last turn wrote the key.
    ///
    /// Cancellation safety: the call only reads.
    ///
    /// # Errors
    ///
    /// [`ClientError::Timeout`] after the timeout; an error of the store at once.
    pub async fn wait_for_kv_value_or_end(
        &self,
        instance: &str,
        key: &str,
        timeout: Duration,
    ) -> Result<Option<String>, ClientError> {
        let check = |_| async {
            // The status is read first: after the end the key does not change.
            let has_ended = self.get_orchestration_status(instance).await?.is_terminal();
            let value = self.get_kv_value(instance, key).await?;
            Ok((value.is_some() || has_ended).then_some(value))
        };
        self.wait_until(instance, Interest::Any, PollInterval::Growing, timeout, check).await
    }

    /// Waits until a key has a value. With a timeout of zero it reads once.
    ///
    /// Cancellation safety: the call only reads.
    ///
    /// # Errors
    ///
    /// [`ClientError::Timeout`] after the timeout; an error of the store at once.
    pub async fn wait_for_kv_value(
        &self,
        instance: &str,
        key: &str,
        timeout: Duration,
    ) -> Result<String, ClientError> {
        let check = |_| self.get_kv_value(instance, key);
        self.wait_until(instance, Interest::Any, PollInterval::Growing, timeout, check).await
    }

    /// [`Client::wait_for_kv_value`] decoded from JSON.
    ///
    /// Cancellation safety: the call only reads.
    ///
    /// # Errors
    ///
    /// Also [`ClientError::InvalidInput`] when the value does not decode.
    pub async fn wait_for_kv_value_typed<T: DeserializeOwned>(
        &self,
        instance: &str,
        key: &str,
        timeout: Duration,
    ) -> Result<T, ClientError> {
        self.decoded(&self.wait_for_kv_value(instance, key, timeout).await?)
    }

    /// Decodes a value as JSON. Unlike payloads, strings are stored with their quotes.
    fn decoded<T: DeserializeOwned>(&self, value: &str) -> Result<T, ClientError> {
        let opened = self.codec.open(value);
        let decoded = opened.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
        decoded.map_err(|error| ClientError::invalid(format!("KV deserialization error: {error}")))
    }
}
