//! Histories that were recorded once and must replay in every later release, one or more for each set of rules (ruling 13).
//!
//! A file holds the turns of an instance: the input of each turn and its commit. Replayed from the stored prefix, each turn
//! must write the same again. `OUTLAST_FREEZE=1` writes the files that are missing; a file that exists is never written.

use crate::kit::*;
use outlast_engine::{Either2, OrchestrationContext};
use outlast_model::{Event, WorkItem};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Serialize, Deserialize)]
struct Frozen {
    /// Why it is kept.
    about: String,
    stamp: String,
    input: String,
    turns: Vec<Turn>,
}

#[derive(Serialize, Deserialize)]
struct Turn {
    now_ms: u64,
    messages: Vec<WorkItem>,
    events: Vec<Event>,
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../testdata/histories/{name}.json"))
}

type Answer = Result<String, String>;

/// Makes every durable call once.
async fn everything(ctx: OrchestrationContext, input: String) -> Answer {
    ctx.set_custom_status("begins");
    ctx.set_kv_value("key", &input);
    let id = ctx.new_guid().await?;
    let now = ctx.utc_now().await?;
    ctx.schedule_orchestration("Detached", "detached-1", "x");
    let (activity, child) = ctx
        .join2(
            ctx.schedule_activity_on_session("Activity", "in", "session").with_tag("gpu"),
            ctx.schedule_sub_orchestration("Child", "in"),
        )
        .await;
    let policy = outlast_model::RetryPolicy::new(2).with_timeout(Duration::from_secs(60));
    let retried = ctx.schedule_activity_with_retry("Flaky", "in", policy).await;
    ctx.schedule_timer(Duration::from_secs(5)).await;
    let event = ctx.schedule_wait("event").await;
    let message = ctx.dequeue_event("queue").await;
    ctx.clear_kv_value("key");
    ctx.set_kv_value("kept", &message);
    ctx.clear_all_kv_values();
    ctx.reset_custom_status();
    let seen = format!("{activity:?} {child:?} {retried:?} {event} {message} {} {now:?}", id.len());
    ctx.schedule_activity("Last", seen).await
}

/// Losers of every kind, by a timeout.
async fn losers(ctx: OrchestrationContext, _: String) -> Answer {
    for _ in 0..2 {
        let work = async {
            let all = (
                ctx.schedule_activity("A", ""),
                ctx.schedule_sub_orchestration("C", ""),
                ctx.schedule_wait("s"),
                ctx.dequeue_event("q"),
            );
            let (activity, child) = ctx.join2(all.0, all.1).await;
            format!("{activity:?} {child:?} {} {}", all.2.await, all.3.await)
        };
        let timeout = ctx.schedule_timer(Duration::from_secs(1));
        if let Either2::First(seen) = ctx.select2(work, timeout).await {
            return Ok(seen);
        }
    }
    let (event, message) = ctx.join2(ctx.schedule_wait("s"), ctx.dequeue_event("q")).await;
    ctx.schedule_activity("Z", format!("{event} {message}")).await
}

/// Waits that replace each other while events arrive: where the rule sets differ.
async fn replaced(ctx: OrchestrationContext, _: String) -> Answer {
    let mut seen = Vec::new();
    for _ in 0..3 {
        let timeout = ctx.schedule_timer(Duration::from_secs(1));
        match ctx.select2(ctx.schedule_wait("s"), timeout).await {
            Either2::First(data) => seen.push(data),
            Either2::Second(()) => seen.push("-".to_string()),
        }
    }
    let (older, newer) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
    seen.push(newer.await);
    drop(older);
    ctx.schedule_activity("A", seen.join(" ")).await?;
    seen.push(ctx.dequeue_event("q").await);
    ctx.continue_as_new(seen.join(" ")).await
}

fn stamp(rules: &str) -> String {
    match rules {
        "legacy" => "0.1.30".to_string(),
        "buffered" => "0.1.32+buffered".to_string(),
        _ => "0.1.32".to_string(),
    }
}

fn batches_of_everything() -> Vec<Vec<Message>> {
    vec![
        vec![],
        vec![child_done(10, "c"), done(9, "a")],
        vec![fails(13, "flaky")],
        vec![fired(16), enqueue("queue", "m")],
        vec![done(19, "ok")],
        vec![fired(22)],
        vec![raise("event", "e")],
        vec![done(31, "done")],
    ]
}

fn batches_of_losers() -> Vec<Vec<Message>> {
    vec![
        vec![],
        vec![done(3, "a"), raise("s", "1"), enqueue("q", "1")],
        vec![fired(2), child_done(4, "c"), raise("s", "2"), enqueue("q", "2")],
        vec![raise("s", "3"), enqueue("other", "x")],
        vec![fired(14)],
        vec![raise("s", "4"), enqueue("q", "3")],
    ]
}

fn batches_of_replaced() -> Vec<Vec<Message>> {
    vec![
        vec![raise("s", "early")],
        vec![fired(3), raise("s", "1")],
        vec![raise("s", "2")],
        vec![enqueue("q", "a"), enqueue("q", "b"), enqueue("q", "c"), enqueue("r", "unread")],
    ]
}

fn driver(program: &str) -> InstanceDriver {
    match program {
        "everything" => InstanceDriver::new(everything),
        "losers" => InstanceDriver::new(losers),
        "replaced" => InstanceDriver::new(replaced),
        other => panic!("no program {other}"),
    }
}

/// Name of the file: rules and program.
const FROZEN: [(&str, &str, &str); 7] = [
    ("legacy", "everything", "one of each operation"),
    ("immediate", "everything", "one of each operation"),
    ("legacy", "losers", "futures that a timeout drops"),
    ("immediate", "losers", "futures that a timeout drops"),
    ("legacy", "replaced", "events and messages while waits replace each other"),
    ("immediate", "replaced", "events and messages while waits replace each other"),
    ("buffered", "replaced", "events and messages while waits replace each other"),
];

fn record(rules: &str, program: &str, about: &str) -> Frozen {
    let mut driver = driver(program).stamped(&stamp(rules));
    let batches = match program {
        "everything" => batches_of_everything(),
        "losers" => batches_of_losers(),
        _ => batches_of_replaced(),
    };
    let mut turns = Vec::new();
    for batch in batches {
        let messages: Vec<WorkItem> = batch.into_iter().map(|message| message.address("i", 1)).collect();
        let events = driver.give_items(messages.clone()).commit.history_delta;
        turns.push(Turn { now_ms: driver.now_ms, messages, events });
    }
    // Outcomes for all open decisions, until the instance ends.
    for _ in 0..20 {
        let Some(message) = next_answer(&driver) else { break };
        let messages = vec![message.address("i", 1)];
        let events = driver.give_items(messages.clone()).commit.history_delta;
        turns.push(Turn { now_ms: driver.now_ms, messages, events });
    }
    assert!(driver.has_ended(), "{rules} {program}: {}", lines(&driver.history));
    assert!(!lines(&driver.history).contains("nondeterministic"), "{}", lines(&driver.history));
    Frozen { about: about.to_string(), stamp: stamp(rules), input: "in".to_string(), turns }
}

fn lines(history: &[Event]) -> String {
    history.iter().map(event_line).collect::<Vec<_>>().join("\n")
}

/// The oldest operation that has no outcome gets one.
fn next_answer(driver: &InstanceDriver) -> Option<Message> {
    use outlast_model::EventKind::*;
    if driver.has_ended() {
        return None;
    }
    let settled = |id: u64| driver.history.iter().any(|event| event.source_event_id == Some(id));
    let open = driver.history.iter().filter(|event| !settled(event.event_id));
    let answer = |event: &Event| match &event.kind {
        ActivityScheduled { .. } => Some(done(event.event_id, "late")),
        SubOrchestrationScheduled { .. } => Some(child_done(event.event_id, "late")),
        _ => None,
    };
    let timer = |event: &Event| match &event.kind {
        TimerCreated { .. } => Some(fired(event.event_id)),
        _ => None,
    };
    let waits = |event: &Event| match &event.kind {
        QueueSubscribed { name } => Some(enqueue(name, "late")),
        ExternalSubscribed { name } => Some(raise(name, "late")),
        _ => None,
    };
    let mut reversed: Vec<&Event> = open.collect();
    reversed.reverse();
    let find = |answer: &dyn Fn(&Event) -> Option<Message>| reversed.iter().find_map(|event| answer(event));
    find(&answer).or_else(|| find(&timer)).or_else(|| find(&waits))
}

#[test]
fn frozen_histories_replay_for_ever() {
    for (rules, program, about) in FROZEN {
        let name = format!("{rules}-{program}");
        if !path(&name).exists() && std::env::var_os("OUTLAST_FREEZE").is_some() {
            let text = serde_json::to_string_pretty(&record(rules, program, about)).unwrap();
            std::fs::create_dir_all(path(&name).parent().unwrap()).unwrap();
            std::fs::write(path(&name), text + "\n").unwrap();
        }
        let text = std::fs::read_to_string(path(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let frozen: Frozen = serde_json::from_str(&text).unwrap();
        assert_eq!(frozen.stamp, stamp(rules));
        let mut stored: Vec<Event> = Vec::new();
        for turn in frozen.turns {
            let mut driver = driver(program).stamped(&frozen.stamp);
            driver.opening.input.clone_from(&frozen.input);
            driver.history.clone_from(&stored);
            driver.now_ms = turn.now_ms - 10;
            let mut events = driver.give_items(turn.messages).commit.history_delta;
            keep_ids(&mut events, &turn.events);
            assert_eq!(lines(&events), lines(&turn.events), "{name} after\n{}", lines(&stored));
            stored.extend(turn.events);
        }
        assert!(stored.iter().any(Event::is_terminal), "{name}");
    }
}

/// Ids are random; the frozen file keeps them.
fn keep_ids(events: &mut [Event], recorded: &[Event]) {
    let ids: Vec<u64> = recorded
        .iter()
        .filter(|event| matches!(&event.kind, outlast_model::EventKind::ActivityScheduled { name, .. } if name.ends_with("new_guid")))
        .map(|event| event.event_id)
        .collect();
    for (event, recorded) in events.iter_mut().zip(recorded) {
        if event.source_event_id.is_some_and(|source| ids.contains(&source)) {
            event.kind = recorded.kind.clone();
        }
    }
}
