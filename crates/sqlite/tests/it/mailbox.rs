//! A bound on the messages that wait for one instance.

use outlast_memory::MemoryProvider;
use outlast_provider::{Provider, WorkItem};
use outlast_sqlite::SqliteProvider;

fn message(instance: &str, nth: usize) -> WorkItem {
    WorkItem::QueueMessage { instance: instance.into(), name: "q".into(), data: nth.to_string() }
}

async fn stores() -> Vec<Box<dyn Provider>> {
    vec![Box::new(MemoryProvider::new()), Box::new(SqliteProvider::new_in_memory().await.unwrap())]
}

#[tokio::test]
async fn l3_a_full_mailbox_refuses_messages_until_a_turn_is_committed() {
    for store in stores().await {
        let start = WorkItem::StartOrchestration {
            instance: "i".into(),
            orchestration: "O".into(),
            input: String::new(),
            version: None,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: 1,
        };
        // The bound counts the start, because the start waits too.
        assert!(store.enqueue_within(start, 4).await.unwrap(), "{}", store.name());
        for nth in 0..3 {
            assert!(store.enqueue_within(message("i", nth), 4).await.unwrap(), "{} {nth}", store.name());
        }
        assert!(!store.enqueue_within(message("i", 3), 4).await.unwrap(), "{}", store.name());
        assert!(!store.enqueue_within(message("i", 3), 0).await.unwrap(), "{}", store.name());
        assert!(store.enqueue_within(message("i", 3), usize::MAX).await.unwrap(), "{}", store.name());
        assert!(
            store.enqueue_within(message("other", 0), 4).await.unwrap(),
            "the bound counts the messages of one instance"
        );
        let lease = std::time::Duration::from_secs(5);
        let (item, token, _) =
            store.fetch_orchestration_item(lease, std::time::Duration::ZERO, None).await.unwrap().unwrap();
        assert_eq!(item.messages.len(), 5, "{}: refused messages are not stored", store.name());
        assert!(!store.enqueue_within(message("i", 4), 4).await.unwrap(), "leased messages count");
        store
            .ack_orchestration_item(&token, 1, vec![], vec![], vec![], Default::default(), vec![])
            .await
            .unwrap();
        assert!(
            store.enqueue_within(message("i", 4), 4).await.unwrap(),
            "{}: a commit makes room",
            store.name()
        );
    }
}
