//! Every limit through every way in: at it, one above, and a thousand times above. What is above is refused where it
//! enters, by words that name the limit, the instance and what to do, and leaves nothing behind.

mod carried;
mod client;
mod code;
mod history;
mod mailbox;
mod table;

use crate::support::{ALL, Kind, Node, World, activities, orchestrations};
use outlast::runtime::limits::Limits;
use outlast::{AppErrorKind, ErrorDetails, OrchestrationStatus};
use table::{Row, Way, rows};

/// Small, so that a thousand times as much is little.
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

/// How much, and whether that is within the limit.
fn sizes(limit: usize) -> [(usize, bool); 3] {
    [(limit, true), (limit + 1, false), (limit * 1_000, false)]
}

/// What a refusal says: which limit, whose, and what to do about it; not the whole of what was refused.
#[track_caller]
fn judge(words: &str, field: &str, instance: &str) {
    assert!(words.contains(field), "{instance}: not which limit: {words:.1000}");
    assert!(words.contains(&format!("'{instance:.60}")), "{instance}: not which instance: {words:.1000}");
    assert!(words.contains("raise "), "{instance}: not what to do: {words:.1000}");
    assert!(words.len() < 1_000, "{instance}: {} bytes", words.len());
}

/// The words of an instance that broke a limit.
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
async fn an_orchestration_above_a_limit_fails_and_says_which() {
    for kind in ALL {
        let (world, limits) = (World::real(kind).await, small());
        world.start(&code::node(&limits)).await;
        for Row { what, limit, field, .. } in through(Way::Orchestration, &limits) {
            for (size, fits) in sizes(limit) {
                let instance = format!("{what}-{size}");
                world.begin(&instance, "Attempt", &format!("{what} {size}")).await;
                match (world.ended(&instance).await, fits) {
                    (OrchestrationStatus::Completed { .. }, true) => {}
                    (OrchestrationStatus::Failed { details, .. }, true) if what == "error" => {
                        assert_eq!(details.display_message().len(), size);
                    }
                    (failed, false) => judge(&broken(failed), field, &instance),
                    (other, true) => panic!("{kind:?}, {instance}: {:.300}", format!("{other:?}")),
                }
            }
        }
        world.end().await;
    }
}

/// C6: the parent of an instance that breaks a limit is told.
#[tokio::test]
async fn c6_a_child_above_a_limit_fails_for_its_parent_too() {
    let (world, limits) = (World::real(Kind::Memory).await, small());
    world.start(&code::node(&limits)).await;
    for Row { what, limit, field, .. } in through(Way::Orchestration, &limits) {
        let instance = format!("parent-{what}");
        let error = world.run(&instance, "Parent", &format!("{what} {}", limit + 1)).await;
        judge(&error, field, &format!("{instance}::sub::"));
    }
    world.end().await;
}

#[tokio::test]
async fn the_client_refuses_what_is_above_a_limit() {
    for kind in ALL {
        let (world, limits) = (World::real(kind).await, small());
        let client = world.client.clone().with_limits(limits.clone());
        let depth = async || client.get_queue_depths().await.unwrap().orchestrator_queue;
        for Row { what, limit, field, .. } in through(Way::Client, &limits) {
            for (size, fits) in sizes(limit) {
                let instance = format!("{what}-{size}");
                let before = depth().await;
                match (client::send(&client, what, &instance, size).await, fits) {
                    (Ok(()), true) => assert!(depth().await > before, "{kind:?}, {instance}: not sent"),
                    (Err(error), false) => {
                        judge(&client::words(error), field, &instance);
                        assert_eq!(depth().await, before, "{kind:?}, {instance}: something was sent");
                    }
                    (sent, _) => panic!("{kind:?}, {instance}: {sent:?}"),
                }
            }
        }
        world.end().await;
    }
}

/// What an activity gives back, and what it sends with its own client, which has the limits of its runtime.
#[tokio::test]
async fn an_activity_above_a_limit_is_told_and_its_caller_too() {
    for kind in ALL {
        let (world, limits) = (World::real(kind).await, small());
        world.start(&code::node(&limits)).await;
        for Row { what, limit, field, .. } in through(Way::Activity, &limits) {
            for (size, fits) in sizes(limit) {
                let instance = format!("by-{what}-{size}");
                let output = world.run(&instance, "Calls", &format!("{what} {size}")).await;
                match fits {
                    true => assert_eq!(output, "fits", "{kind:?}: {instance}"),
                    // About its own instance, or about the one that it sent to.
                    false if ["result", "failure"].contains(&what) => {
                        judge(&output, field, &instance);
                    }
                    false => judge(&output, field, instance.trim_start_matches("by-")),
                }
            }
        }
        world.end().await;
    }
}
