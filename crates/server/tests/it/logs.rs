//! The log record of an answer that is the server's failure.

use crate::kit::{Server, token, with_tokens};
use outlast::providers::memory::MemoryProvider;
use outlast::providers::{
    InstancePage, InstanceQuery, Provider, ProviderAdmin, ProviderError, forward_provider,
};
use outlast_server::{Options, Scope};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// A store whose lists fail.
struct Failing(MemoryProvider);

impl Provider for Failing {
    forward_provider!(Provider, |this| this.0, except(as_management_capability));

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }
}

#[async_trait::async_trait]
impl ProviderAdmin for Failing {
    forward_provider!(ProviderAdmin, |this| this.0, except(query_instances));

    async fn query_instances(&self, query: &InstanceQuery) -> Result<InstancePage, ProviderError> {
        match query.orchestration_name.as_deref() {
            Some("busy") => Err(ProviderError::retryable("query_instances", "the file is locked")),
            _ => Err(ProviderError::permanent("query_instances", "the disk is gone")),
        }
    }
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Written {
    /// The records of the server so far, and none after them.
    fn records(&self) -> Vec<serde_json::Value> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        let text = String::from_utf8(bytes).unwrap();
        let records = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        records.filter(|record| record["target"] == "outlast::server").collect()
    }
}

#[tokio::test]
async fn answer_of_a_failure_is_logged_without_the_texts_of_its_request() {
    // A callsite that a test of another thread reaches first would be disabled without a global subscriber.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry());
    let written = Written::default();
    let writer = written.clone();
    let subscriber = tracing_subscriber::fmt().json().with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let mut options = with_tokens(Options::default());
    options.operate = true;
    let store = Arc::new(Failing(MemoryProvider::new()));
    let server = Server::on(store, options, tempfile::tempdir().unwrap()).await;
    let bearer = format!("Bearer {}", token(Scope::Operate));
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];

    for (path, name, level, status, code, text) in [
        ("/api/v1/instances", "secret-name", "ERROR", 500, "store_error", "the disk is gone"),
        ("/api/v1/instances", "busy", "WARN", 503, "store_unavailable", "the file is locked"),
        ("/instances", "secret-name", "ERROR", 500, "store_error", "the disk is gone"),
    ] {
        let answer = server.send("GET", &format!("{path}?name={name}"), &headers, "").await;
        assert_eq!(answer.status, status, "{answer:?}");
        let records = written.records();
        let [record] = records.as_slice() else { panic!("one record per answer: {records:?}") };
        let fields = &record["fields"];
        assert_eq!((&record["level"], &fields["status"]), (&level.into(), &status.into()), "{record}");
        assert_eq!((&fields["method"], &fields["route"]), (&"GET".into(), &path.into()), "{record}");
        assert_eq!(fields["code"], code, "{record}");
        assert!(fields["error"].as_str().unwrap().contains(text), "{record}");
        let id = fields["request_id"].as_str().unwrap();
        assert!(answer.headers.contains(&format!("x-request-id: {id}")), "{record} of {answer:?}");
        let whole = record.to_string();
        assert!(!whole.contains("secret-name") && !whole.contains(&token(Scope::Operate)), "{record}");
    }
    let body =
        r#"{"action":"pause","filter":{"name":"secret-name"},"dry_run":true,"reason":"secret-reason"}"#;
    assert_eq!(server.send("POST", "/api/v1/operations", &headers, body).await.status, 500);
    let records = written.records();
    assert_eq!((records.len(), &records[0]["fields"]["method"]), (1, &"POST".into()), "{records:?}");
    assert!(!records[0].to_string().contains("secret"), "{records:?}");
    // Answers to requests that are wrong are not the server's failure.
    assert_eq!(server.send("GET", "/api/v1/instances?limit=0", &headers, "").await.status, 400);
    assert_eq!(server.send("GET", "/missing", &headers, "").await.status, 404);
    assert_eq!(server.send("GET", "/api/v1/nodes", &headers, "").await.status, 200);
    assert_eq!(written.records(), [] as [serde_json::Value; 0]);
    server.stop().await;
}

#[tokio::test]
async fn route_of_a_record_has_the_names_of_its_parameters() {
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry());
    let written = Written::default();
    let writer = written.clone();
    let subscriber = tracing_subscriber::fmt().json().with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let mut options = Options::default();
    options.base_path = "/a/b".to_string();
    let server =
        Server::on(Arc::new(Unlisted(MemoryProvider::new())), options, tempfile::tempdir().unwrap()).await;
    let answer = server.get("/api/v1/queues/turns/messages").await;
    assert_eq!(answer.status, 501, "{answer:?}");
    let records = written.records();
    let fields = &records[0]["fields"];
    assert_eq!(
        (&fields["route"], &fields["code"]),
        (&"/a/b/api/v1/queues/{queue}/messages".into(), &"unsupported".into()),
        "{records:?}"
    );
    server.stop().await;
}

/// A store that does not list the items of its queues.
struct Unlisted(MemoryProvider);

impl Provider for Unlisted {
    forward_provider!(Provider, |this| this.0, except(as_management_capability));

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }
}

impl ProviderAdmin for Unlisted {
    forward_provider!(ProviderAdmin, |this| this.0, except(queue_page, tag_depths));
}

/// The client of a store without such a list says so, and the screen still shows the depths of the queues.
#[tokio::test]
async fn store_without_a_list_of_its_queues_is_shown_without_it() {
    let store = Arc::new(Unlisted(MemoryProvider::new()));
    let server = Server::on(store, Options::default(), tempfile::tempdir().unwrap()).await;
    let queue = outlast::providers::DeadLetterQueue::Worker;
    assert_eq!(server.client().queue_page(queue, None, 1).await.unwrap(), None);
    assert_eq!(server.client().tag_depths(1).await.unwrap(), None);
    assert!(server.get("/queues").await.body.contains("due now"));
    server.stop().await;
}
