//! Compares `docs/observability.md` with the emitted metrics, spans and log targets, in both directions.

use super::source::{self, Logged, Shape};
use super::{Row, recorded};
use crate::support::{CallHook, Cluster, Fault, Kind, Node, activities, orchestrations};
use metrics_util::MetricKind;
use outlast::{ActivityContext, OrchestrationContext};
use std::collections::{BTreeMap, BTreeSet};

/// The cells of the tables under a heading, row by row, without the table heads.
fn table(heading: &str) -> Vec<Vec<String>> {
    let page = std::fs::read_to_string(source::workspace().join("docs/observability.md")).unwrap();
    let section = page.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no '{heading}'")).1;
    let level = format!("\n{} ", heading.split(' ').next().unwrap());
    let section = section.split(&level).next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let rows =
        rows.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_string()).collect());
    rows.collect()
}

/// The words in backticks of a cell.
fn quoted(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_string).collect()
}

fn only(cell: &str) -> String {
    quoted(cell).into_iter().next().unwrap()
}

/// The metrics that the page lists.
fn listed() -> BTreeMap<String, Shape> {
    let rows = table("## Metrics").into_iter().map(|row| {
        // Each label is followed by its values in brackets.
        let labels = row[2].split('(').map(|part| part.rsplit(')').next().unwrap_or(""));
        let labels = labels.flat_map(quoted).collect();
        (only(&row[0]), Shape { kind: row[1].clone(), labels })
    });
    rows.collect()
}

#[track_caller]
fn agree<T: std::fmt::Debug + PartialEq>(emitted: &BTreeMap<String, T>, listed: &BTreeMap<String, T>) {
    let missing: Vec<_> = emitted.iter().filter(|(name, _)| !listed.contains_key(*name)).collect();
    assert!(missing.is_empty(), "emitted, but not in docs/observability.md: {missing:#?}");
    let stale: Vec<_> = listed.keys().filter(|name| !emitted.contains_key(*name)).collect();
    assert!(stale.is_empty(), "in docs/observability.md, but emitted by nothing: {stale:#?}");
    for (name, is) in emitted {
        assert_eq!(&listed[name], is, "`{name}`: left is docs/observability.md, right is the code");
    }
}

#[test]
fn the_page_lists_exactly_the_emitted_metrics_with_kind_and_labels() {
    agree(&source::metrics(&source::files()), &listed());
}

#[test]
fn the_page_lists_exactly_the_operations_of_a_store() {
    let rows = table("## Operations of a store").into_iter();
    let rows: BTreeMap<String, String> = rows.map(|row| (only(&row[0]), only(&row[1]))).collect();
    agree(&source::operations(&source::files()), &rows);
}

#[test]
fn the_page_lists_exactly_the_spans_and_log_targets_with_their_fields() {
    let (targets, spans) = source::records(&source::files());
    let rows = table("## Log records").into_iter().map(|row| {
        let logged =
            Logged { levels: row[1].split(", ").map(str::to_string).collect(), fields: quoted(&row[2]) };
        (only(&row[0]), logged)
    });
    agree(&targets, &rows.collect());
    let rows = table("## Spans").into_iter().map(|row| {
        let key = format!("{} {}", only(&row[1]), only(&row[0]));
        (key, Logged { levels: ["debug".to_string()].into(), fields: quoted(&row[2]) })
    });
    agree(&spans, &rows.collect());
}

/// Runs instances that complete, fail, continue as new and have children, on a store that returns some errors.
async fn a_busy_cluster() {
    let cluster = Cluster::paused(Kind::Memory).await;
    let parent = |ctx: OrchestrationContext, input: String| async move {
        match input.as_str() {
            "fails" => Err("not today".to_string()),
            "again" => ctx.continue_as_new("").await,
            _ => {
                ctx.schedule_activity("Fails", "").await.unwrap_err();
                ctx.schedule_sub_orchestration("Child", "").await
            }
        }
    };
    let child =
        |ctx: OrchestrationContext, _: String| async move { ctx.schedule_activity("Works", "").await };
    let work = activities()
        .register("Works", |_: ActivityContext, _: String| async move { Ok(String::new()) })
        .register("Fails", |_: ActivityContext, _: String| async move { Err("no".to_string()) });
    let hook = CallHook::new(|call, nth| match call {
        "ack_orchestration_item" if nth < 2 => Fault::Transient,
        _ => Fault::None,
    });
    let node = Node::new(orchestrations().register("Parent", parent).register("Child", child), work);
    cluster.start_on(hook.around(cluster.store()), &node).await;
    for (number, input) in ["", "fails", "again"].into_iter().enumerate() {
        let instance = format!("i-{number}");
        cluster.begin(&instance, "Parent", input).await;
        cluster.ended(&instance).await;
    }
    cluster.client.raise_event("i-0", "late", "").await.unwrap();
    cluster.end().await;
}

#[test]
fn metrics_of_a_run_are_on_the_page_and_commit_retries_are_counted() {
    let rows = recorded(a_busy_cluster());
    let listed = listed();
    for Row { kind, name, labels, .. } in &rows {
        let shape = listed.get(name).unwrap_or_else(|| panic!("`{name}` is not on the page"));
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        assert_eq!(shape.kind, kind, "{name}");
        let unknown: Vec<_> = labels.keys().filter(|label| !shape.labels.contains(*label)).collect();
        assert!(unknown.is_empty(), "{name} has labels that the page does not list: {unknown:?}");
    }
    let values = |name: &str, labels: &[(&str, &str)]| -> Vec<f64> {
        rows.iter().filter(|row| row.is(name, labels)).flat_map(|row| row.values.clone()).collect()
    };
    assert_eq!(values("provider.ack_orchestration_retries", &[]), [2.0]);
    let failed = [("operation", "ack_orch"), ("error_type", "unknown")];
    assert_eq!(values("provider.infrastructure_errors", &failed), [2.0]);
    for name in ["fetch_orchestration_item", "ack_orchestration_item", "ack_worker", "dequeue_worker"] {
        let name = format!("provider.{name}_duration_ms");
        assert!(!values(&name, &[]).is_empty(), "{name}");
    }
    // The calls of the client: three starts and an event.
    assert_eq!(values("provider.enqueue_orchestrator_duration_ms", &[]).len(), 4);
}
