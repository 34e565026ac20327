//! Every limit through every entry point: at the limit, one above, and a thousand times above. A value above the limit is rejected
//! with a message that names the limit, the instance and what to do, and nothing is stored.

mod carried;
mod client;
mod code;
mod history;
mod mailbox;
mod table;

use crate::support::{ALL, Cluster, Kind, Node, activities, orchestrations};
use outlast::runtime::limits::Limits;
use outlast::{AppErrorKind, ErrorDetails, OrchestrationStatus};
use table::{Row, Way, rows};

/// Small limits, so that a thousand times a limit is a small amount of data.
fn small() -> Limits {
    Limits {
        payload_bytes: 2_000,
        name_bytes: 100,
        custom_status_bytes: 50,
        tag_bytes: 20,
        kv_value_bytes: 60,
        kv_keys: 7,
        decisions_per_turn: 30,
        history_events: 200,
        history_events_warning: 100,
        mailbox_messages: 5,
        carry_forward_events: 3,
        ..Limits::default()
    }
}

/// The sizes to test, and whether each is within the limit.
fn sizes(limit: usize) -> [(usize, bool); 3] {
    [(limit, true), (limit + 1, false), (limit * 1_000, false)]
}

/// Checks a message: it names the limit, the instance and what to do, and does not quote the whole rejected value.
#[track_caller]
fn check_message(words: &str, field: &str, instance: &str) {
    assert!(words.contains(field), "{instance}: does not name the limit: {words:.1000}");
    assert!(
        words.contains(&format!("'{instance:.60}")),
        "{instance}: does not name the instance: {words:.1000}"
    );
    assert!(words.contains("raise "), "{instance}: does not say what to do: {words:.1000}");
    assert!(words.len() < 1_000, "{instance}: {} bytes", words.len());
}

/// The failure message of an instance that exceeded a limit.
#[track_caller]
fn broken(status: OrchestrationStatus) -> String {
    match status {
        OrchestrationStatus::Failed {
            details:
                ErrorDetails::Application { kind: AppErrorKind::OrchestrationFailed, message, retryable: false },
            ..
        } => message,
        other => panic!("{:.300}", format!("{other:?}")),
    }
}

fn through(way: Way, limits: &Limits) -> impl Iterator<Item = Row> {
    rows(limits).into_iter().filter(move |row| row.way == way)
}

#[tokio::test]
async fn an_orchestration_above_a_limit_fails_with_the_name_of_the_limit() {
    for kind in ALL {
        let (cluster, limits) = (Cluster::real(kind).await, small());
        cluster.start(&code::node(&limits)).await;
        for Row { what, limit, field, .. } in through(Way::Orchestration, &limits) {
            for (size, fits) in sizes(limit) {
                let instance = format!("{what}-{size}");
                cluster.begin(&instance, "Attempt", &format!("{what} {size}")).await;
                match (cluster.ended(&instance).await, fits) {
                    (OrchestrationStatus::Completed { .. }, true) => {}
                    (OrchestrationStatus::Failed { details, .. }, true) if what == "error" => {
                        assert_eq!(details.display_message().len(), size);
                    }
                    (failed, false) => check_message(&broken(failed), field, &instance),
                    (other, true) => panic!("{kind:?}, {instance}: {:.300}", format!("{other:?}")),
                }
            }
        }
        cluster.end().await;
    }
}

/// C6: the parent of an instance that exceeds a limit gets its failure.
#[tokio::test]
async fn c6_a_child_above_a_limit_fails_for_its_parent_too() {
    let (cluster, limits) = (Cluster::real(Kind::Memory).await, small());
    cluster.start(&code::node(&limits)).await;
    for Row { what, limit, field, .. } in through(Way::Orchestration, &limits) {
        let instance = format!("parent-{what}");
        let error = cluster.run(&instance, "Parent", &format!("{what} {}", limit + 1)).await;
        check_message(&error, field, &format!("{instance}::sub::"));
    }
    cluster.end().await;
}

#[tokio::test]
async fn the_client_rejects_values_above_a_limit() {
    for kind in ALL {
        let (cluster, limits) = (Cluster::real(kind).await, small());
        let client = cluster.client.clone().with_limits(limits.clone());
        let depth = async || client.get_queue_depths().await.unwrap().orchestrator_queue;
        for Row { what, limit, field, .. } in through(Way::Client, &limits) {
            for (size, fits) in sizes(limit) {
                let instance = format!("{what}-{size}");
                let before = depth().await;
                match (client::send(&client, what, &instance, size).await, fits) {
                    (Ok(()), true) => assert!(depth().await > before, "{kind:?}, {instance}: not sent"),
                    (Err(error), false) => {
                        check_message(&client::words(error), field, &instance);
                        assert_eq!(depth().await, before, "{kind:?}, {instance}: a message was sent");
                    }
                    (sent, _) => panic!("{kind:?}, {instance}: {sent:?}"),
                }
            }
        }
        cluster.end().await;
    }
}

/// The result of an activity, and the messages of its client, which has the limits of its runtime.
#[tokio::test]
async fn an_activity_above_a_limit_fails_with_the_name_of_the_limit() {
    for kind in ALL {
        let (cluster, limits) = (Cluster::real(kind).await, small());
        cluster.start(&code::node(&limits)).await;
        for Row { what, limit, field, .. } in through(Way::Activity, &limits) {
            for (size, fits) in sizes(limit) {
                let instance = format!("by-{what}-{size}");
                let output = cluster.run(&instance, "Calls", &format!("{what} {size}")).await;
                match fits {
                    true => assert_eq!(output, "fits", "{kind:?}: {instance}"),
                    // The message names its own instance, or the instance that it sent to.
                    false if ["result", "failure"].contains(&what) => {
                        check_message(&output, field, &instance);
                    }
                    false => check_message(&output, field, instance.trim_start_matches("by-")),
                }
            }
        }
        cluster.end().await;
    }
}
