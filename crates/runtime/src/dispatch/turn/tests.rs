//! The decisions of a turn that the runtime makes outside of the engine.

use super::*;
use crate::captured::{Captured, enable_every_callsite};
use crate::dispatch::ActivityQueue;
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

async fn decided(turn: &Turn, mut fetched: FetchedTurn) -> TurnDecision {
    let lease = turn.core.leases.hold(&turn.core, Kind::Turn, "t".to_string(), Arc::clone(&turn.instance));
    let decision = turn.decide(&lease, &mut fetched).await;
    lease.settle();
    decision
}

#[tokio::test(start_paused = true)]
async fn each_queue_has_its_own_name_and_notification() {
    let core = core();
    assert_eq!((TurnQueue.name(), ActivityQueue.name()), ("orchestrations", "activities"));
    assert!(std::ptr::eq(TurnQueue.waiting(&core), &core.turns_waiting));
    assert!(std::ptr::eq(ActivityQueue.waiting(&core), &core.activities_waiting));
}

#[tokio::test(start_paused = true)]
async fn an_execution_keeps_the_stamp_of_its_first_event() {
    let turn = turn();
    let mut history = events("i", 1, vec![started()]);
    history[0].duroxide_version = "0.1.20+rules".to_string();
    let new = outlast_engine::new_stamp(turn.core.options.buffer_early_signals);
    assert_eq!(turn.stamp(&history, false), "0.1.20+rules");
    assert_eq!(turn.stamp(&history, true), new);
    assert_eq!(turn.stamp(&[], false), new);
}

#[test]
fn the_contract_version_has_no_build_metadata() {
    let version = Version::parse("0.1.20-pre+rules").unwrap();
    assert_eq!(without_build(version), Version::parse("0.1.20-pre").unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_instance_of_an_incompatible_version_is_not_replayed_and_logged() {
    let turn = turn();
    for (version, is_compatible) in [("0.1.20+rules", true), ("99.0.0", false), ("no version", true)] {
        let mut history = events("i", 1, vec![started()]);
        history[0].duroxide_version = version.to_string();
        let past = Past::of_history(&history);
        let state = InstanceState { past, warm: None, history, kv: BTreeMap::new(), oversized: None };
        let captured = Captured::default();
        assert_eq!(captured.during(|| turn.may_replay(&state)), is_compatible, "{version}");
        assert_eq!(captured.lines().is_empty(), is_compatible, "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_start_is_ignored_and_logged() {
    enable_every_callsite();
    for (starts, ignored) in [(1, false), (2, true)] {
        let captured = Captured::default();
        let subscriber = tracing_subscriber::registry().with(captured.clone());
        let guard = tracing::subscriber::set_default(subscriber);
        decided(&turn(), fetched(1, 1, vec![start("i"); starts])).await;
        drop(guard);
        let is_logged = captured.lines().iter().any(|line| line.contains("a start was ignored"));
        assert_eq!(is_logged, ignored, "{:?}", captured.lines());
    }
}

/// The opening of the predecessor is read from the store: the warm cache does not keep it.
#[tokio::test(start_paused = true)]
async fn a_successor_without_a_start_fails_with_the_opening_of_its_predecessor() {
    let turn = turn();
    let continued = EventKind::OrchestrationContinuedAsNew { input: "second".to_string() };
    store(&turn.core, "i", 3, vec![started(), continued]).await;
    let signal = WorkItem::ExternalRaised {
        instance: "i".to_string(),
        name: "signal".to_string(),
        data: String::new(),
    };
    let max_attempts = turn.core.options.max_attempts;
    let decision = decided(&turn, fetched(3, max_attempts, vec![signal.clone()])).await;
    let TurnDecision::GiveBack { ignore_attempt: false, .. } = decision else {
        panic!("the start may still arrive");
    };

    let decision = decided(&turn, fetched(3, max_attempts + 1, vec![signal])).await;
    let TurnDecision::Commit { output, keep: Keep::Nothing } = decision else {
        panic!("the turn was given back");
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
    let expected = PoisonMessageType::Orchestration { instance: "i".to_string(), execution_id: 4 };
    assert_eq!(message_type, &expected);
}

async fn poisoned(turn: &Turn) -> (ErrorDetails, Vec<String>) {
    let attempts = turn.core.options.max_attempts + 1;
    enable_every_callsite();
    let captured = Captured::default();
    let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(captured.clone()));
    let decision = decided(turn, fetched(1, attempts, vec![start("i")])).await;
    drop(guard);
    let TurnDecision::Commit { output, .. } = decision else { panic!("the turn was given back") };
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

/// The message is the batch as JSON, as the contract requires; only the log line names a cause.
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
fn a_turn_without_events_sends_its_messages_for_its_execution() {
    let commit = only_messages(3, vec![start("child")]).commit;
    assert_eq!((commit.execution_id, commit.orchestrator_items), (3, vec![start("child")]));
}
