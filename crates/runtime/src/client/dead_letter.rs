//! Dead letters: pages of dead letters, requeue and drop.

use super::{Client, ClientError};
use outlast_model::{AuditEntry, DeadLetterRecord};
use outlast_provider::DeadLetterOutcome;

const REQUEUE: &str = "dead-letter.requeue";
const DROP: &str = "dead-letter.drop";

/// Dead letters. Every method returns [`ClientError::ManagementNotAvailable`] if the store has no management interface.
impl Client {
    /// Dead letters with their numbers, newest first, at most `limit`, with numbers below `before` if it is given. `None` if the dead
    /// letters of the store have no numbers.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn dead_letter_page(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<DeadLetterRecord>>, ClientError> {
        Ok(self.admin()?.dead_letter_page(before, limit).await?)
    }

    /// The dead letter with this number; `None` if no dead letter has the number.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn dead_letter(&self, id: u64) -> Result<Option<DeadLetterRecord>, ClientError> {
        let page = self.dead_letter_page(Some(id.saturating_add(1)), 1).await?;
        Ok(page.unwrap_or_default().into_iter().find(|record| record.id == id))
    }

    /// Puts a dead letter back into its queue, behind the waiting items, with no deliveries counted. Requeue a dead letter after
    /// its cause is removed: the instance exists now, or this build decodes the item. The audit records the change in the same
    /// step, with the id of the request if there is one.
    ///
    /// Cancellation safety: when the future is dropped, the dead letter is requeued and recorded, or neither.
    pub async fn requeue_dead_letter(
        &self,
        id: u64,
        actor: &str,
        reason: &str,
        request: Option<&str>,
    ) -> Result<DeadLetterOutcome, ClientError> {
        match self.change_of(REQUEUE, id, actor, reason, request).await? {
            Some(entry) => Ok(self.admin()?.requeue_dead_letter(id, &entry).await?),
            None => self.absent().await,
        }
    }

    /// Deletes a dead letter. The audit records the change in the same step, with the id of the request if there is one.
    ///
    /// Cancellation safety: when the future is dropped, the dead letter is deleted and recorded, or neither.
    pub async fn drop_dead_letter(
        &self,
        id: u64,
        actor: &str,
        reason: &str,
        request: Option<&str>,
    ) -> Result<DeadLetterOutcome, ClientError> {
        match self.change_of(DROP, id, actor, reason, request).await? {
            Some(entry) => Ok(self.admin()?.drop_dead_letter(id, &entry).await?),
            None => self.absent().await,
        }
    }

    /// The record of a change; `None` if there is no such dead letter.
    async fn change_of(
        &self,
        action: &str,
        id: u64,
        actor: &str,
        reason: &str,
        request: Option<&str>,
    ) -> Result<Option<AuditEntry>, ClientError> {
        let Some(record) = self.dead_letter(id).await? else { return Ok(None) };
        let of = record.letter.instance_id.map(|instance| format!(" of '{instance}'")).unwrap_or_default();
        Ok(Some(AuditEntry {
            actor: actor.to_string(),
            action: action.to_string(),
            target: format!("dead letter {id}{of}"),
            reason: reason.to_string(),
            request: self.request_id(request),
            result: "done".to_string(),
        }))
    }

    /// The outcome for a dead letter that was not found: `Unsupported` if the dead letters of the store have no numbers.
    async fn absent(&self) -> Result<DeadLetterOutcome, ClientError> {
        match self.dead_letter_page(None, 1).await? {
            Some(_) => Ok(DeadLetterOutcome::NotFound),
            None => Ok(DeadLetterOutcome::Unsupported),
        }
    }
}
