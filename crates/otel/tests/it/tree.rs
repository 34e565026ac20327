//! The shape of traces.

use crate::collector::{Answer, Collector};
use crate::program::{Node, SECRET, exporting, stores};
use crate::shape::{named, only, tree};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use outlast::client::Conflict;
use outlast::runtime::observer::StartNote;
use outlast::{Event, EventKind};
use outlast_otel::Traces;
use std::collections::HashSet;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

#[tokio::test(flavor = "multi_thread")]
async fn all_operations_of_an_instance_and_its_children_are_one_tree_below_the_caller() {
    for store in stores().await {
        let collector = Collector::start(Answer::Accept).await;
        let node = Node::start(&store.provider, exporting(&collector)).await;
        let start = node.client.start_request("Order").instance("order-1").input(SECRET);
        let start = start.traceparent(format!("00-{TRACE}-{CALLER}-01")).with_event("items", SECRET);
        assert!(start.send().await.unwrap().is_started());
        collector.until(|spans| !named(spans, "timer").is_empty()).await;
        node.client.raise_event("order-1", "approval", SECRET).await.unwrap();
        node.ended("order-1").await;
        node.end().await;
        let spans = collector.spans();
        let expected = [
            "start Order",
            "  orchestration Order",
            "    activity Flaky",
            "    activity Flaky",
            "    activity Work",
            "    activity Work",
            "    activity Work",
            "    orchestration Ship",
            "      orchestration Pack",
            "        activity Work",
            "        orchestration.started",
            "      orchestration.started",
            "    orchestration.started",
            "    timer",
            "    wait approval",
            "    wait items",
        ];
        assert_eq!(tree(&spans), expected);
        let start = only(&spans, "start Order");
        assert_eq!(
            (start.trace.as_str(), start.parent.as_str(), start.kind),
            (TRACE, CALLER, SpanKind::Producer)
        );
        let order = only(&spans, "orchestration Order");
        assert!(start.start_ns > 0 && start.start_ns <= order.end_ns && order.start_ns < order.end_ns);
        let timer = only(&spans, "timer");
        assert!(timer.end_ns - timer.start_ns >= 20_000_000, "{timer:?}");
        let flaky = named(&spans, "activity Flaky");
        let attempts: HashSet<_> =
            flaky.iter().map(|span| (span.attribute("outlast.attempt"), span.is_error)).collect();
        assert_eq!(attempts, HashSet::from([("1".to_string(), true), ("2".to_string(), false)]));
        assert!(flaky.iter().all(|span| span.kind == SpanKind::Consumer));
        for span in &spans {
            assert!(!span.attribute("outlast.instance.id").is_empty(), "{span:?}");
            assert_eq!(span.attribute("outlast.execution.id"), "1", "{span:?}");
            assert!(!span.attribute("outlast.orchestration.name").is_empty(), "{span:?}");
        }
        assert!(!collector.received(SECRET), "a payload reached the collector");
        assert!(collector.services().iter().all(|name| name == "tests") && !collector.services().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_an_error_without_its_text() {
    for store in stores().await {
        let collector = Collector::start(Answer::Accept).await;
        let node = Node::start(&store.provider, exporting(&collector)).await;
        node.client.start_orchestration("f", "Fails", "").await.unwrap();
        node.ended("f").await;
        node.end().await;
        let spans = collector.spans();
        let expected = ["orchestration Fails", "  activity Fail", "  orchestration.started"];
        assert_eq!(tree(&spans), expected, "without a caller the orchestration is the root");
        for name in ["orchestration Fails", "activity Fail"] {
            let span = only(&spans, name);
            let ended = (span.is_error, span.attribute("outlast.outcome"), span.attribute("error.type"));
            assert_eq!(ended, (true, "failed".to_string(), "app_error".to_string()));
        }
        assert!(!only(&spans, "orchestration.started").is_error);
        assert!(!collector.received(SECRET));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_execution_has_a_trace_with_a_link_to_the_execution_before() {
    for store in stores().await {
        let collector = Collector::start(Answer::Accept).await;
        let node = Node::start(&store.provider, exporting(&collector)).await;
        let start =
            node.client.start_request("Counts").instance("c").traceparent(format!("00-{TRACE}-{CALLER}-01"));
        start.send().await.unwrap().started().unwrap();
        node.ended("c").await;
        // A continued instance is a status of its own until its last execution.
        let spans = collector.until(|spans| named(spans, "orchestration Counts").len() == 3).await;
        let mut executions = named(&spans, "orchestration Counts");
        executions.sort_by_key(|span| span.attribute("outlast.execution.id"));
        let traces: HashSet<_> = executions.iter().map(|span| &span.trace).collect();
        assert_eq!((traces.len(), executions[0].trace.as_str()), (3, TRACE));
        assert!(executions[0].links.is_empty());
        for pair in executions.windows(2) {
            assert_eq!(pair[1].links, [(pair[0].trace.clone(), pair[0].id.clone())]);
            assert_eq!(pair[1].parent, "");
        }
        let outcomes: Vec<_> = executions.iter().map(|span| span.attribute("outlast.outcome")).collect();
        assert_eq!(outcomes, ["continued_as_new", "continued_as_new", "completed"]);
        // The note of the start does not travel to the next execution.
        let history = node.client.read_execution_history("c", 2).await.unwrap();
        assert!(history.iter().all(|event| StartNote::of(event).is_none()), "{history:?}");
        node.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_detached_instance_has_a_trace_with_a_link_to_its_start() {
    for store in stores().await {
        let collector = Collector::start(Answer::Accept).await;
        let node = Node::start(&store.provider, exporting(&collector)).await;
        node.client.start_orchestration("s", "Starts", "").await.unwrap();
        node.ended("s").await;
        node.ended("detached").await;
        node.end().await;
        let spans = collector.spans();
        let (start, pack) = (only(&spans, "start Pack"), only(&spans, "orchestration Pack"));
        assert_eq!(
            (start.kind, start.parent.as_str()),
            (SpanKind::Producer, only(&spans, "orchestration Starts").id.as_str())
        );
        assert_eq!(start.attribute("outlast.started.instance.id"), "detached");
        assert_eq!(pack.links, [(start.trace.clone(), start.id.clone())]);
        assert_ne!(pack.trace, start.trace);
        assert_eq!(pack.parent, "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_of_an_existing_instance_sends_its_messages_and_no_note() {
    for store in stores().await {
        let collector = Collector::start(Answer::Accept).await;
        let node = Node::start(&store.provider, exporting(&collector)).await;
        node.client.start_orchestration("s", "Steps", "").await.unwrap();
        collector.until(|spans| !named(spans, "orchestration.started").is_empty()).await;
        let start = node.client.start_request("Steps").instance("s").if_exists(Conflict::UseExisting);
        let start = start.traceparent(format!("00-{TRACE}-{CALLER}-01")).with_event("items", "apple");
        assert!(!start.send().await.unwrap().is_started());
        let arrived = |event: &Event| matches!(&event.kind, EventKind::QueueEventDelivered { name, .. } if name == "items");
        let history = loop {
            let history = node.client.read_execution_history("s", 1).await.unwrap();
            if history.iter().any(arrived) {
                break history;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(history.iter().filter(|event| arrived(event)).count(), 1);
        assert!(history.iter().all(|event| StartNote::of(event).is_none()), "{history:?}");
        node.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_that_are_not_sampled_are_not_exported() {
    let [store, _] = stores().await;
    let collector = Collector::start(Answer::Accept).await;
    let traces = Traces::otlp(&collector.url).unwrap().sample_ratio(0.0).start();
    let node = Node::start(&store.provider, traces).await;
    let flagged = |flags: &str| format!("00-{TRACE}-{CALLER}-{flags}");
    let start = |id, flags: &str| node.client.start_request("Fails").instance(id).traceparent(flagged(flags));
    start("no", "00").send().await.unwrap().started().unwrap();
    start("yes", "01").send().await.unwrap().started().unwrap();
    node.client.start_orchestration("ratio", "Fails", "").await.unwrap();
    for instance in ["no", "yes", "ratio"] {
        node.ended(instance).await;
    }
    node.end().await;
    let spans = collector.spans();
    assert_eq!(spans.len(), 4, "{spans:#?}");
    assert!(spans.iter().all(|span| span.attribute("outlast.instance.id") == "yes"), "{spans:#?}");
}
