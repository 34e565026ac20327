//! The items of the queues, and the activities by tag.

use crate::HttpClient;
use crate::transport::encoded;
use crate::wire::{QueueMessages, Queues};
use outlast::ClientError;
use outlast::providers::{DeadLetterQueue, QueuePage, TagDepth};

/// The most items of a page.
const MOST: usize = 500;

impl HttpClient {
    /// A page of the messages or the activities of all instances that are in a queue, without payloads, at most `limit` and at most 500,
    /// after the position [`QueuePage::next`] of the page before. `None` if the store does not support it.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] for a position that the store does not know; an error of the server or of the connection.
    pub async fn queue_page(
        &self,
        queue: DeadLetterQueue,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Option<QueuePage>, ClientError> {
        let queue = match queue {
            DeadLetterQueue::Orchestrator => "turns",
            DeadLetterQueue::Worker => "activities",
        };
        let after = after.map(|after| format!("&after={}", encoded(after))).unwrap_or_default();
        let path = format!("/queues/{queue}/messages?limit={}{after}", limit.clamp(1, MOST));
        match self.get::<QueueMessages>("", &path).await {
            Ok(answer) => Ok(Some(answer.value.into())),
            Err(ClientError::ManagementNotAvailable) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The number of activities in the queue for each tag, by ascending tag, at most `limit` and at most 200 tags; activities without a
    /// tag come first. `None` if the store does not support it.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn tag_depths(&self, limit: usize) -> Result<Option<Vec<TagDepth>>, ClientError> {
        let tags = self.get::<Queues>("", "/queues").await?.value.tags;
        Ok(tags.map(|tags| tags.into_iter().take(limit).map(TagDepth::from).collect()))
    }
}
