//! What turns are decided by beside the engine.

use super::*;
use crate::captured::{Captured, want_every_callsite};
use crate::dispatch::Works;
use crate::dispatch::fixture::{core, events, start, started, store};
use crate::registry::OrchestrationRegistry;
use outlast_model::{EventKind, ExecutionStatus};
use outlast_provider::OrchestrationItem;
use std::collections::HashMap;
use tracing_subscriber::layer::SubscriberExt;

fn turn() -> Turn {
    let core = Arc::new(core());
    Turn { core, instance: "i".into(), worker_id: "orch-0".to_string(), created_at_ms: None }
}

fn fetched(execution_id: u64, attempt_count: u32, messages: Vec<WorkItem>) -> FetchedTurn {
    let item = OrchestrationItem {
        instance: "i".to_string(),
        orchestration_name: "O".to_string(),
        execution_id,
        version: "1.2.3".to_string(),
        history: Vec::new(),
        messages,
        history_error: None,
        kv_snapshot: HashMap::new(),
    };
    FetchedTurn {
        item,
        lock_token: "t".to_string(),
        attempt_count,
        last_event_id: None,
        history_loaded: false,
        has_ended: None,
        created_at_ms: None,
        now_ms: None,
    }
}

async fn decided(turn: &Turn, mut fetched: FetchedTurn) -> Verdict {
    let lease = turn.core.leases.hold(&turn.core, Kind::Turn, "t".to_string(), Arc::clone(&turn.instance));
    let verdict = turn.decide(&lease, &mut fetched).await;
    lease.settle();
    verdict
}

#[tokio::test(start_paused = true)]
async fn each_queue_has_its_name_and_its_bell() {
    let core = core();
    assert_eq!((Turns.name(), Works.name()), ("orchestrations", "activities"));
    assert!(std::ptr::eq(Turns.waiting(&core), &core.turns_waiting));
    assert!(std::ptr::eq(Works.waiting(&core), &core.work_waiting));
}

#[tokio::test(start_paused = true)]
async fn an_execution_keeps_the_stamp_that_it_began_with() {
    let turn = turn();
    let mut history = events("i", 1, vec![started()]);
    history[0].duroxide_version = "0.1.20+rules".to_string();
    let new = outlast_engine::new_stamp(turn.core.options.buffer_early_signals);
    assert_eq!(turn.stamp(&history, false), "0.1.20+rules");
    assert_eq!(turn.stamp(&history, true), new);
    assert_eq!(turn.stamp(&[], false), new);
}

#[test]
fn how_an_execution_replays_does_not_say_under_which_contract() {
    let version = Version::parse("0.1.20-pre+rules").unwrap();
    assert_eq!(without_build(version), Version::parse("0.1.20-pre").unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_instance_of_another_contract_is_left_alone_and_told_of() {
    let turn = turn();
    for (version, is_ours) in [("0.1.20+rules", true), ("99.0.0", false), ("no version", true)] {
        let mut history = events("i", 1, vec![started()]);
        history[0].duroxide_version = version.to_string();
        let past = Past::of_history(&history);
        let known = Known { past, warm: None, history, kv: BTreeMap::new(), oversized: None };
        let captured = Captured::default();
        assert_eq!(captured.during(|| turn.may_replay(&known)), is_ours, "{version}");
        assert_eq!(captured.lines().is_empty(), is_ours, "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_is_ignored_is_told_of() {
    want_every_callsite();
    for (starts, ignored) in [(1, false), (2, true)] {
        let captured = Captured::default();
        let subscriber = tracing_subscriber::registry().with(captured.clone());
        let guard = tracing::subscriber::set_default(subscriber);
        decided(&turn(), fetched(1, 1, vec![start("i"); starts])).await;
        drop(guard);
        let told = captured.lines().iter().any(|line| line.contains("a start was ignored"));
        assert_eq!(told, ignored, "{:?}", captured.lines());
    }
}

/// The store is asked what the predecessor was: memory has forgotten it.
#[tokio::test(start_paused = true)]
async fn a_successor_that_never_came_fails_as_what_its_predecessor_was() {
    let turn = turn();
    let continued = EventKind::OrchestrationContinuedAsNew { input: "second".to_string() };
    store(&turn.core, "i", 3, vec![started(), continued]).await;
    let signal = WorkItem::ExternalRaised {
        instance: "i".to_string(),
        name: "signal".to_string(),
        data: String::new(),
    };
    let often = turn.core.options.max_attempts + 1;
    let waits = decided(&turn, fetched(3, often - 1, vec![signal.clone()])).await;
    assert!(matches!(waits, Verdict::GiveBack { ignore_attempt: false, .. }), "the start may be on its way");

    let Verdict::Commit { output, keep: Keep::Nothing } =
        decided(&turn, fetched(3, often, vec![signal])).await
    else {
        panic!("it was given back");
    };
    let TurnCommit { execution_id, history_delta: history, metadata, .. } = output.commit;
    assert_eq!((execution_id, metadata.execution_status()), (4, Some(ExecutionStatus::Failed)));
    assert_eq!(metadata.orchestration_name.as_deref(), Some("O"));
    let EventKind::OrchestrationStarted { input, carry_forward_events, .. } = &history[0].kind else {
        panic!("{history:?}");
    };
    assert_eq!((input.as_str(), carry_forward_events), ("second", &None));
    let Some(EventKind::OrchestrationFailed { details: ErrorDetails::Poison { message_type, .. } }) =
        history.last().map(|event| &event.kind)
    else {
        panic!("{history:?}");
    };
    let whose = PoisonMessageType::Orchestration { instance: "i".to_string(), execution_id: 4 };
    assert_eq!(message_type, &whose);
}

async fn poisoned(turn: &Turn) -> (ErrorDetails, Vec<String>) {
    let often = turn.core.options.max_attempts + 1;
    want_every_callsite();
    let captured = Captured::default();
    let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(captured.clone()));
    let verdict = decided(turn, fetched(1, often, vec![start("i")])).await;
    drop(guard);
    let Verdict::Commit { output, .. } = verdict else { panic!("it was given back") };
    match output.commit.history_delta.last().map(|event| &event.kind) {
        Some(EventKind::OrchestrationFailed { details }) => (details.clone(), captured.lines()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn poison_names_the_orchestration_that_is_not_registered() {
    let (details, lines) = poisoned(&turn()).await;
    let cause = details.poison_cause().expect("the failure names its cause");
    assert!(cause.starts_with("orchestration 'O' is not registered on node "), "{cause}");
    let ErrorDetails::Poison { message, .. } = &details else { panic!("{details:?}") };
    assert!(message.contains("StartOrchestration"), "{message}");
    let line = lines.iter().find(|line| line.contains("instance is poisoned")).unwrap();
    assert!(line.contains(cause) && !line.contains("first"), "{line}");
}

/// The contract's message, and a log line that says no more than this node knows.
#[tokio::test(start_paused = true)]
async fn poison_of_a_registered_orchestration_holds_the_batch() {
    let mut core = core();
    let registry = OrchestrationRegistry::builder();
    let registry = registry.register_versioned("O", "1.2.3", |_, _| async { Ok(String::new()) });
    core.orchestrations = registry.build_result().unwrap();
    let turn = Turn { core: Arc::new(core), ..turn() };
    let (details, lines) = poisoned(&turn).await;
    assert_eq!(details.poison_cause(), None);
    let ErrorDetails::Poison { message, .. } = &details else { panic!("{details:?}") };
    assert_eq!(serde_json::from_str::<Vec<WorkItem>>(message).unwrap(), [start("i")]);
    let line = lines.iter().find(|line| line.contains("instance is poisoned")).unwrap();
    assert!(line.contains("no delivery led to a commit") && line.contains("this node has it"), "{line}");
}

#[test]
fn a_turn_of_messages_alone_sends_them_for_its_execution() {
    let commit = only_messages(3, vec![start("child")]).commit;
    assert_eq!((commit.execution_id, commit.orchestrator_items), (3, vec![start("child")]));
}
