//! The status of an instance, and waits for its end.

use crate::HttpClient;
use crate::transport::of_instance;
use crate::wire::Detail;
use hyper::StatusCode;
use outlast::providers::ProviderError;
use outlast::{ClientError, OrchestrationStatus};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// The longest wait of one request, in seconds: proxies cut longer ones.
pub(crate) const LONGEST_WAIT: u64 = 25;

impl HttpClient {
    /// The status of an instance; `NotFound` until its first turn is committed.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn get_orchestration_status(&self, instance: &str) -> Result<OrchestrationStatus, ClientError> {
        match self.detail(instance).await {
            Ok(detail) => status(detail),
            Err(ClientError::InstanceNotFound { .. }) => Ok(OrchestrationStatus::NotFound),
            Err(error) => Err(error),
        }
    }

    /// Waits until an instance has completed or failed. Also waits for an instance that does not exist yet.
    ///
    /// # Errors
    ///
    /// [`ClientError::Timeout`] after the timeout; an error of the server or of the connection at once.
    pub async fn wait_for_orchestration(
        &self,
        instance: &str,
        timeout: Duration,
    ) -> Result<OrchestrationStatus, ClientError> {
        let wait = async {
            loop {
                if let Some(ended) = self.wait_once(instance, LONGEST_WAIT).await? {
                    return Ok(ended);
                }
            }
        };
        match timeout.is_zero() {
            true => self.wait_once(instance, 0).await?.ok_or(ClientError::Timeout),
            false => tokio::time::timeout(timeout, wait).await.unwrap_or(Err(ClientError::Timeout)),
        }
    }

    /// One request that waits; `None` if the instance has not ended.
    async fn wait_once(
        &self,
        instance: &str,
        seconds: u64,
    ) -> Result<Option<OrchestrationStatus>, ClientError> {
        let path = of_instance(instance, "/wait", &format!("payloads=true&timeout={seconds}"));
        match self.get::<Detail>(instance, &path).await {
            Ok(answer) if answer.status == StatusCode::OK => status(answer.value).map(Some),
            Ok(_) | Err(ClientError::InstanceNotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// [`HttpClient::wait_for_orchestration`] with a decoded output; the inner error is the message of the instance's failure.
    ///
    /// # Errors
    ///
    /// Also [`ClientError::InvalidInput`] when the output does not decode.
    pub async fn wait_for_orchestration_typed<Out: DeserializeOwned>(
        &self,
        instance: &str,
        timeout: Duration,
    ) -> Result<Result<Out, String>, ClientError> {
        match self.wait_for_orchestration(instance, timeout).await? {
            OrchestrationStatus::Completed { output, .. } => {
                let decoded = self.codec.decode(&output);
                decoded
                    .map(Ok)
                    .map_err(|error| ClientError::InvalidInput { message: format!("decode failed: {error}") })
            }
            OrchestrationStatus::Failed { details, .. } => Ok(Err(details.display_message())),
            OrchestrationStatus::NotFound | OrchestrationStatus::Running { .. } => Err(ClientError::Timeout),
        }
    }

    /// Waits until the custom status has a version above `last_seen_version`, or the instance has completed or failed. It reads the status
    /// every `poll_interval`. With a timeout of zero it returns `Timeout` without reading.
    ///
    /// # Errors
    ///
    /// [`ClientError::Timeout`] after the timeout; an error of the server or of the connection at once.
    pub async fn wait_for_status_change(
        &self,
        instance: &str,
        last_seen_version: u64,
        poll_interval: Duration,
        timeout: Duration,
    ) -> Result<OrchestrationStatus, ClientError> {
        if timeout.is_zero() {
            return Err(ClientError::Timeout);
        }
        let wait = async {
            loop {
                let status = self.get_orchestration_status(instance).await?;
                let version = match &status {
                    OrchestrationStatus::Running { custom_status_version, .. } => *custom_status_version,
                    _ => 0,
                };
                if version > last_seen_version || status.is_terminal() {
                    return Ok(status);
                }
                // At least 1 ms, so that other tasks run.
                tokio::time::sleep(poll_interval.max(Duration::from_millis(1))).await;
            }
        };
        tokio::time::timeout(timeout, wait).await.unwrap_or(Err(ClientError::Timeout))
    }

    pub(crate) async fn detail(&self, instance: &str) -> Result<Detail, ClientError> {
        let path = of_instance(instance, "", "payloads=true");
        Ok(self.get::<Detail>(instance, &path).await?.value)
    }
}

fn status(detail: Detail) -> Result<OrchestrationStatus, ClientError> {
    let lacks = || ProviderError::permanent("http", "the answer of the server has no payloads");
    detail.into_status().ok_or_else(|| lacks().into())
}
