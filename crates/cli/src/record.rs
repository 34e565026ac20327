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

#[cfg(test)]
mod tests {
    use super::*;
    use outlast::providers::memory::MemoryProvider;
    use outlast::providers::{Provider, ProviderAdmin, forward_provider};
    use std::sync::Arc;

    /// A store that keeps no audit.
    struct Unaudited(MemoryProvider);

    impl Provider for Unaudited {
        forward_provider!(Provider, |this| this.0, except(as_management_capability));

        fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
            Some(self)
        }
    }

    impl ProviderAdmin for Unaudited {
        forward_provider!(ProviderAdmin, |this| this.0, except(append_audit));
    }

    /// A store without management calls, which answers a record with an error.
    struct Unmanaged(MemoryProvider);

    impl Provider for Unmanaged {
        forward_provider!(Provider, |this| this.0, except(as_management_capability));
    }

    async fn recorded(store: impl Provider + 'static) -> Result<(), Failure> {
        let by = By { name: "ada".to_string(), reason: String::new() };
        record(&Client::new(Arc::new(store)), &by, "instance.cancel", "order-1").await
    }

    #[tokio::test]
    async fn change_in_a_store_without_an_audit_succeeds() {
        recorded(Unaudited(MemoryProvider::new())).await.unwrap();
    }

    #[tokio::test]
    async fn failure_of_the_record_says_that_the_change_was_made() {
        let message = recorded(Unmanaged(MemoryProvider::new())).await.unwrap_err().to_string();
        assert!(
            message.starts_with("the change of 'order-1' was made, and the audit has no record"),
            "{message}"
        );
    }

    #[test]
    fn change_whose_record_fails_for_now_does_not_ask_for_a_repetition() {
        let failure = Failure::unavailable("the store is locked").after("the signal was sent");
        assert!(!failure.is_unavailable(), "a repeated signal would be a second message: {failure:?}");
        assert_eq!(failure.to_string(), "the signal was sent: the store is locked");
    }
}
