//! Changes of many instances.

use crate::kit::{Answer, PATIENCE, Server, operating, token, with_tokens};
use outlast::OrchestrationStatus;
use outlast::client::BulkVerb;
use outlast::providers::memory::MemoryProvider;
use outlast::providers::{
    AuditEntry, InstanceQuery, Provider, ProviderAdmin, ProviderError, forward_provider,
};
use outlast_client_http::{HttpClient, Operation};
use outlast_server::Scope;
use serde_json::{Value, json};
use std::sync::Arc;

const PATH: &str = "/api/v1/operations";

async fn send(server: &Server, body: Value) -> Answer {
    server.post(PATH, &body.to_string()).await
}

fn of_prefix(prefix: &str) -> InstanceQuery {
    InstanceQuery { id_prefix: Some(prefix.to_string()), ..InstanceQuery::default() }
}

/// Reads the operation until it has ended.
async fn ended(client: &HttpClient, id: &str) -> Operation {
    let wait = async {
        loop {
            let operation = client.get_operation(id).await.unwrap();
            if operation.state != "running" {
                return operation;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap()
}

async fn is_running(server: &Server, id: &str) -> bool {
    matches!(server.store.get_orchestration_status(id).await.unwrap(), OrchestrationStatus::Running { .. })
}

#[tokio::test]
async fn operation_changes_exactly_the_instances_of_the_dry_run_and_records_them() {
    let server = Server::on_sqlite(operating()).await;
    changes_of_the_dry_run(&server).await;
    server.stop().await;
}

pub(crate) async fn changes_of_the_dry_run(server: &Server) {
    for id in ["a-1", "a-2", "b-1"] {
        server.waiting_order(id).await;
    }
    let client = server.client();
    let query = of_prefix("a-");
    for (verb, count) in
        [(BulkVerb::Pause, 2), (BulkVerb::Resume, 2), (BulkVerb::Cancel, 2), (BulkVerb::Delete, 2)]
    {
        let preview = client.preview_operation(verb, &query).await.unwrap();
        let mut samples = preview.samples.clone();
        samples.sort();
        assert_eq!((preview.count, samples), (count, vec!["a-1".to_string(), "a-2".to_string()]), "{verb:?}");
        // A later instance does not belong to the set.
        let late = format!("a-late-{}", verb.as_str());
        server.waiting_order(&late).await;
        let started = client.start_operation(verb, &query, &preview, "a test").await.unwrap();
        let done = ended(&client, &started.id).await;
        assert_eq!(
            (done.state.as_str(), done.changed, done.unchanged, done.refused),
            ("done", 2, 0, 0),
            "{done:?}"
        );
        assert!(is_running(server, &late).await);
        server.store.delete_instance(&late, true).await.unwrap();
        if verb == BulkVerb::Cancel {
            for id in ["a-1", "a-2"] {
                let end = server.store.wait_for_orchestration(id, PATIENCE).await.unwrap();
                assert!(matches!(end, OrchestrationStatus::Failed { .. }), "{end:?}");
            }
        }
    }
    let left = server.store.list_all_instances().await.unwrap();
    assert_eq!(left, ["b-1"]);
    let records = server.store.audit_page(None, 100).await.unwrap().unwrap();
    let without: Vec<_> = records.iter().filter(|record| record.entry.request.is_none()).collect();
    assert!(without.is_empty(), "each record has the id of the request: {without:?}");
    let count = |action: &str| {
        let reason = |record: &&outlast::providers::AuditRecord| record.entry.reason == "a test";
        records.iter().filter(|record| record.entry.action == action).filter(reason).count()
    };
    for action in ["instance.pause", "instance.resume", "instance.cancel", "instance.delete"] {
        assert_eq!(count(action), 2, "{action}");
    }
    assert_eq!(count("operation.start"), 4);
    let end = records.iter().find(|record| record.entry.action == "operation.end").unwrap();
    assert_eq!(end.entry.result, "delete done: 2 of 2 changed, 0 unchanged, 0 refused");
    let listed = client.list_operations().await.unwrap();
    let actions: Vec<&str> = listed.iter().map(|operation| operation.action.as_str()).collect();
    assert_eq!(actions, ["delete", "cancel", "resume", "pause"]);
}

#[tokio::test]
async fn changed_set_is_refused_with_both_counts() {
    let server = Server::on_sqlite(operating()).await;
    for id in ["a-1", "a-2", "a-3"] {
        server.waiting_order(id).await;
    }
    let body = json!({ "action": "cancel", "filter": { "status": "running", "prefix": "a-" } });
    let dry = send(&server, merged(&body, json!({ "dry_run": true }))).await;
    assert_eq!(dry.status, 200, "{dry:?}");
    let seen = dry.json();
    assert_eq!((&seen["count"], seen["samples"].as_array().unwrap().len()), (&3.into(), 3));
    // One instance of the set ends.
    server.store.raise_event("a-2", "approval", "yes").await.unwrap();
    server.store.wait_for_orchestration("a-2", PATIENCE).await.unwrap();
    let real = merged(&body, json!({ "mark": seen["mark"], "count": 3, "reason": "a test" }));
    let refused = send(&server, real.clone()).await;
    assert_eq!(refused.problem(), (409, "set_changed".to_string()));
    assert_eq!((&refused.json()["expected"], &refused.json()["matching"]), (&3.into(), &2.into()));
    // The right number with the mark of another set is refused as well.
    let same_count = merged(&real, json!({ "count": 2 }));
    assert_eq!(send(&server, same_count).await.problem(), (409, "set_changed".to_string()));
    assert!(is_running(&server, "a-1").await && is_running(&server, "a-3").await);
    assert!(server.client().list_operations().await.unwrap().is_empty());
    server.stop().await;
}

fn merged(body: &Value, more: Value) -> Value {
    let mut body = body.clone();
    for (field, value) in more.as_object().unwrap() {
        body[field] = value.clone();
    }
    body
}

#[tokio::test]
async fn recreated_instance_is_newer_than_the_mark() {
    let server = Server::on_sqlite(operating()).await;
    server.waiting_order("a-1").await;
    let body = json!({ "action": "cancel", "filter": { "ids": ["a-1", "a-1", "missing"] } });
    let seen = send(&server, merged(&body, json!({ "dry_run": true }))).await.json();
    assert_eq!((&seen["count"], &seen["samples"]), (&1.into(), &json!(["a-1"])));
    server.store.delete_instance("a-1", true).await.unwrap();
    server.waiting_order("a-1").await;
    let real = merged(&body, json!({ "mark": seen["mark"], "count": 1, "reason": "a test" }));
    assert_eq!(send(&server, real).await.problem(), (409, "set_changed".to_string()));
    assert!(is_running(&server, "a-1").await);
    server.stop().await;
}

/// A store whose audit has room for the record of a start and for no more.
struct FullAudit(MemoryProvider);

impl Provider for FullAudit {
    forward_provider!(Provider, |this| this.0, except(as_management_capability));

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }
}

#[async_trait::async_trait]
impl ProviderAdmin for FullAudit {
    forward_provider!(ProviderAdmin, |this| this.0, except(append_audit));

    async fn append_audit(&self, entry: &AuditEntry) -> Result<bool, ProviderError> {
        match entry.action.as_str() {
            "operation.start" => self.0.append_audit(entry).await,
            _ => Err(ProviderError::retryable("append_audit", "the disk is full")),
        }
    }
}

#[tokio::test]
async fn operation_whose_change_is_not_recorded_counts_it_as_changed() {
    let store = Arc::new(FullAudit(MemoryProvider::new()));
    let server = Server::on(store, operating(), tempfile::tempdir().unwrap()).await;
    server.waiting_order("a-1").await;
    let client = server.client();
    let preview = client.preview_operation(BulkVerb::Pause, &of_prefix("a-")).await.unwrap();
    let started =
        client.start_operation(BulkVerb::Pause, &of_prefix("a-"), &preview, "a test").await.unwrap();
    let failed = ended(&client, &started.id).await;
    assert_eq!((failed.state.as_str(), failed.changed, failed.refused), ("failed", 1, 0), "{failed:?}");
    let error = failed.error.unwrap();
    assert!(error.contains("the change of 'a-1' was made") && error.contains("the disk is full"), "{error}");
    assert!(server.store.held_instance("a-1").await.unwrap().is_some());
    server.stop().await;
}

#[tokio::test]
async fn stopped_operation_leaves_the_other_instances_unchanged() {
    let mut options = operating();
    options.operation_rate = 1;
    let server = Server::start(options).await;
    for id in 0..5 {
        server.waiting_order(&format!("a-{id}")).await;
    }
    let client = server.client();
    let preview = client.preview_operation(BulkVerb::Pause, &of_prefix("a-")).await.unwrap();
    let started =
        client.start_operation(BulkVerb::Pause, &of_prefix("a-"), &preview, "a test").await.unwrap();
    assert_eq!((started.state.as_str(), started.matching), ("running", 5));
    client.stop_operation(&started.id, "enough").await.unwrap();
    let stopped = ended(&client, &started.id).await;
    assert_eq!(stopped.state, "stopped");
    assert!(stopped.changed < 5, "{stopped:?}");
    let held = server.store.count_held().await.unwrap().unwrap().instances;
    assert!(held < 5, "{held}");
    let again = client.stop_operation(&started.id, "again").await.unwrap_err();
    assert!(again.to_string().contains("ended"), "{again}");
    server.stop().await;
}

#[tokio::test]
async fn operations_that_run_are_bounded() {
    let mut options = operating();
    options.operation_rate = 1;
    let server = Server::start(options).await;
    for id in 0..3 {
        server.waiting_order(&format!("a-{id}")).await;
    }
    let body = json!({ "action": "pause", "filter": { "prefix": "a-" } });
    let seen = send(&server, merged(&body, json!({ "dry_run": true }))).await.json();
    let real = merged(&body, json!({ "mark": seen["mark"], "count": seen["count"], "reason": "a test" }));
    let mut answers = Vec::new();
    for _ in 0..5 {
        answers.push(send(&server, real.clone()).await.status);
    }
    assert_eq!(answers, [202, 202, 202, 202, 409]);
    server.stop().await;
}

#[tokio::test]
async fn incomplete_operations_are_refused() {
    let server = Server::start(with_tokens(operating())).await;
    let send = async |scope: Scope, body: Value| {
        let bearer = format!("Bearer {}", token(scope));
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        server.send("POST", PATH, &headers, &body.to_string()).await.problem()
    };
    let ids: Vec<String> = (0..501).map(|id| id.to_string()).collect();
    for (body, code) in [
        (json!({ "action": "cancel" }), "invalid_request"),
        (json!({ "action": "shred", "filter": {} }), "invalid_request"),
        (json!({ "action": "cancel", "filter": { "statsu": "running" } }), "invalid_request"),
        (json!({ "action": "cancel", "filter": {} }), "invalid_request"),
        (
            json!({ "action": "cancel", "filter": {}, "mark": "x", "count": 0, "reason": "r" }),
            "invalid_request",
        ),
        (json!({ "action": "cancel", "filter": {}, "mark": "1-x", "count": 0 }), "reason_required"),
        (json!({ "action": "cancel", "filter": { "ids": ids }, "dry_run": true }), "invalid_request"),
    ] {
        assert_eq!(send(Scope::Operate, body.clone()).await, (400, code.to_string()), "{body}");
    }
    let delete = json!({ "action": "delete", "filter": {}, "dry_run": true });
    assert_eq!(send(Scope::Operate, delete).await, (403, "scope_missing".to_string()));
    server.stop().await;
}
