//! `docs/observability.md` against what is emitted, both ways.

use super::source::{self, Logged, Shape};
use super::{Row, recorded};
use crate::support::{Fault, Kind, Node, Tap, World, activities, orchestrations};
use metrics_util::MetricKind;
use outlast::{ActivityContext, OrchestrationContext};
use std::collections::{BTreeMap, BTreeSet};

/// The rows of the tables under a heading, cell by cell, without the heads.
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
        // Labels are in front of their values, which are in brackets.
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
fn page_lists_each_metric_with_its_kind_and_labels_and_no_other() {
    agree(&source::metrics(&source::files()), &listed());
}

#[test]
fn page_lists_each_operation_of_a_store_and_no_other() {
    let rows = table("## Operations of a store").into_iter();
    let rows: BTreeMap<String, String> = rows.map(|row| (only(&row[0]), only(&row[1]))).collect();
    agree(&source::operations(&source::files()), &rows);
}

#[test]
fn page_lists_each_span_and_log_target_with_its_fields_and_no_other() {
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

/// Instances that complete, fail, continue as new, have children, and meet a store that fails at times.
async fn a_busy_world() {
    let world = World::paused(Kind::Memory).await;
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
    let tap = Tap::new(|call, nth| match call {
        "ack_orchestration_item" if nth < 2 => Fault::Transient,
        _ => Fault::None,
    });
    let node = Node::new(orchestrations().register("Parent", parent).register("Child", child), work);
    world.start_on(tap.around(world.store()), &node).await;
    for (number, input) in ["", "fails", "again"].into_iter().enumerate() {
        let instance = format!("i-{number}");
        world.begin(&instance, "Parent", input).await;
        world.ended(&instance).await;
    }
    world.client.raise_event("i-0", "late", "").await.unwrap();
    world.end().await;
}

#[test]
fn metrics_of_a_run_are_those_of_the_page_and_retries_of_commits_are_counted() {
    let rows = recorded(a_busy_world());
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
    // The client's: three starts and an event.
    assert_eq!(values("provider.enqueue_orchestrator_duration_ms", &[]).len(), 4);
}
