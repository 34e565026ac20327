//! The client of the API, and the same calls with the client of the store.

use crate::kit::{PATIENCE, Server, operating};
use outlast::client::{Conflict, Reset};
use outlast::providers::InstanceQuery;
use outlast::runtime::observer::StartNote;
use outlast::{ClientError, EventKind, OrchestrationStatus, PruneOptions};
use std::time::Duration;

pub(crate) async fn life_of_an_order(server: &Server) {
    let client = server.client().with_reason("test");
    client.start_orchestration_typed("a/1", "order", "card 4711").await.unwrap();
    let paid = client.wait_for_kv_value("a/1", "paid", PATIENCE).await.unwrap();
    assert_eq!(Some(paid), server.store.get_kv_value("a/1", "paid").await.unwrap());
    assert_eq!(
        client.get_kv_value("a/1", "paid").await.unwrap(),
        server.store.get_kv_value("a/1", "paid").await.unwrap()
    );
    assert_eq!(
        client.get_orchestration_status("a/1").await.unwrap(),
        server.store.get_orchestration_status("a/1").await.unwrap()
    );
    assert!(client.why("a/1").await.unwrap().contains("approval"));
    assert!(matches!(client.wait_for_orchestration("a/1", Duration::ZERO).await, Err(ClientError::Timeout)));
    assert!(client.pause_instance("a/1", "look first").await.unwrap());
    assert!(!client.pause_instance("a/1", "look first").await.unwrap());
    assert!(client.resume_instance("a/1", "seen").await.unwrap());
    client.raise_event("a/1", "approval", "yes").await.unwrap();
    let ended: Result<String, String> = client.wait_for_orchestration_typed("a/1", PATIENCE).await.unwrap();
    assert_eq!(ended.unwrap(), "paid by card 4711, yes");
    assert_eq!(client.get_instance_info("a/1").await.unwrap().status, "Completed");
    let page = client
        .list_instances_page(InstanceQuery { limit: Some(10), ..InstanceQuery::default() })
        .await
        .unwrap();
    assert_eq!(page.instances[0].instance_id, "a/1");
    assert_eq!(client.list_executions("a/1").await.unwrap(), [1]);
    assert_eq!(client.get_instance_tree("a/1").await.unwrap().all_ids, ["a/1"]);
    assert_eq!(client.get_system_metrics().await.unwrap().completed_instances, 1);
    assert_eq!(client.get_queue_depths().await.unwrap().worker_queue, 0);
    let events = server.store.read_execution_history("a/1", 1).await.unwrap();
    assert_eq!(client.read_execution_history("a/1", 1).await.unwrap(), events);
    assert_eq!(client.history_page("a/1", 1, 1, 2).await.unwrap(), events[1..3]);
    assert_eq!(client.audit_page(None, 10).await.unwrap(), server.store.audit_page(None, 10).await.unwrap());
    let options = PruneOptions { keep_last: Some(1), ..PruneOptions::default() };
    assert_eq!(client.prune_executions("a/1", options).await.unwrap().executions_deleted, 0);
    assert_eq!(client.delete_instance("a/1", false).await.unwrap().instances_deleted, 1);
    assert_eq!(client.get_orchestration_status("a/1").await.unwrap(), OrchestrationStatus::NotFound);
}

#[tokio::test]
async fn client_controls_an_order_on_the_memory_store() {
    let server = Server::start(operating()).await;
    life_of_an_order(&server).await;
    server.stop().await;
}

#[tokio::test]
async fn client_controls_an_order_on_sqlite_under_a_path() {
    let mut options = operating();
    options.base_path = "/a/b".to_string();
    let server = Server::on_sqlite(options).await;
    life_of_an_order(&server).await;
    server.stop().await;
}

#[tokio::test]
async fn errors_are_those_of_the_client_of_a_store() {
    let server = Server::start(operating()).await;
    let client = server.client();
    server.waiting_order("a").await;
    assert!(matches!(
        client.start_orchestration("a", "order", "").await,
        Err(ClientError::InvalidInput { .. })
    ));
    assert!(matches!(
        client.raise_event("missing", "x", "").await,
        Err(ClientError::InstanceNotFound { .. })
    ));
    assert!(matches!(
        client.delete_instance("missing", false).await,
        Err(ClientError::InstanceNotFound { .. })
    ));
    assert!(matches!(
        client.delete_instance("a", false).await,
        Err(ClientError::InstanceStillRunning { .. })
    ));
    client.cancel_instance("a", "enough").await.unwrap();
    let failed = client.wait_for_orchestration("a", PATIENCE).await.unwrap();
    assert_eq!(failed, server.store.get_orchestration_status("a").await.unwrap());
    assert!(matches!(client.cancel_instance("a", "again").await, Err(ClientError::InvalidInput { .. })));
    let address = server.address.clone();
    server.stop().await;
    let gone = outlast_client_http::HttpClient::new(&format!("http://{address}")).unwrap();
    assert!(gone.get_queue_depths().await.is_err());
    assert!(outlast_client_http::HttpClient::new("ftp://x").is_err());
}

#[tokio::test]
async fn resets_and_forks_are_those_of_the_client_of_a_store() {
    let server = Server::on_sqlite(operating()).await;
    resets_and_forks(&server).await;
    server.stop().await;
}

pub(crate) async fn resets_and_forks(server: &Server) {
    let client = server.client().with_reason("test");
    server.waiting_order("a").await;
    let events = server.store.get_orchestration_stats("a").await.unwrap().unwrap().history_event_count;
    let mut cuts = Vec::new();
    for event in 0..=events + 1 {
        let plan = Reset::to_event(event).dry_run();
        match (client.reset_instance("a", &plan).await, server.store.reset_instance("a", &plan).await) {
            (Ok(here), Ok(there)) => {
                assert_eq!(here, there);
                cuts.push(event);
            }
            (Err(ClientError::InvalidInput { .. }), Err(ClientError::InvalidInput { .. })) => {}
            other => panic!("event {event}: {other:?}"),
        }
    }
    let cut = Reset::to_event(*cuts.last().expect("an event to which the order can be reset"));
    let forked = client.fork_instance("a", "b", &cut.clone().because("look at a copy")).await.unwrap();
    assert_eq!(forked.execution_id, 1);
    let taken = client.fork_instance("a", "b", &cut).await;
    assert!(matches!(taken, Err(ClientError::InvalidInput { .. })), "{taken:?}");
    let reset = client.reset_instance("a", &cut.clone().cancel_children()).await.unwrap();
    assert_eq!(reset.execution_id, 2);
    let missing = client.reset_instance("missing", &cut).await;
    assert!(matches!(missing, Err(ClientError::InstanceNotFound { .. })), "{missing:?}");
    let audit = server.store.audit_page(None, 10).await.unwrap().unwrap();
    let records: Vec<_> = audit
        .iter()
        .map(|record| {
            let entry = &record.entry;
            (entry.action.as_str(), entry.actor.as_str(), entry.target.as_str(), entry.reason.as_str())
        })
        .collect();
    let expected =
        [("instance.reset", "local", "a", "test"), ("instance.fork", "local", "a", "look at a copy")];
    assert_eq!(records, expected);
    for id in ["a", "b"] {
        client.cancel_instance(id, "enough").await.unwrap();
        let ended = client.wait_for_orchestration(id, PATIENCE).await.unwrap();
        assert!(matches!(ended, OrchestrationStatus::Failed { .. }), "{id}: {ended:?}");
    }
}

#[tokio::test]
async fn holds_are_those_of_the_client_of_a_store() {
    let server = Server::on_sqlite(operating()).await;
    holds(&server).await;
    server.stop().await;
}

pub(crate) async fn holds(server: &Server) {
    let client = server.client();
    for id in ["a", "b"] {
        server.waiting_order(id).await;
    }
    assert!(client.pause_instance("a", "look first").await.unwrap());
    let held = client.held_instance("a").await.unwrap();
    assert_eq!(held, server.store.held_instance("a").await.unwrap());
    assert_eq!(held.unwrap().hold.reason, "look first");
    assert_eq!(client.held_instance("b").await.unwrap(), None);
    assert_eq!(client.held_instance("missing").await.unwrap(), None);
    assert_eq!(client.pause_orchestration("order", "the warehouse burns").await.unwrap(), 1);
    let paused = client.paused_orchestrations().await.unwrap();
    assert_eq!(paused, server.store.paused_orchestrations().await.unwrap());
    assert_eq!(paused.unwrap()[0].reason, "the warehouse burns");
    let held = client.list_held(None, 10).await.unwrap();
    assert_eq!(held, server.store.list_held(None, 10).await.unwrap());
    assert_eq!(held.iter().map(|held| held.instance_id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(client.list_held(Some("a"), 10).await.unwrap(), held[1..]);
    assert_eq!(client.list_held(None, 1).await.unwrap(), held[..1]);
    assert_eq!(client.count_held().await.unwrap(), server.store.count_held().await.unwrap());
    assert_eq!(client.resume_orchestration("order", "it rains").await.unwrap(), 2);
    assert_eq!(client.paused_orchestrations().await.unwrap(), Some(Vec::new()));
    assert_eq!(client.list_held(None, 10).await.unwrap(), []);
}

#[tokio::test]
async fn reads_are_those_of_the_client_of_a_store() {
    let server = Server::on_sqlite(operating()).await;
    reads(&server).await;
    server.stop().await;
}

pub(crate) async fn reads(server: &Server) {
    let (client, store) = (server.client(), &server.store);
    server.waiting_order("a").await;
    let version = client.wait_for_status_change("a", 0, Duration::from_millis(5), PATIENCE).await.unwrap();
    assert_eq!(version, store.get_orchestration_status("a").await.unwrap());
    let unchanged = client.wait_for_status_change("a", 1, PATIENCE, Duration::from_millis(50)).await;
    assert!(matches!(unchanged, Err(ClientError::Timeout)), "{unchanged:?}");
    client.start_orchestration_versioned_typed("c", "counter", "1.0.0", 7_u64).await.unwrap();
    assert_eq!(client.wait_for_kv_value_typed::<u64>("c", "count", PATIENCE).await.unwrap(), 7);
    assert_eq!(client.get_kv_value_typed::<u64>("c", "count").await.unwrap(), Some(7));
    assert_eq!(client.get_kv_value_typed::<u64>("c", "other").await.unwrap(), None);
    let wrong = client.get_kv_value_typed::<Vec<u64>>("c", "count").await;
    assert!(matches!(wrong, Err(ClientError::InvalidInput { .. })), "{wrong:?}");
    let value = client.wait_for_kv_value_or_end("c", "count", PATIENCE).await.unwrap();
    assert_eq!(value.as_deref(), Some("7"));
    assert_eq!(client.wait_for_kv_value_or_end("c", "other", PATIENCE).await.unwrap(), None);
    let open = client.wait_for_kv_value_or_end("a", "other", Duration::ZERO).await;
    assert!(matches!(open, Err(ClientError::Timeout)), "{open:?}");
    for id in ["a", "c"] {
        let info = client.get_execution_info(id, 1).await.unwrap();
        assert_eq!(format!("{info:?}"), format!("{:?}", store.get_execution_info(id, 1).await.unwrap()));
        let stats = client.get_orchestration_stats(id).await.unwrap();
        assert_eq!(stats, store.get_orchestration_stats(id).await.unwrap());
    }
    let missing = client.get_execution_info("a", 2).await;
    assert!(matches!(missing, Err(ClientError::InstanceNotFound { .. })), "{missing:?}");
    assert_eq!(client.get_orchestration_stats("missing").await.unwrap(), None);
    let late = client.start_request("order").instance("late").delay(Duration::from_secs(3_600));
    assert!(late.send().await.unwrap().is_started());
    let pending = client.pending_work("late", 10).await.unwrap().unwrap();
    let stored = store.pending_work("late", 10).await.unwrap().unwrap();
    assert_eq!((pending.message_count, &pending.messages), (1, &stored.messages));
    assert_eq!(client.get_gauges().await.unwrap(), store.get_gauges().await.unwrap());
    assert_eq!(client.oldest_due().await.unwrap(), None);
    assert_eq!(client.list_all_instances().await.unwrap(), store.list_all_instances().await.unwrap());
    assert_eq!(client.list_instances_by_status("Running").await.unwrap(), ["a"]);
    assert_eq!(client.node_records().await.unwrap(), store.node_records().await.unwrap());
    assert_eq!(client.dead_letter(1).await.unwrap(), None);
}

#[tokio::test]
async fn repeated_start_with_a_key_starts_one_instance() {
    let server = Server::on_sqlite(operating()).await;
    let client = server.client();
    let first = client.start_idempotent("order", "cart-17", "\"card\"").await.unwrap();
    let second = client.start_idempotent("order", "cart-17", "\"card\"").await.unwrap();
    assert_eq!(first, ("order:cart-17".to_string(), true));
    assert_eq!(second, ("order:cart-17".to_string(), false));
    server.stop().await;
}

/// The trace context that the first events of an instance keep.
async fn caller_of(server: &Server, id: &str) -> Option<String> {
    server.store.wait_for_kv_value(id, "paid", PATIENCE).await.unwrap();
    let events = server.store.read_execution_history(id, 1).await.unwrap();
    events.iter().find_map(StartNote::of).and_then(|note| match note {
        StartNote::Caller { traceparent, .. } => Some(traceparent),
        StartNote::Starter { .. } => None,
    })
}

#[tokio::test]
async fn start_keeps_the_trace_context_of_its_caller() {
    let server = Server::on_sqlite(operating()).await;
    let client = server.client();
    let caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let start = |id: &str| client.start_request("order").instance(id).input_typed("card");
    assert!(start("traced").traceparent(caller).send().await.unwrap().is_started());
    assert_eq!(caller_of(&server, "traced").await.as_deref(), Some(caller));
    assert!(start("malformed").traceparent("00-0-0-0").send().await.unwrap().is_started());
    assert_eq!(caller_of(&server, "malformed").await, None);
    for (id, header, kept) in [("posted", caller, Some(caller)), ("ignored", "no context", None)] {
        let body =
            format!(r#"{{"orchestration":"order","instance":"{id}","input":"\"card\"","reason":"test"}}"#);
        let headers = [("content-type", "application/json"), ("traceparent", header)];
        assert_eq!(server.send("POST", "/api/v1/instances", &headers, &body).await.status, 201);
        assert_eq!(caller_of(&server, id).await.as_deref(), kept, "{id}");
    }
    server.stop().await;
}

#[tokio::test]
async fn receipts_of_starts_are_those_of_the_client_of_a_store() {
    let server = Server::on_sqlite(operating()).await;
    receipts_of_starts(&server).await;
    server.stop().await;
}

pub(crate) async fn receipts_of_starts(server: &Server) {
    let client = server.client();
    let first = client.start_request("order").instance("a").input_typed("card").send().await.unwrap();
    assert_eq!(first.started(), Ok("a".to_string()));
    client.wait_for_kv_value("a", "paid", PATIENCE).await.unwrap();
    let again = client.start_request("order").instance("a").send().await.unwrap();
    assert_eq!(again, server.store.start_request("order").instance("a").send().await.unwrap());
    assert!(!again.is_started());
    let existing = client.start_request("order").instance("a").if_exists(Conflict::UseExisting);
    let existing =
        existing.with_event("notes", "gift").with_event_typed("notes", "blue").send().await.unwrap();
    assert_eq!(existing, again);
    client.raise_event("a", "approval", "yes").await.unwrap();
    client.wait_for_orchestration("a", PATIENCE).await.unwrap();
    let events = client.read_execution_history("a", 1).await.unwrap();
    let notes: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::QueueEventDelivered { name, data } if name == "notes" => Some(data.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(notes, ["gift", "blue"]);
    let token = client.start_request("order").idempotency_token("cart-1").send().await.unwrap();
    assert_eq!((token.instance.as_str(), token.is_started()), ("order:cart-1", true));
    let delayed =
        client.start_request("order").instance("late").version("1.0.0").delay(Duration::from_secs(3_600));
    assert!(delayed.send().await.unwrap().is_started());
    for refused in
        [client.start_request("order"), client.start_request("order").instance("b").idempotency_token("c")]
    {
        assert!(matches!(refused.send().await, Err(ClientError::InvalidInput { .. })));
    }
}

#[tokio::test]
async fn reads_of_missing_instances_are_empty() {
    let server = Server::on_sqlite(operating()).await;
    let client = server.client();
    assert_eq!(client.read_execution_history("missing", 1).await.unwrap(), []);
    assert_eq!(client.history_page("missing", 1, 0, 10).await.unwrap(), []);
    assert_eq!(client.list_dead_letters(10).await.unwrap(), []);
    assert_eq!(client.audit_page(None, 10).await.unwrap(), Some(Vec::new()));
    assert!(matches!(
        client.wait_for_kv_value("missing", "k", Duration::ZERO).await,
        Err(ClientError::Timeout)
    ));
    server.stop().await;
}
