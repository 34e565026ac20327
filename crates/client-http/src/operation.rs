//! Operations: changes of many instances, which the server makes one after the other.

use crate::HttpClient;
use crate::transport::encoded;
use crate::wire::Operations;
use outlast::ClientError;
use outlast::client::BulkVerb;
use outlast::providers::InstanceQuery;
use serde::Deserialize;
use serde_json::{Value, json};

/// The instances that an operation would change.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct OperationPreview {
    /// Their number.
    pub count: u64,
    /// The first ten ids.
    pub samples: Vec<String>,
    /// Identifies the selected instances, for [`HttpClient::start_operation`].
    pub mark: String,
}

/// A change of many instances.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Operation {
    /// Its id.
    pub id: String,
    /// The change: the word of a [`BulkVerb`].
    pub action: String,
    /// `running`, `done`, `stopped` or `failed`.
    pub state: String,
    /// The instances that matched.
    pub matching: u64,
    /// The instances that were changed.
    pub changed: u64,
    /// The instances that had ended, were held or released, or were gone before.
    pub unchanged: u64,
    /// The instances that refused the change.
    pub refused: u64,
    /// The error that ended the operation.
    pub error: Option<String>,
}

impl HttpClient {
    /// The instances that match and that the verb is for. Nothing is changed. Limit and position of the query have no effect.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn preview_operation(
        &self,
        verb: BulkVerb,
        query: &InstanceQuery,
    ) -> Result<OperationPreview, ClientError> {
        let body = json!({ "action": verb.as_str(), "filter": filter(query), "dry_run": true });
        Ok(self.post("", "/operations", body, &[]).await?.value)
    }

    /// Changes the instances of a preview: the same verb and query. The server changes them one after the other, at a bounded rate, and
    /// reads each instance again first. The server keeps operations in memory: its stop ends them.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] if another set of instances matches now; then nothing is changed.
    pub async fn start_operation(
        &self,
        verb: BulkVerb,
        query: &InstanceQuery,
        preview: &OperationPreview,
        reason: &str,
    ) -> Result<Operation, ClientError> {
        let body = json!({
            "action": verb.as_str(),
            "filter": filter(query),
            "mark": preview.mark,
            "count": preview.count,
            "reason": reason,
        });
        Ok(self.post("", "/operations", body, &[]).await?.value)
    }

    /// The progress of an operation.
    ///
    /// # Errors
    ///
    /// An error that is not retryable if the server does not know the operation.
    pub async fn get_operation(&self, id: &str) -> Result<Operation, ClientError> {
        Ok(self.get("", &format!("/operations/{}", encoded(id))).await?.value)
    }

    /// The newest operations of the server, newest first.
    ///
    /// # Errors
    ///
    /// An error of the server or of the connection.
    pub async fn list_operations(&self) -> Result<Vec<Operation>, ClientError> {
        Ok(self.get::<Operations>("", "/operations").await?.value.items)
    }

    /// Ends an operation after the instances that are being changed.
    ///
    /// # Errors
    ///
    /// [`ClientError::InvalidInput`] if it has ended.
    pub async fn stop_operation(&self, id: &str, reason: &str) -> Result<Operation, ClientError> {
        let path = format!("/operations/{}/stop", encoded(id));
        Ok(self.post("", &path, json!({ "reason": reason }), &[]).await?.value)
    }
}

fn filter(query: &InstanceQuery) -> Value {
    json!({
        "status": query.status,
        "name": query.orchestration_name,
        "prefix": query.id_prefix,
        "parent": query.parent_instance_id,
        "created_from_ms": query.created_from,
        "created_before_ms": query.created_before,
    })
}
