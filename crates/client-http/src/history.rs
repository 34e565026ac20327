//! Histories and the audit.

use crate::HttpClient;
use crate::transport::of_instance;
use crate::wire::{AuditPage, StoredEvents};
use outlast::providers::AuditRecord;
use outlast::{ClientError, Event};

/// The most items of a page of the server.
const MOST: usize = 500;

impl HttpClient {
    /// Events of one execution; empty if it does not exist. The events are read page by page, and all of them are held in memory.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection. The token needs the scope `payloads`.
    pub async fn read_execution_history(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ClientError> {
        let mut events = Vec::new();
        let mut after = Some(0);
        while let Some(position) = after {
            let Some(page) = self.stored_events(instance, execution_id, position, MOST).await? else { break };
            events.extend(page.items);
            after = page.next;
        }
        Ok(events)
    }

    /// Events of one execution with ids above `after`, ascending, at most `limit` and at most 500; empty if there are none. A page with
    /// large payloads has fewer events, at least one.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::read_execution_history`].
    pub async fn history_page(
        &self,
        instance: &str,
        execution_id: u64,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, ClientError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let page = self.stored_events(instance, execution_id, after, limit.min(MOST)).await?;
        Ok(page.map(|page| page.items).unwrap_or_default())
    }

    /// One page; `None` if the instance or the execution does not exist.
    async fn stored_events(
        &self,
        instance: &str,
        execution_id: u64,
        after: u64,
        limit: usize,
    ) -> Result<Option<StoredEvents>, ClientError> {
        let rest = format!("/executions/{execution_id}/history");
        let path = of_instance(instance, &rest, &format!("after={after}&limit={limit}"));
        match self.get::<StoredEvents>(instance, &path).await {
            Ok(answer) => Ok(Some(answer.value)),
            Err(ClientError::InstanceNotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Records of the audit, newest first, at most `limit` and at most 500, with ids below `before` if it is given. `None` if the store
    /// keeps no audit.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn audit_page(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<AuditRecord>>, ClientError> {
        let before = before.map(|before| format!("&before={before}")).unwrap_or_default();
        let path = format!("/audit?limit={}{before}", limit.clamp(1, MOST));
        let page = self.get::<AuditPage>("", &path).await?.value;
        Ok(page.supported.then(|| page.items.into_iter().take(limit).map(AuditRecord::from).collect()))
    }
}
