//! Reset and fork of instances.

use crate::HttpClient;
use crate::transport::of_instance;
use crate::wire::ResetAnswer;
use outlast::ClientError;
use outlast::client::{Reset, ResetSummary};
use serde_json::{Value, json};

impl HttpClient {
    /// Ends the newest execution of an instance, if it runs, and begins the next one with a copy of its first events, as
    /// [`outlast::Client::reset_instance`] does. The server records the name of the token instead of [`Reset::by`].
    ///
    /// # Errors
    ///
    /// [`ClientError::InstanceNotFound`]; [`ClientError::InvalidInput`] if the history cannot be cut there, children are in the way, or
    /// the store cannot reset instances; [`ClientError::Timeout`] if a turn runs for more than a minute.
    pub async fn reset_instance(&self, instance: &str, reset: &Reset) -> Result<ResetSummary, ClientError> {
        let mut body = body_of(reset);
        body["cancel_children"] = reset.cancels_children().into();
        self.branch(instance, "/reset", body).await
    }

    /// Starts a new instance with a copy of the first events of another one, which goes on, as [`outlast::Client::fork_instance`] does.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::reset_instance`], and [`ClientError::InvalidInput`] if the new id is taken.
    pub async fn fork_instance(
        &self,
        instance: &str,
        new_id: &str,
        fork: &Reset,
    ) -> Result<ResetSummary, ClientError> {
        let mut body = body_of(fork);
        body["new_id"] = new_id.into();
        self.branch(instance, "/fork", body).await
    }

    async fn branch(&self, instance: &str, path: &str, body: Value) -> Result<ResetSummary, ClientError> {
        let answer = self.post::<ResetAnswer>(instance, &of_instance(instance, path, ""), body, &[]).await?;
        Ok(answer.value.into())
    }
}

/// The fields of both requests. Without a reason the client adds its own.
fn body_of(reset: &Reset) -> Value {
    let reason = Some(reset.reason()).filter(|reason| !reason.is_empty());
    json!({ "to_event": reset.last_event(), "dry_run": reset.is_dry_run(), "reason": reason })
}
