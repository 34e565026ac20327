//! The key-value state of instances, as their committed turns left it. A client cannot write it.

use super::wait::Rhythm;
use super::{Client, ClientError};
use outlast_provider::Interest;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::time::Duration;

impl Client {
    /// The value of a key; `None` if the instance or the key is unknown.
    ///
    /// Cancellation safety: it only reads.
    pub async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ClientError> {
        Ok(self.store.get_kv_value(instance, key).await?)
    }

    /// [`Client::get_kv_value`] decoded from JSON.
    ///
    /// Cancellation safety: it only reads.
    ///
    /// # Errors
    ///
    /// Also [`ClientError::InvalidInput`] when the value does not decode.
    pub async fn get_kv_value_typed<T: DeserializeOwned>(
        &self,
        instance: &str,
        key: &str,
    ) -> Result<Option<T>, ClientError> {
        self.get_kv_value(instance, key).await?.map(|value| decoded(&value)).transpose()
    }

    /// All keys and values; empty if the instance is unknown.
    ///
    /// Cancellation safety: it only reads.
    pub async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ClientError> {
        Ok(self.store.get_kv_all_values(instance).await?)
    }

    /// Waits until a key has a value. With a timeout of zero it looks once.
    ///
    /// Cancellation safety: it only reads.
    ///
    /// # Errors
    ///
    /// [`ClientError::Timeout`] when the time is over; a store's error at once.
    pub async fn wait_for_kv_value(
        &self,
        instance: &str,
        key: &str,
        timeout: Duration,
    ) -> Result<String, ClientError> {
        let look = |_| self.get_kv_value(instance, key);
        self.wait_until(instance, Interest::Any, Rhythm::Growing, timeout, look).await
    }

    /// [`Client::wait_for_kv_value`] decoded from JSON.
    ///
    /// Cancellation safety: it only reads.
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
        decoded(&self.wait_for_kv_value(instance, key, timeout).await?)
    }
}

/// Values are plain JSON: strings are stored with their quotes, unlike payloads.
fn decoded<T: DeserializeOwned>(value: &str) -> Result<T, ClientError> {
    serde_json::from_str(value)
        .map_err(|error| ClientError::invalid(format!("KV deserialization error: {error}")))
}
