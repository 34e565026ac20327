//! The records of the command in the audit of a store.

use crate::failure::Failure;
use outlast::client::Client;
use outlast::providers::AuditEntry;

/// The person who makes a change, and the reason, for the audit.
pub(crate) struct By {
    pub(crate) name: String,
    pub(crate) reason: String,
}

/// Records a change that was made. A store without an audit keeps no record.
///
/// # Errors
///
/// If the store does not answer: the message says that the change was made.
pub(crate) async fn record(client: &Client, by: &By, action: &str, target: &str) -> Result<(), Failure> {
    let entry = AuditEntry {
        actor: by.name.clone(),
        action: action.to_string(),
        target: target.to_string(),
        reason: by.reason.clone(),
        request: None,
        result: "done".to_string(),
    };
    match client.append_audit(&entry).await {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::from(error)
            .after(&format!("the change of '{target}' was made, and the audit has no record of it"))),
    }
}
