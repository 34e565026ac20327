//! Pause and resume, held instances and paused orchestrations.

use crate::HttpClient;
use crate::transport::{encoded, of_instance};
use crate::wire::{HeldPage, Hold, OrchestrationChanged, PausedOrchestrations, Queues};
use outlast::ClientError;
use outlast::providers::{HeldCounts, HeldInstance, PausedOrchestration};
use serde_json::json;

/// The most held instances of one request.
const MOST: usize = 500;

impl HttpClient {
    /// Pauses an instance; returns whether it was not held before. The server records the name of the token.
    ///
    /// # Errors
    ///
    /// [`ClientError::InstanceNotFound`], or [`ClientError::InvalidInput`] for an ended instance.
    pub async fn pause_instance(&self, instance: &str, reason: &str) -> Result<bool, ClientError> {
        self.act(instance, "/pause", json!({ "reason": reason })).await
    }

    /// Resumes an instance; returns whether it was held.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::pause_instance`].
    pub async fn resume_instance(&self, instance: &str, reason: &str) -> Result<bool, ClientError> {
        self.act(instance, "/resume", json!({ "reason": reason })).await
    }

    /// Pauses an orchestration: no runtime begins a turn of its instances, whether they run now or start later. Returns the number of
    /// running instances that were held now. The server records the name of the token.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] if the store cannot pause orchestrations; [`ClientError::Timeout`] if a turn runs for more than a
    /// minute.
    pub async fn pause_orchestration(&self, orchestration: &str, reason: &str) -> Result<u64, ClientError> {
        self.change_orchestration(orchestration, "pause", reason).await
    }

    /// Resumes an orchestration: its instances that are paused or parked go on, and later starts run. Returns the number of instances
    /// that were resumed. The server records the name of the token.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn resume_orchestration(&self, orchestration: &str, reason: &str) -> Result<u64, ClientError> {
        self.change_orchestration(orchestration, "resume", reason).await
    }

    async fn change_orchestration(
        &self,
        orchestration: &str,
        verb: &str,
        reason: &str,
    ) -> Result<u64, ClientError> {
        let path = format!("/orchestrations/{}/{verb}", encoded(orchestration));
        let answer = self.post::<OrchestrationChanged>("", &path, json!({ "reason": reason }), &[]).await?;
        Ok(answer.value.instances)
    }

    /// The paused orchestrations by ascending name. `None` if the store cannot pause orchestrations.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn paused_orchestrations(&self) -> Result<Option<Vec<PausedOrchestration>>, ClientError> {
        let paused = self.get::<PausedOrchestrations>("", "/orchestrations/paused").await?.value;
        Ok(paused.supported.then(|| paused.items.into_iter().map(PausedOrchestration::from).collect()))
    }

    /// The hold of an instance: kind, actor, time and reason. `None` if the instance is not held.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn held_instance(&self, instance: &str) -> Result<Option<HeldInstance>, ClientError> {
        Ok(self.get::<Hold>(instance, &of_instance(instance, "/hold", "")).await?.value.into_held()?)
    }

    /// Held instances by ascending id, at most `limit` and at most 500, after the given id.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn list_held(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<HeldInstance>, ClientError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let after = after.map(|after| format!("&after={}", encoded(after))).unwrap_or_default();
        let page = self.get::<HeldPage>("", &format!("/held?limit={}{after}", limit.min(MOST))).await?.value;
        let held = page.items.into_iter().filter_map(|hold| hold.into_held().transpose());
        Ok(held.collect::<Result<_, _>>()?)
    }

    /// The numbers of held instances and of their messages, which [`HttpClient::get_queue_depths`] and [`HttpClient::get_gauges`] leave
    /// out. `None` if the store cannot hold instances.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn count_held(&self) -> Result<Option<HeldCounts>, ClientError> {
        let queues = self.get::<Queues>("", "/queues").await?.value;
        let counts = queues.held_instances.zip(queues.held_messages);
        Ok(counts.map(|(instances, messages)| HeldCounts { instances, messages }))
    }
}
