//! Watches: futures that resolve when a commit concerns their instance.

use outlast_provider::{InstanceWatch, Interest};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::oneshot;

/// The open watches, by instance and number of the watch.
#[derive(Default)]
pub(crate) struct Watches(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    watching: BTreeMap<(String, u64), Entry>,
    made: u64,
}

struct Entry {
    interest: Interest,
    resolve: oneshot::Sender<()>,
}

impl Watches {
    /// Watches an instance from now on, until the future is dropped.
    pub(crate) fn watch(&self, instance: &str, interest: Interest) -> InstanceWatch {
        let (resolve, resolved) = oneshot::channel();
        let mut table = locked(&self.0);
        table.made += 1;
        let key = (instance.to_string(), table.made);
        table.watching.insert(key.clone(), Entry { interest, resolve });
        let watching = Watching { table: Arc::downgrade(&self.0), key };
        Box::pin(async move {
            let _watching = watching;
            // The caller reads the instance again, also when the store was dropped.
            let _ = resolved.await;
            None
        })
    }

    /// Resolves the watches that a commit concerns; `ended` is true if the commit ended or deleted the instance.
    pub(crate) fn committed(&self, instance: &str, ended: bool) {
        let met: Vec<_> = {
            let mut table = locked(&self.0);
            if table.watching.is_empty() {
                return;
            }
            let of_instance = (instance.to_string(), 0)..=(instance.to_string(), u64::MAX);
            table.watching.extract_if(of_instance, |_, entry| entry.interest.is_met(ended)).collect()
        };
        // Not under the lock, because a woken task may drop its watch at once.
        for (_, entry) in met {
            let _ = entry.resolve.send(());
        }
    }
}

fn locked(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes a watch from the table when the watch is dropped.
struct Watching {
    table: Weak<Mutex<Table>>,
    key: (String, u64),
}

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(table) = self.table.upgrade() {
            locked(&table).watching.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryProvider;
    use outlast_provider::model::{Event, EventKind, WorkItem};
    use outlast_provider::{ExecutionMetadata, Provider, ProviderAdmin};
    use std::task::{Context, Waker};
    use std::time::Duration;

    fn is_resolved(watch: &mut InstanceWatch) -> bool {
        watch.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    fn watch(store: &MemoryProvider, interest: Interest) -> InstanceWatch {
        store.watch_instance("i", interest).unwrap()
    }

    fn event(id: u64) -> Event {
        Event::at(7, id, "i", 1, None, EventKind::OrchestrationCompleted { output: "out".into() })
    }

    /// Commits a turn of "i" with this event and status.
    async fn commit(store: &MemoryProvider, id: u64, status: Option<&str>) {
        let message = WorkItem::ExternalRaised { instance: "i".into(), name: "n".into(), data: "d".into() };
        let start = WorkItem::StartOrchestration {
            instance: "i".into(),
            orchestration: "Orch".into(),
            input: String::new(),
            version: None,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: 1,
        };
        store.enqueue_for_orchestrator(if id == 1 { start } else { message }, None).await.unwrap();
        let fetched = store.fetch_orchestration_item(Duration::MAX, Duration::ZERO, None).await.unwrap();
        let metadata = ExecutionMetadata {
            status: status.map(str::to_string),
            orchestration_name: Some("Orch".into()),
            orchestration_version: Some("1.0.0".into()),
            ..ExecutionMetadata::default()
        };
        let token = fetched.unwrap().1;
        store
            .ack_orchestration_item(&token, 1, vec![event(id)], vec![], vec![], metadata, vec![])
            .await
            .unwrap();
    }

    /// Whether a change resolves a watch for the end, and a watch for any commit.
    async fn answered(store: &MemoryProvider, change: impl Future<Output = ()>) -> [bool; 2] {
        let mut watches = [Interest::Ended, Interest::Any].map(|interest| watch(store, interest));
        let mut other = store.watch_instance("j", Interest::Any).unwrap();
        change.await;
        assert!(!is_resolved(&mut other));
        watches.each_mut().map(is_resolved)
    }

    #[tokio::test]
    async fn commits_and_deletions_resolve_the_watches_of_their_interest() {
        let store = &MemoryProvider::new();
        let (none, any, both) = ([false, false], [false, true], [true, true]);
        assert_eq!(answered(store, commit(store, 1, None)).await, any);
        assert_eq!(answered(store, commit(store, 2, Some("ContinuedAsNew"))).await, any);
        assert_eq!(answered(store, commit(store, 3, Some("Completed"))).await, both);
        assert_eq!(answered(store, commit(store, 4, Some("Failed"))).await, both);
        let append = async { store.append_with_execution("i", 1, vec![event(5)]).await.unwrap() };
        assert_eq!(answered(store, append).await, any);
        let refused = async { assert!(store.append_with_execution("i", 1, vec![event(5)]).await.is_err()) };
        assert_eq!(answered(store, refused).await, none);
        let unknown = ExecutionMetadata { status: Some("Failed".into()), ..ExecutionMetadata::default() };
        let refused = async {
            let ack = store.ack_orchestration_item("no token", 1, vec![], vec![], vec![], unknown, vec![]);
            assert!(ack.await.is_err());
        };
        assert_eq!(answered(store, refused).await, none);
        let delete =
            async { assert_eq!(store.delete_instance("i", true).await.unwrap().instances_deleted, 1) };
        assert_eq!(answered(store, delete).await, both);
        commit(store, 1, Some("Completed")).await;
        let bulk = async {
            assert_eq!(store.delete_instance_bulk(Default::default()).await.unwrap().instances_deleted, 1);
        };
        assert_eq!(answered(store, bulk).await, both);
    }

    #[tokio::test]
    async fn dropped_and_resolved_watches_leave_the_table() {
        let store = MemoryProvider::new();
        let watches = Watches::default();
        let (dropped, mut resolved) = (watches.watch("i", Interest::Any), watches.watch("i", Interest::Any));
        drop(dropped);
        assert_eq!(locked(&watches.0).watching.len(), 1);
        watches.committed("i", false);
        assert_eq!(locked(&watches.0).watching.len(), 0);
        assert!(is_resolved(&mut resolved));
        // A watch resolves when its store is dropped.
        let mut watch = watch(&store, Interest::Ended);
        drop(store);
        assert!(is_resolved(&mut watch));
    }
}
