//! Classes of errors that come from another thread than the caller's.

use super::recorded_in_real_time;
use crate::support::{Kind, World};
use outlast::providers::instrumented::InstrumentedProvider;
use outlast::providers::{Provider, TagFilter, WorkItem};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn refusal_of_the_writer_thread_of_sqlite_is_counted_as_refused_and_not_as_infrastructure() {
    let rows = recorded_in_real_time(async {
        let world = World::real(Kind::SqliteFile).await;
        let store = InstrumentedProvider::new(world.store(), Some(Arc::default()));
        // The text of the refusal quotes the token, and with it a word that the contract classifies by.
        let activity = WorkItem::ActivityExecute {
            instance: "deadlock timeout connection".into(),
            execution_id: 1,
            id: 1,
            name: "A".into(),
            input: String::new(),
            session_id: None,
            tag: None,
        };
        store.enqueue_for_worker(activity).await.unwrap();
        let lease = Duration::from_secs(60);
        let fetched = store.fetch_work_item(lease, Duration::ZERO, None, &TagFilter::Any).await.unwrap();
        let (_, token, _) = fetched.unwrap();
        store.ack_work_item(&token, None).await.unwrap();
        store.ack_work_item(&token, None).await.unwrap_err();
    });
    let errors: Vec<_> = rows.iter().filter(|row| row.name == "duroxide_provider_errors_total").collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].labels["error_type"], "refused");
    assert!(!rows.iter().any(|row| row.name == "provider.infrastructure_errors"), "{rows:?}");
}
