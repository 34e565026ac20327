//! Nodes: the API, the screen, the client and the metric.

use crate::kit::Server;
use outlast::ProviderAdmin;
use outlast::providers::memory::MemoryProvider;
use outlast::providers::{NodeLease, NodeOrchestration, NodeReport};
use outlast_server::Options;
use std::sync::Arc;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// A server on a store with a live and a lost node.
async fn server_with_nodes() -> Server {
    let store = Arc::new(MemoryProvider::new());
    let mut live = NodeReport::new("a1<b>");
    (live.host, live.pid, live.build) = ("host-1".to_string(), 811, "9f3c".to_string());
    live.orchestrations =
        vec![NodeOrchestration { name: "order".to_string(), versions: vec!["1.0.0".to_string()] }];
    live.leases = vec![NodeLease { instance: "o-1".to_string(), activity: Some((1, 2)) }];
    (live.running_turns.running, live.running_turns.limit) = (2, 16);
    store.announce_node(&live, MINUTE, MINUTE).await.unwrap();
    store.announce_node(&NodeReport::new("a2"), Duration::ZERO, MINUTE).await.unwrap();
    Server::on(store, Options::default(), tempfile::tempdir().unwrap()).await
}

#[tokio::test]
async fn nodes_are_shown_by_api_screen_client_and_metric() {
    let server = server_with_nodes().await;
    let nodes = server.get("/api/v1/nodes").await.json();
    assert_eq!((&nodes["live"], &nodes["lost"], &nodes["supported"]), (&1.into(), &1.into(), &true.into()));
    let live = &nodes["items"][0];
    assert_eq!((&live["id"], &live["state"], &live["pid"]), (&"a1<b>".into(), &"live".into(), &811.into()));
    assert_eq!(live["leases"][0]["activity"], serde_json::json!([1, 2]), "{live}");
    assert_eq!(nodes["items"][1]["state"], "lost");
    let page = server.get("/queues").await.body;
    for part in ["a1&#60;b&#62;", "host-1", "811", "9f3c", "2/16", ">lost</span>", "href=\"/instances/o-1\""]
    {
        assert!(page.contains(part), "{part} in {page}");
    }
    let listed = server.client().list_nodes().await.unwrap().unwrap();
    let expected = server.store.list_nodes().await.unwrap().unwrap();
    assert_eq!(listed.len(), 2);
    for (node, expected) in listed.iter().zip(&expected) {
        assert_eq!((&node.record.report, node.lost_leases), (&expected.record.report, expected.lost_leases));
        assert_eq!(node.record.is_lost(), expected.record.is_lost());
    }
    let metrics = server.get("/metrics").await.body;
    for line in ["outlast_nodes{state=\"live\"} 1\n", "outlast_nodes{state=\"lost\"} 1\n"] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    server.stop().await;
}

#[tokio::test]
async fn store_without_reports_has_an_empty_state() {
    let server = Server::start(Options::default()).await;
    let nodes = server.get("/api/v1/nodes").await.json();
    assert_eq!((nodes["items"].as_array().unwrap().len(), &nodes["supported"]), (0, &true.into()));
    assert!(server.get("/queues").await.body.contains("No node reports to this store"));
    server.stop().await;
}
