//! Dead letters: pages of them, requeue and drop.

use crate::HttpClient;
use crate::transport::encoded;
use crate::wire::{DeadLetters, Letter, Settled};
use hyper::Method;
use outlast::ClientError;
use outlast::providers::{DeadLetter, DeadLetterRecord};
use serde_json::json;

/// The most dead letters of one request.
const MOST: usize = 500;

impl HttpClient {
    /// The newest dead letters, at most `limit` and at most 500.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection. The token needs the scope `payloads`.
    pub async fn list_dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, ClientError> {
        let letters = self.dead_letters(None, limit).await?;
        Ok(letters.into_iter().map(Letter::into_dead_letter).collect())
    }

    /// Dead letters with their numbers, newest first, at most `limit` and at most 500, with numbers below `before` if it is given. `None`
    /// if the dead letters of the store have no numbers.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::list_dead_letters`].
    pub async fn dead_letter_page(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<DeadLetterRecord>>, ClientError> {
        let letters = self.dead_letters(before, limit).await?.into_iter();
        let record =
            |letter: Letter| Some(DeadLetterRecord { id: letter.id?, letter: letter.into_dead_letter() });
        Ok(letters.map(record).collect())
    }

    /// The dead letter with this number; `None` if there is none.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::list_dead_letters`].
    pub async fn dead_letter(&self, id: u64) -> Result<Option<DeadLetterRecord>, ClientError> {
        let page = self.dead_letter_page(Some(id.saturating_add(1)), 1).await?;
        Ok(page.unwrap_or_default().into_iter().find(|record| record.id == id))
    }

    /// Puts a dead letter back into its queue. The server records the name of the token.
    ///
    /// # Errors
    ///
    /// An error that is not retryable if there is no such dead letter, or [`ClientError::InvalidInput`] if the server cannot deliver it
    /// either.
    pub async fn requeue_dead_letter(&self, id: u64, reason: &str) -> Result<(), ClientError> {
        let path = format!("/dead-letters/{id}/requeue");
        self.post::<Settled>("", &path, json!({ "reason": reason }), &[]).await.map(drop)
    }

    /// Deletes a dead letter. The server records the name of the token.
    ///
    /// # Errors
    ///
    /// An error that is not retryable if there is no such dead letter.
    pub async fn drop_dead_letter(&self, id: u64, reason: &str) -> Result<(), ClientError> {
        let path = format!("/dead-letters/{id}?reason={}", encoded(reason));
        self.request::<Settled>(Method::DELETE, "", &path, None, &[]).await.map(drop)
    }

    async fn dead_letters(&self, before: Option<u64>, limit: usize) -> Result<Vec<Letter>, ClientError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let before = before.map(|before| format!("&before={before}")).unwrap_or_default();
        let path = format!("/dead-letters?payloads=true&limit={}{before}", limit.min(MOST));
        Ok(self.get::<DeadLetters>("", &path).await?.value.items)
    }
}
