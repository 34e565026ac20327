//! Collectors that do not take spans: work goes on, and drops are counted.

use crate::collector::{Answer, Collector};
use crate::program::{Node, WAIT, stores};
use outlast::runtime::OrchestrationStatus;
use outlast_otel::{FlushError, Traces};
use std::time::Duration;
use tokio::net::TcpSocket;

/// Runs 20 instances to their ends.
async fn work(node: &Node) {
    for number in 0..20 {
        node.client.start_orchestration(format!("p-{number}"), "Pack", "").await.unwrap();
    }
    for number in 0..20 {
        let status = node.ended(&format!("p-{number}")).await;
        assert!(matches!(status, OrchestrationStatus::Completed { .. }), "{status:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_collector_that_is_down_work_goes_on_and_spans_are_counted_as_dropped() {
    let [store, _] = stores().await;
    // The port is taken, and nothing listens.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let traces = Traces::otlp(&format!("http://{}", socket.local_addr().unwrap()))
        .unwrap()
        .delay(Duration::from_millis(1))
        .start();
    let node = Node::start(&store.provider, traces.clone()).await;
    work(&node).await;
    node.runtime.shutdown(None).await;
    traces.shutdown(WAIT).await.unwrap();
    // Each instance has a start, an activity and an end.
    assert_eq!((traces.exported(), traces.dropped()), (0, 60));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_refuses_spans_drops_them() {
    let [store, _] = stores().await;
    let collector = Collector::start(Answer::Refuse).await;
    let traces = Traces::otlp(&collector.url).unwrap().delay(Duration::from_millis(1)).start();
    let node = Node::start(&store.provider, traces.clone()).await;
    work(&node).await;
    node.runtime.shutdown(None).await;
    traces.shutdown(WAIT).await.unwrap();
    assert_eq!((traces.exported(), traces.dropped()), (0, 60));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_hangs_blocks_neither_work_nor_shutdown() {
    let [store, _] = stores().await;
    let collector = Collector::start(Answer::Hang).await;
    let traces = Traces::otlp(&collector.url).unwrap().delay(Duration::ZERO).queue(4).start();
    let node = Node::start(&store.provider, traces.clone()).await;
    work(&node).await;
    assert!(traces.dropped() > 0, "the queue holds four groups of spans");
    node.runtime.shutdown(None).await;
    let late = traces.shutdown(Duration::from_millis(50)).await;
    assert_eq!(late.map_err(|error| error.is_stopped), Err(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flush_exports_at_once_and_a_shutdown_ends_the_exporter() {
    let [store, _] = stores().await;
    let collector = Collector::start(Answer::Accept).await;
    let traces = Traces::otlp(&collector.url).unwrap().delay(Duration::from_secs(3_600)).start();
    let node = Node::start(&store.provider, traces.clone()).await;
    work(&node).await;
    node.runtime.shutdown(None).await;
    assert_eq!(collector.spans().len(), 0, "spans wait for others");
    traces.flush(WAIT).await.unwrap();
    assert_eq!((collector.spans().len(), traces.exported(), traces.dropped()), (60, 60, 0));
    traces.shutdown(WAIT).await.unwrap();
    let again = traces.shutdown(WAIT).await;
    assert!(matches!(again, Err(FlushError { is_stopped: true, .. })), "{again:?}");
}
