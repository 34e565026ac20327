//! Reads the key-value state of instances. Only the turns of an instance write it.

use crate::HttpClient;
use crate::read::LONGEST_WAIT;
use crate::transport::{encoded, of_instance};
use crate::wire::Detail;
use hyper::StatusCode;
use outlast::ClientError;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::time::Duration;

impl HttpClient {
    /// All keys and values of an instance; empty if the instance does not exist.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ClientError> {
        match self.detail(instance).await {
            Ok(detail) => {
                Ok(detail.kv.into_iter().filter_map(|pair| Some((pair.key, pair.value?))).collect())
            }
            Err(ClientError::InstanceNotFound { .. }) => Ok(HashMap::new()),
            Err(error) => Err(error),
        }
    }

    /// The value of a key; `None` if the instance or the key does not exist.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ClientError> {
        Ok(self.get_kv_all_values(instance).await?.remove(key))
    }

    /// Waits until a key has a value. Also waits for an instance that does not exist yet. With a timeout of zero it reads once.
    ///
    /// # Errors
    ///
    /// [`ClientError::Timeout`] after the timeout; an error of the server or of the connection at once.
    pub async fn wait_for_kv_value(
        &self,
        instance: &str,
        key: &str,
        timeout: Duration,
    ) -> Result<String, ClientError> {
        let wait = async {
            loop {
                if let Some(value) = self.wait_for_key_once(instance, key, LONGEST_WAIT).await? {
                    return Ok(value);
                }
            }
        };
        match timeout.is_zero() {
            true => self.wait_for_key_once(instance, key, 0).await?.ok_or(ClientError::Timeout),
            false => tokio::time::timeout(timeout, wait).await.unwrap_or(Err(ClientError::Timeout)),
        }
    }

    /// One request that waits for a key; `None` if the key has no value.
    async fn wait_for_key_once(
        &self,
        instance: &str,
        key: &str,
        seconds: u64,
    ) -> Result<Option<String>, ClientError> {
        let params = format!("payloads=true&timeout={seconds}&key={}", encoded(key));
        match self.get::<Detail>(instance, &of_instance(instance, "/wait", &params)).await {
            Ok(answer) => Ok(answer.value.value_of(key)),
            Err(ClientError::InstanceNotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// [`HttpClient::get_kv_value`] decoded from JSON.
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

    /// [`HttpClient::wait_for_kv_value`] decoded from JSON.
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

    /// Waits until a key has a value, or the instance has completed or failed: then `None`, unless its last turn wrote the key.
    ///
    /// # Errors
    ///
    /// [`ClientError::Timeout`] after the timeout; an error of the server or of the connection at once.
    pub async fn wait_for_kv_value_or_end(
        &self,
        instance: &str,
        key: &str,
        timeout: Duration,
    ) -> Result<Option<String>, ClientError> {
        let wait = async {
            loop {
                if let Some(found) = self.wait_for_key_or_end_once(instance, key, LONGEST_WAIT).await? {
                    return Ok(found);
                }
            }
        };
        match timeout.is_zero() {
            true => self.wait_for_key_or_end_once(instance, key, 0).await?.ok_or(ClientError::Timeout),
            false => tokio::time::timeout(timeout, wait).await.unwrap_or(Err(ClientError::Timeout)),
        }
    }

    /// One request that waits for a key or the end; `None` if neither has come.
    async fn wait_for_key_or_end_once(
        &self,
        instance: &str,
        key: &str,
        seconds: u64,
    ) -> Result<Option<Option<String>>, ClientError> {
        let params = format!("payloads=true&timeout={seconds}&or_end=true&key={}", encoded(key));
        match self.get::<Detail>(instance, &of_instance(instance, "/wait", &params)).await {
            Ok(answer) if answer.status == StatusCode::OK => Ok(Some(answer.value.value_of(key))),
            Ok(_) | Err(ClientError::InstanceNotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Decodes a value as JSON. Unlike payloads, strings are stored with their quotes.
    fn decoded<T: DeserializeOwned>(&self, value: &str) -> Result<T, ClientError> {
        let opened = self.codec.open(value);
        let decoded = opened.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
        decoded.map_err(|error| ClientError::InvalidInput {
            message: format!("KV deserialization error: {error}"),
        })
    }
}
