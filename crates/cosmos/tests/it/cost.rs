//! Requests by kind, counted by the rig: for a hello, for a step of a chain, and for a minute without work. The time of the stores
//! stands still unless a test moves it, so that no background request is counted with those of an instance.

use crate::factory::fresh_config;
use crate::script::start;
use outlast_conformance::model::Hand;
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider, CosmosDBProviderConfig};
use outlast_cosmos_rig::{Kind, Record, Rig, Target};
use outlast_provider::model::{Event, EventKind, WorkItem};
use outlast_provider::{
    Clock, Completion, ExecutionMetadata, InstanceQuery, Provider, ProviderAdmin, PruneOptions, TagFilter,
    TurnAhead, TurnCommit, TurnRequest,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);
const START_MS: u64 = 1_000_000;

/// A container whose requests are counted, and the clock of its stores.
struct CountedContainer {
    target: Target,
    config: CosmosDBProviderConfig,
    clock: Arc<Hand>,
    poll_interval: Duration,
}

impl CountedContainer {
    async fn new() -> Self {
        let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
        // The reconciler has a pace of its own: one query a minute while there is nothing to deliver.
        let config = CosmosDBProviderConfig { reconciler_interval: HOUR, ..fresh_config(&target) };
        let clock = Arc::new(Hand::default());
        clock.set(START_MS);
        Self { target, config, clock, poll_interval: Duration::from_secs(1) }
    }

    /// A process that takes turns, activities, or both.
    async fn open(&self, turns: bool, work: bool) -> CosmosDBProvider {
        let clock = Some(Arc::clone(&self.clock) as Arc<dyn Clock>);
        let poll_interval = self.poll_interval;
        let options = CosmosDBOptions { clock, poll_interval, ..CosmosDBOptions::default() };
        let store = CosmosDBProvider::open(self.config.clone(), options).await.unwrap();
        if turns {
            assert!(fetch_turn(&store).await.is_none());
        }
        if work {
            assert!(fetch_work(&store).await.is_none());
        }
        store.seek().await;
        store
    }

    fn rig(&self) -> &Rig {
        self.target.rig().unwrap()
    }

    /// The requests on documents since the last call, by kind.
    fn counted(&self) -> BTreeMap<Kind, usize> {
        let mut counted = BTreeMap::new();
        // The tally is read and written every ten seconds of the system's time, which no test moves.
        let is_tally =
            |record: &Record| record.query.as_deref().is_some_and(|query| query.contains("c.t = 'n'"));
        let records = self.rig().take_recorded();
        for record in records.iter().filter(|record| record.kind.is_data() && !is_tally(record)) {
            assert!(record.unindexed.is_empty(), "a query scans: {record:?}");
            *counted.entry(record.kind).or_default() += 1;
        }
        counted
    }
}

fn counts<const N: usize>(counts: [(Kind, usize); N]) -> BTreeMap<Kind, usize> {
    BTreeMap::from(counts)
}

/// A turn as a runtime fetches it: the instance, the token.
async fn fetch_turn(store: &CosmosDBProvider) -> Option<(String, String)> {
    let request =
        TurnRequest { lock_timeout: HOUR, poll_timeout: Duration::ZERO, filter: None, with_history: false };
    let turn = store.fetch_turn(request).await.unwrap()?;
    Some((turn.item.instance, turn.lock_token))
}

async fn fetch_work(store: &CosmosDBProvider) -> Option<(WorkItem, String)> {
    let work = store.fetch_work_item(HOUR, Duration::ZERO, None, &TagFilter::default()).await.unwrap()?;
    Some((work.0, work.1))
}

fn event(instance: &str, id: u64, kind: EventKind) -> Event {
    Event::at(START_MS, id, instance, 1, None, kind)
}

fn activity(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.into(),
        execution_id: 1,
        id,
        name: "Work".into(),
        input: String::new(),
        session_id: None,
        tag: None,
    }
}

/// The first turn: it schedules an activity with event 2.
fn first_turn(instance: &str) -> TurnCommit {
    let started = EventKind::OrchestrationStarted {
        name: "Flow".into(),
        version: "1".into(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    TurnCommit {
        execution_id: 1,
        history_delta: vec![event(instance, 1, started), scheduled(instance, 2)],
        worker_items: vec![activity(instance, 2)],
        metadata: ExecutionMetadata {
            orchestration_name: Some("Flow".into()),
            orchestration_version: Some("1".into()),
            ..ExecutionMetadata::default()
        },
        ..TurnCommit::default()
    }
}

fn scheduled(instance: &str, id: u64) -> Event {
    let kind = EventKind::ActivityScheduled {
        name: "Work".into(),
        input: String::new(),
        session_id: None,
        tag: None,
    };
    event(instance, id, kind)
}

/// A turn after the completion of the activity with event `done`: it schedules the next one, or ends the instance.
fn next_turn(instance: &str, done: u64, is_last: bool) -> TurnCommit {
    let mut completed = event(instance, done + 1, EventKind::ActivityCompleted { result: "r".into() });
    completed.source_event_id = Some(done);
    match is_last {
        true => TurnCommit {
            execution_id: 1,
            history_delta: vec![
                completed,
                event(instance, done + 2, EventKind::OrchestrationCompleted { output: "out".into() }),
            ],
            metadata: ExecutionMetadata {
                status: Some("Completed".into()),
                output: Some("out".into()),
                ..ExecutionMetadata::default()
            },
            ..TurnCommit::default()
        },
        false => TurnCommit {
            execution_id: 1,
            history_delta: vec![completed, scheduled(instance, done + 2)],
            worker_items: vec![activity(instance, done + 2)],
            ..TurnCommit::default()
        },
    }
}

/// Starts an instance and commits its first turn.
async fn begin(client: &CosmosDBProvider, runtime: &CosmosDBProvider, instance: &str) {
    client.enqueue_for_orchestrator(start(instance), None).await.unwrap();
    runtime.seek().await;
    let (found, token) = fetch_turn(runtime).await.expect("the start is found");
    assert_eq!(found, instance);
    runtime.commit_turn(&token, first_turn(instance)).await.unwrap();
}

/// Runs the activity with event `done` together with the turn that follows.
async fn step(store: &CosmosDBProvider, instance: &str, done: u64, is_last: bool) {
    let (work, token) = fetch_work(store).await.expect("the activity is found");
    assert_eq!(work, activity(instance, done));
    let outcome = completed(instance, done);
    let commit = next_turn(instance, done, is_last);
    let turn = TurnAhead { after_event_id: done, ran_at_ms: START_MS, commit };
    let completion = store.complete_with_turn(&token, outcome, turn).await.unwrap();
    assert!(matches!(completion, Completion::WithTurn { .. }), "{completion:?}");
}

fn completed(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityCompleted { instance: instance.into(), execution_id: 1, id, result: "r".into() }
}

#[tokio::test]
async fn a_hello_in_one_process_takes_six_requests_and_a_step_of_a_chain_two() {
    let container = CountedContainer::new().await;
    let store = container.open(true, true).await;
    container.counted();
    begin(&store, &store, "hello").await;
    step(&store, "hello", 2, true).await;
    let hello = counts([(Kind::Batch, 3), (Kind::Query, 1), (Kind::Create, 1), (Kind::Replace, 1)]);
    assert_eq!(container.counted(), hello);

    begin(&store, &store, "chain").await;
    container.counted();
    for nth in 1..=10 {
        step(&store, "chain", 2 * nth, nth == 10).await;
        assert_eq!(container.counted(), counts([(Kind::Batch, 1), (Kind::Replace, 1)]), "step {nth}");
    }
}

/// A message that arrives meanwhile costs the refused commit and one query; the outcome is queued.
#[tokio::test]
async fn a_message_from_elsewhere_is_not_overtaken_by_a_turn_that_runs_ahead() {
    let container = CountedContainer::new().await;
    let store = container.open(true, true).await;
    let client = container.open(false, false).await;
    begin(&store, &store, "i").await;
    let (_, token) = fetch_work(&store).await.unwrap();
    let raised = WorkItem::ExternalRaised { instance: "i".into(), name: "e".into(), data: String::new() };
    client.enqueue_for_orchestrator(raised, None).await.unwrap();
    container.counted();
    let turn = TurnAhead { after_event_id: 2, ran_at_ms: START_MS, commit: next_turn("i", 2, true) };
    let completion = store.complete_with_turn(&token, completed("i", 2), turn).await.unwrap();
    assert_eq!(completion, Completion::Queued);
    let counted = container.counted();
    assert_eq!((counted[&Kind::Batch], counted[&Kind::Query]), (2, 1), "{counted:?}");
}

/// Without the pages of hints: a busy process reads one page for many hints.
#[tokio::test]
async fn a_hello_with_client_and_worker_elsewhere_takes_twelve_requests_and_three_pages_of_hints() {
    let container =
        CountedContainer { poll_interval: Duration::from_millis(50), ..CountedContainer::new().await };
    let (runtime, worker) = (container.open(true, false).await, container.open(false, true).await);
    let client = container.open(false, false).await;
    // Hints are read in the next tenth of a second, by the task of the store or by the test.
    let mut now = START_MS;
    let mut pass = || {
        now += 100;
        container.clock.set(now);
    };
    let counted = || {
        let mut counted = container.counted();
        counted.remove(&Kind::ChangeFeed);
        counted
    };
    counted();
    client.enqueue_for_orchestrator(start("far"), None).await.unwrap();
    pass();
    runtime.seek().await;
    let (_, token) = fetch_turn(&runtime).await.expect("the start is found");
    runtime.commit_turn(&token, first_turn("far")).await.unwrap();
    let begun = counts([(Kind::Batch, 2), (Kind::Create, 3), (Kind::Query, 1)]);
    assert_eq!(counted(), begun, "start, its hint, fetch, commit, hint of the activity");
    for (done, is_last) in [(2, false), (4, true)] {
        pass();
        worker.seek().await;
        let (work, token) = fetch_work(&worker).await.expect("the activity is found");
        assert_eq!(work, activity("far", done));
        worker.ack_work_item(&token, Some(completed("far", done))).await.unwrap();
        pass();
        runtime.seek().await;
        let (_, token) = fetch_turn(&runtime).await.expect("the completion is found");
        runtime.commit_turn(&token, next_turn("far", done, is_last)).await.unwrap();
        let hints = if is_last { 1 } else { 2 };
        let stepped = counts([(Kind::Batch, 2), (Kind::Create, hints), (Kind::Query, 1), (Kind::Replace, 2)]);
        assert_eq!(
            counted(),
            stepped,
            "claim, completion, its hint, fetch, commit, hint of the next activity"
        );
    }
}

/// Starts instances that wait for a message.
async fn idle_instances(store: &CosmosDBProvider, numbers: std::ops::Range<u32>) {
    for nth in numbers {
        let instance = format!("i{nth}");
        store.enqueue_for_orchestrator(start(&instance), None).await.unwrap();
        let (_, token) = fetch_turn(store).await.unwrap();
        let waits = TurnCommit { worker_items: Vec::new(), ..first_turn(&instance) };
        store.commit_turn(&token, waits).await.unwrap();
    }
}

/// Lets time pass while fetches find nothing.
async fn idle(container: &CountedContainer, store: &CosmosDBProvider, from_ms: u64, seconds: u64) -> u64 {
    for quarter in 1..=seconds * 4 {
        container.clock.set(from_ms + quarter * 250);
        assert!(fetch_turn(store).await.is_none() && fetch_work(store).await.is_none());
        store.seek().await;
    }
    from_ms + seconds * 1_000
}

#[tokio::test]
async fn the_cost_of_an_idle_minute_does_not_grow_with_the_number_of_instances() {
    let container = CountedContainer::new().await;
    let store = container.open(true, true).await;
    // Each of twelve heartbeats reads the other ones and the slot table. The repair query has a page for each of four physical
    // partitions.
    let expected = counts([(Kind::Upsert, 12), (Kind::Query, 12 + 4), (Kind::ChangeFeed, 120)]);
    // The queries of a process that has just joined are over after the longest time of a request.
    let mut now = idle(&container, &store, START_MS, 15).await;
    for numbers in [0..100, 100..1_000] {
        idle_instances(&store, numbers.clone()).await;
        container.counted();
        now = idle(&container, &store, now, 60).await;
        assert_eq!(container.counted(), expected, "with {} instances", numbers.end);
    }
}

/// Azure reads every document of a kind for a filter that no index serves.
#[tokio::test]
async fn no_query_filters_by_a_property_without_an_index() {
    let container = CountedContainer::new().await;
    let store = container.open(true, true).await;
    begin(&store, &store, "hello").await;
    let (_, token) = fetch_work(&store).await.unwrap();
    store.ack_work_item(&token, Some(completed("hello", 2))).await.unwrap();
    let (_, token) = fetch_turn(&store).await.unwrap();
    store.commit_turn(&token, next_turn("hello", 2, true)).await.unwrap();
    store.get_system_metrics().await.unwrap();
    store.get_gauges().await.unwrap();
    store.get_queue_depths().await.unwrap();
    store.count_held().await.unwrap();
    store.list_held(None, 9).await.unwrap();
    store.list_instances().await.unwrap();
    store.list_instances_by_status("Completed").await.unwrap();
    store.list_unstarted(None, 9).await.unwrap();
    store.list_children("hello").await.unwrap();
    store.get_instance_tree("hello").await.unwrap();
    store.pending("hello", 9).await.unwrap();
    store.list_executions("hello").await.unwrap();
    store.dead_letter_page(None, 9).await.unwrap();
    store.audit_page(None, 9).await.unwrap();
    store.oldest_instances(None, 9).await.unwrap();
    store.prune_audit(START_MS, 9).await.unwrap();
    store.prune_dead_letters(START_MS, 9).await.unwrap();
    store.nodes(None, 9).await.unwrap();
    store.sweep_nodes(9).await.unwrap();
    store.paused_orchestrations().await.unwrap();
    store.renew_session_lock(&["w"], HOUR, HOUR).await.unwrap();
    store.cleanup_orphaned_sessions(HOUR).await.unwrap();
    store.query_instances(&InstanceQuery::default()).await.unwrap();
    store.prune_executions("hello", PruneOptions::default()).await.unwrap();
    store.delete_instances_atomic(&["hello".to_string()], false).await.unwrap();
    let counted = container.counted();
    assert!(counted[&Kind::Query] > 25, "{counted:?}");
}
