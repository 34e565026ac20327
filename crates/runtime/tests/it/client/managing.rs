//! Management calls of a client.

use super::stores::Plain;
use super::*;
use outlast_provider::{InstanceFilter, InstanceQuery, PruneOptions};
use std::io::Write;
use std::sync::Mutex;

#[tokio::test]
async fn a_store_without_management_returns_management_not_available() {
    let client = Client::new(Arc::new(Plain::new()));
    assert!(!client.has_management_capability() && memory().1.has_management_capability());
    let filter = InstanceFilter::default;
    let results = [
        client.list_all_instances().await.map(drop),
        client.list_instances_by_status("Running").await.map(drop),
        client.list_instances_page(InstanceQuery::default()).await.map(drop),
        client.list_dead_letters(1).await.map(drop),
        client.dead_letter_page(None, 1).await.map(drop),
        client.requeue_dead_letter(1, "a", "r", None).await.map(drop),
        client.drop_dead_letter(1, "a", "r", None).await.map(drop),
        client.pause_instance("i", "a", "r").await.map(drop),
        client.resume_instance("i", "a", "r").await.map(drop),
        client.pause_orchestration("O", "a", "r").await.map(drop),
        client.resume_orchestration("O", "a", "r").await.map(drop),
        client.held_instance("i").await.map(drop),
        client.list_held(None, 1).await.map(drop),
        client.count_held().await.map(drop),
        client.audit_page(None, 1).await.map(drop),
        client.node_records().await.map(drop),
        client.list_nodes().await.map(drop),
        client.get_instance_info("i").await.map(drop),
        client.get_execution_info("i", 1).await.map(drop),
        client.list_executions("i").await.map(drop),
        client.read_execution_history("i", 1).await.map(drop),
        client.history_page("i", 1, 0, 1).await.map(drop),
        client.get_system_metrics().await.map(drop),
        client.get_queue_depths().await.map(drop),
        client.get_gauges().await.map(drop),
        client.get_instance_tree("i").await.map(drop),
        client.delete_instance("i", false).await.map(drop),
        client.delete_instance_bulk(filter()).await.map(drop),
        client.prune_executions("i", PruneOptions::default()).await.map(drop),
        client.prune_executions_bulk(filter(), PruneOptions::default()).await.map(drop),
    ];
    for result in results {
        assert!(matches!(result, Err(ClientError::ManagementNotAvailable)));
    }
    assert_eq!(client.get_orchestration_stats("i").await.unwrap(), None);
}

/// A store with "done" (two executions), "running", and its child.
async fn three_instances() -> (Arc<MemoryProvider>, Client) {
    let (store, client) = memory();
    let go_on = EventKind::OrchestrationContinuedAsNew { input: "next".into() };
    turn(&*store, "done", 1, 1, vec![started(), go_on]).await;
    turn(&*store, "done", 2, 2, vec![started(), sets("k", "v"), completed("out")]).await;
    turn(&*store, "running", 1, 1, vec![started()]).await;
    client.start_orchestration("child", "Order", "{}").await.unwrap();
    let (_, token) = fetch(&*store).await;
    let child = ExecutionMetadata { parent_instance_id: Some("running".into()), ..metadata(&[started()]) };
    let event = Event::at(7, 1, "child", 1, None, started());
    store.ack_orchestration_item(&token, 1, vec![event], vec![], vec![], child, vec![]).await.unwrap();
    (store, client)
}

#[tokio::test]
async fn instances_and_executions_are_listed_and_read() {
    let (store, client) = three_instances().await;
    let mut all = client.list_all_instances().await.unwrap();
    all.sort();
    assert_eq!(all, ["child", "done", "running"]);
    assert_eq!(client.list_instances_by_status("Completed").await.unwrap(), ["done"]);
    let info = client.get_instance_info("done").await.unwrap();
    assert_eq!(
        (info.status.as_str(), info.output.as_deref(), info.current_execution_id),
        ("Completed", Some("out"), 2)
    );
    assert_eq!(client.list_executions("done").await.unwrap(), [1, 2]);
    assert_eq!(client.list_executions("missing").await.unwrap(), [0; 0]);
    let execution = client.get_execution_info("done", 1).await.unwrap();
    assert_eq!((execution.status.as_str(), execution.output.as_deref()), ("ContinuedAsNew", Some("next")));
    assert_eq!(client.read_execution_history("done", 2).await.unwrap().len(), 3);
    assert!(client.read_execution_history("missing", 1).await.unwrap().is_empty());
    assert_eq!(client.get_system_metrics().await.unwrap().total_executions, 4);
    client.raise_event("running", "n", "d").await.unwrap();
    assert_eq!(client.get_queue_depths().await.unwrap().orchestrator_queue, 1);
    assert_eq!(client.get_instance_tree("running").await.unwrap().all_ids, ["running", "child"]);
    assert_eq!(client.get_instance_tree("missing").await.unwrap().all_ids, ["missing"]);
    let stats = client.get_orchestration_stats("done").await.unwrap().unwrap();
    assert_eq!((stats.history_event_count, stats.kv_user_key_count), (3, 1));
    store.corrupt_messages("running");
    assert!(is_idle(&*store).await);
    let letters = client.list_dead_letters(10).await.unwrap();
    assert_eq!((letters.len(), letters[0].instance_id.as_deref()), (1, Some("running")));
}

#[tokio::test]
async fn instances_are_listed_page_by_page() {
    let (_, client) = three_instances().await;
    let mut query = InstanceQuery { limit: Some(2), ..InstanceQuery::default() };
    let first = client.list_instances_page(query.clone()).await.unwrap();
    query.after = first.next.clone();
    let second = client.list_instances_page(query.clone()).await.unwrap();
    assert_eq!((first.instances.len(), second.instances.len(), second.next), (2, 1, None));
    query = InstanceQuery { parent_instance_id: Some("running".into()), ..InstanceQuery::default() };
    let children = client.list_instances_page(query).await.unwrap().instances;
    assert_eq!(children.iter().map(|info| info.instance_id.as_str()).collect::<Vec<_>>(), ["child"]);
}

#[tokio::test]
async fn a_missing_instance_is_reported_as_not_found() {
    let (_, client) = memory();
    let errors = [
        client.get_instance_info("missing").await.map(drop).unwrap_err(),
        client.get_execution_info("missing", 1).await.map(drop).unwrap_err(),
        client.prune_executions("missing", PruneOptions::default()).await.map(drop).unwrap_err(),
    ];
    for error in errors {
        assert!(
            matches!(error, ClientError::Provider(_)) && error.to_string().contains("not found"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_rejected_deletion_returns_its_reason() {
    let (_, client) = three_instances().await;
    let refused = async |instance: &str, force| client.delete_instance(instance, force).await.unwrap_err();
    assert!(
        matches!(refused("missing", true).await, ClientError::InstanceNotFound { instance_id } if instance_id == "missing")
    );
    assert!(
        matches!(refused("running", false).await, ClientError::InstanceStillRunning { instance_id } if instance_id == "running")
    );
    for force in [false, true] {
        assert!(
            matches!(refused("child", force).await, ClientError::CannotDeleteSubOrchestration { instance_id } if instance_id == "child")
        );
    }
    assert_eq!(client.delete_instance("running", true).await.unwrap().instances_deleted, 2);
}

/// Captures log output.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn lines(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        let written = String::from_utf8(bytes).unwrap();
        assert!(!written.contains("secret"), "{written}");
        // Without the log lines of store operations.
        let lines = written.lines().filter(|line| !line.contains("duroxide::providers"));
        lines.map(str::to_string).collect()
    }
}

#[tokio::test]
async fn each_deletion_and_pruning_is_logged_once() {
    // A global subscriber that enables every callsite. Without one, tracing disables a callsite for all threads if the first thread
    // that reaches it has no subscriber.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry());
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .without_time()
        .with_ansi(false)
        .with_max_level(tracing::Level::TRACE)
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let (_, client) = three_instances().await;
    client.raise_event("done", "n", "secret").await.unwrap();
    assert_eq!(log.lines(), [""; 0]);

    client.prune_executions("done", PruneOptions::default()).await.unwrap();
    client.prune_executions_bulk(InstanceFilter::default(), PruneOptions::default()).await.unwrap();
    client.delete_instance_bulk(InstanceFilter::default()).await.unwrap();
    client.delete_instance("running", false).await.unwrap_err();
    client.delete_instance("running", true).await.unwrap();
    let expected = [
        " INFO duroxide::client: Pruned executions instance_id=\"done\" executions_deleted=1 events_deleted=2",
        " INFO duroxide::client: Pruned executions in bulk instances_processed=3 executions_deleted=0 events_deleted=0",
        " INFO duroxide::client: Deleted instances in bulk instances_deleted=1 executions_deleted=1 events_deleted=3 \
         queue_messages_deleted=1",
        " INFO duroxide::client: Deleted instance instance_id=\"running\" force=true instances_deleted=2 \
         executions_deleted=2 events_deleted=2 queue_messages_deleted=0",
    ];
    assert_eq!(log.lines(), expected);
}
