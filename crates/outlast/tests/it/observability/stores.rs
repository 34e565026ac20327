//! The classes of errors that another thread than the caller's returns.

use super::recorded_in_real_time;
use crate::support::{Cluster, Kind};
use outlast::providers::instrumented::InstrumentedProvider;
use outlast::providers::{Provider, TagFilter, WorkItem};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_rejection_by_the_sqlite_writer_thread_is_not_an_infrastructure_error() {
    let rows = recorded_in_real_time(async {
        let cluster = Cluster::real(Kind::SqliteFile).await;
        let store = InstrumentedProvider::new(cluster.store(), Some(Arc::default()));
        // The message quotes the token, which contains a word by which the contract classifies errors.
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
