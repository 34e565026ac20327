//! Several processes share the slots of one container. The time of the stores stands still unless a test moves it.

use crate::factory::{fresh_config, quiet_target};
use crate::script::start;
use outlast_conformance::model::Hand;
use outlast_cosmos::leases::{InMemoryLeaseProvider, LeaseProvider};
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider, CosmosDBProviderConfig};
use outlast_cosmos_rig::Target;
use outlast_provider::model::{Event, EventKind, WorkItem};
use outlast_provider::{
    Clock, DispatcherCapabilityFilter, ExecutionMetadata, Provider, SemverRange, TagFilter, TurnCommit,
};
use semver::Version;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const HOUR: Duration = Duration::from_secs(3_600);
const LEASE_MS: u64 = 15_500;

/// A container of several processes, and the clock of their stores.
struct SharedContainer {
    _target: Target,
    config: CosmosDBProviderConfig,
    clock: Arc<Hand>,
    now: u64,
}

impl SharedContainer {
    async fn new() -> Self {
        let target = quiet_target().await;
        let config = fresh_config(&target);
        let clock = Arc::new(Hand::default());
        clock.set(1_000_000);
        Self { _target: target, config, clock, now: 1_000_000 }
    }

    async fn open(&self) -> CosmosDBProvider {
        self.open_with(None).await
    }

    /// A process whose program hands out slots.
    async fn open_with(&self, leases: Option<Arc<dyn LeaseProvider>>) -> CosmosDBProvider {
        let clock = Some(Arc::clone(&self.clock) as Arc<dyn Clock>);
        let options = CosmosDBOptions { clock, leases, ..CosmosDBOptions::default() };
        CosmosDBProvider::open(self.config.clone(), options).await.unwrap()
    }

    fn pass(&mut self, ms: u64) {
        self.now += ms;
        self.clock.set(self.now);
    }

    /// Lets time pass, second by second. In each the runtimes run every turn that they find; `ran` counts them.
    async fn run(&mut self, seconds: u64, runtimes: &[&CosmosDBProvider], ran: &mut BTreeMap<String, u32>) {
        for _ in 0..seconds {
            self.pass(1_000);
            for runtime in runtimes {
                runtime.seek().await;
                while let Some(instance) = run_turn(runtime, None).await {
                    *ran.entry(instance).or_default() += 1;
                }
            }
        }
    }
}

/// Fetches a turn and ends its instance.
async fn run_turn(runtime: &CosmosDBProvider, filter: Option<&DispatcherCapabilityFilter>) -> Option<String> {
    let fetched = runtime.fetch_orchestration_item(HOUR, Duration::ZERO, filter).await.unwrap();
    let (item, token, _) = fetched?;
    let completed = EventKind::OrchestrationCompleted { output: String::new() };
    let first = item.history.len() as u64 + 1;
    let commit = TurnCommit {
        execution_id: 1,
        history_delta: vec![Event::at(7, first, &item.instance, 1, None, completed)],
        metadata: ExecutionMetadata { status: Some("Completed".into()), ..named() },
        ..TurnCommit::default()
    };
    runtime.commit_turn(&token, commit).await.unwrap();
    Some(item.instance)
}

fn named() -> ExecutionMetadata {
    ExecutionMetadata {
        orchestration_name: Some("Flow".into()),
        orchestration_version: Some("1".into()),
        ..ExecutionMetadata::default()
    }
}

#[tokio::test]
async fn a_runtime_that_joins_gets_its_share_and_gives_it_back_when_it_leaves() {
    let mut container = SharedContainer::new().await;
    let mut ran = BTreeMap::new();
    let (one, two, three) = (container.open().await, container.open().await, container.open().await);
    container.run(1, &[&one], &mut ran).await;
    assert_eq!(one.owned_slots(), 256);
    container.run(11, &[&one, &two], &mut ran).await;
    assert_eq!((one.owned_slots(), two.owned_slots()), (128, 128));
    container.run(11, &[&one, &two, &three], &mut ran).await;
    let mut shares = [one.owned_slots(), two.owned_slots(), three.owned_slots()];
    shares.sort_unstable();
    assert_eq!(shares, [85, 85, 86]);
    // The third one fetches no more: it gives its slots up before its lease ends.
    for _ in 0..12 {
        container.run(1, &[&one, &two], &mut ran).await;
        three.seek().await;
    }
    assert_eq!((one.owned_slots(), two.owned_slots(), three.owned_slots()), (128, 128, 0));
}

#[tokio::test]
async fn the_slots_of_a_dead_runtime_are_served_within_a_lease() {
    let mut container = SharedContainer::new().await;
    let mut ran = BTreeMap::new();
    let (one, two, client) = (container.open().await, container.open().await, container.open().await);
    container.run(12, &[&one, &two], &mut ran).await;
    assert_eq!((one.owned_slots(), two.owned_slots()), (128, 128));
    drop(one);
    for nth in 0..16 {
        client.enqueue_for_orchestrator(start(&format!("i{nth}")), None).await.unwrap();
    }
    container.run(2, &[&two], &mut ran).await;
    assert!(!ran.is_empty() && ran.len() < 16, "each runtime serves its slots: {ran:?}");
    container.run(LEASE_MS.div_ceil(1_000), &[&two], &mut ran).await;
    assert_eq!(ran.len(), 16, "{ran:?}");
    container.run(5, &[&two], &mut ran).await;
    assert_eq!(two.owned_slots(), 256);
    assert!(ran.values().all(|count| *count == 1), "{ran:?}");
}

#[tokio::test]
async fn slots_move_under_load_and_every_instance_runs_once() {
    let mut container = SharedContainer::new().await;
    let mut ran = BTreeMap::new();
    let client = container.open().await;
    let mut runtimes = vec![container.open().await];
    let mut started = 0;
    // Joins, then deaths.
    for phase in 0..6 {
        match phase {
            1..=3 => runtimes.push(container.open().await),
            _ => drop((phase > 3).then(|| runtimes.remove(0))),
        }
        for _ in 0..4 {
            for _ in 0..3 {
                client.enqueue_for_orchestrator(start(&format!("i{started}")), None).await.unwrap();
                started += 1;
            }
            let live: Vec<&CosmosDBProvider> = runtimes.iter().collect();
            container.run(2, &live, &mut ran).await;
        }
    }
    let live: Vec<&CosmosDBProvider> = runtimes.iter().collect();
    container.run(LEASE_MS.div_ceil(1_000) + 6, &live, &mut ran).await;
    assert_eq!(ran.len(), started, "{ran:?}");
    assert!(ran.values().all(|count| *count == 1), "{ran:?}");
    assert_eq!(runtimes.iter().map(CosmosDBProvider::owned_slots).sum::<usize>(), 256);
}

#[tokio::test]
async fn runtimes_serve_the_slots_that_their_program_hands_out() {
    let mut container = SharedContainer::new().await;
    let mut ran = BTreeMap::new();
    let leases: Arc<dyn LeaseProvider> = Arc::new(InMemoryLeaseProvider::new(2));
    let one = container.open_with(Some(Arc::clone(&leases))).await;
    let two = container.open_with(Some(Arc::clone(&leases))).await;
    let client = container.open().await;
    // The first one waits for no heartbeat of the second: the shares do not depend on each other.
    container.run(1, &[&one], &mut ran).await;
    container.run(1, &[&two], &mut ran).await;
    assert_eq!((one.owned_slots(), two.owned_slots()), (128, 128));
    for nth in 0..8 {
        client.enqueue_for_orchestrator(start(&format!("i{nth}")), None).await.unwrap();
    }
    container.run(2, &[&one], &mut ran).await;
    assert!(!ran.is_empty() && ran.keys().all(|instance| one.owns_slot_of(instance)), "{ran:?}");
    container.run(2, &[&two], &mut ran).await;
    assert_eq!(ran.len(), 8, "{ran:?}");
    assert!(ran.values().all(|count| *count == 1), "{ran:?}");
}

#[tokio::test]
async fn work_of_a_slot_that_the_program_hands_to_no_runtime_is_found_when_it_is_overdue() {
    let mut container = SharedContainer::new().await;
    let mut ran = BTreeMap::new();
    let leases: Arc<dyn LeaseProvider> = Arc::new(InMemoryLeaseProvider::new(2));
    let (one, two) =
        (container.open_with(Some(Arc::clone(&leases))).await, container.open_with(Some(leases)).await);
    container.run(1, &[&one, &two], &mut ran).await;
    let lost = (0..).map(|nth| format!("i{nth}")).find(|id| two.owns_slot_of(id)).unwrap();
    drop(two);
    // The first one keeps its share, as it was planned.
    let client = container.open().await;
    client.enqueue_for_orchestrator(start(&lost), None).await.unwrap();
    container.run(10, &[&one], &mut ran).await;
    assert_eq!((one.owned_slots(), ran.len()), (128, 0));
    container.run(90, &[&one], &mut ran).await;
    assert_eq!(ran, BTreeMap::from([(lost, 1)]));
}

#[tokio::test]
async fn the_slot_table_passes_over_runtimes_with_slots_of_their_program() {
    let mut container = SharedContainer::new().await;
    let mut ran = BTreeMap::new();
    let fixed = container.open_with(Some(Arc::new(InMemoryLeaseProvider::new(4)))).await;
    let (one, two) = (container.open().await, container.open().await);
    container.run(12, &[&fixed, &one, &two], &mut ran).await;
    assert_eq!((fixed.owned_slots(), one.owned_slots(), two.owned_slots()), (64, 128, 128));
    let client = container.open().await;
    for nth in 0..8 {
        client.enqueue_for_orchestrator(start(&format!("i{nth}")), None).await.unwrap();
    }
    container.run(2, &[&fixed, &one, &two], &mut ran).await;
    assert_eq!((ran.len(), ran.values().sum::<u32>()), (8, 8), "{ran:?}");
}

fn versions(most: u64) -> DispatcherCapabilityFilter {
    let range = SemverRange::new(Version::new(0, 0, 0), Version::new(most, 0, 0));
    DispatcherCapabilityFilter { supported_duroxide_versions: vec![range] }
}

#[tokio::test]
async fn an_instance_that_the_owner_of_its_slot_refuses_runs_elsewhere() {
    let mut container = SharedContainer::new().await;
    let mut ran = BTreeMap::new();
    let (old, new) = (container.open().await, container.open().await);
    container.run(12, &[&old, &new], &mut ran).await;
    let instance = (0..).map(|nth| format!("i{nth}")).find(|id| old.owns_slot_of(id)).unwrap();
    // The first turn pins the instance to a version that the owner of its slot does not have.
    new.enqueue_for_orchestrator(start(&instance), None).await.unwrap();
    let (_, token, _) = new.fetch_orchestration_item(HOUR, Duration::ZERO, None).await.unwrap().unwrap();
    let pinned = ExecutionMetadata { pinned_duroxide_version: Some(Version::new(2, 0, 0)), ..named() };
    let commit = TurnCommit { execution_id: 1, metadata: pinned, ..TurnCommit::default() };
    new.commit_turn(&token, commit).await.unwrap();
    let event =
        WorkItem::ExternalRaised { instance: instance.clone(), name: "go".into(), data: String::new() };
    let client = container.open().await;
    client.enqueue_for_orchestrator(event, None).await.unwrap();
    old.seek().await;
    new.seek().await;
    assert_eq!(run_turn(&new, Some(&versions(2))).await, None, "the hint is for the owner");
    container.pass(1_000);
    old.seek().await;
    assert_eq!(run_turn(&old, Some(&versions(1))).await, None, "the owner cannot run the instance");
    container.pass(1_000);
    new.seek().await;
    assert_eq!(run_turn(&new, Some(&versions(2))).await, Some(instance), "the owner offered it");
}

#[tokio::test]
async fn an_instance_that_its_owner_gave_back_with_a_delay_is_tried_elsewhere_first() {
    let mut container = SharedContainer::new().await;
    let mut ran = BTreeMap::new();
    let (old, new) = (container.open().await, container.open().await);
    container.run(12, &[&old, &new], &mut ran).await;
    let instance = (0..).map(|nth| format!("i{nth}")).find(|id| old.owns_slot_of(id)).unwrap();
    old.enqueue_for_orchestrator(start(&instance), None).await.unwrap();
    let (_, token, _) = old.fetch_orchestration_item(HOUR, Duration::ZERO, None).await.unwrap().unwrap();
    old.abandon_orchestration_item(&token, Some(Duration::from_secs(1)), true).await.unwrap();
    container.pass(1_000);
    new.seek().await;
    assert_eq!(run_turn(&old, None).await, None, "the owner leaves it to others");
    assert_eq!(run_turn(&new, None).await, Some(instance));
}

#[tokio::test]
async fn an_activity_that_a_worker_gave_back_with_a_delay_is_tried_elsewhere_first() {
    let mut container = SharedContainer::new().await;
    let (old, new, untagged) = (container.open().await, container.open().await, TagFilter::default());
    let fetch = async |store: &CosmosDBProvider| {
        store.fetch_work_item(HOUR, Duration::ZERO, None, &untagged).await.unwrap()
    };
    for _ in 0..12 {
        container.pass(1_000);
        for worker in [&old, &new] {
            worker.seek().await;
            assert_eq!(fetch(worker).await, None);
        }
    }
    let activity = WorkItem::ActivityExecute {
        instance: "i".into(),
        execution_id: 1,
        id: 3,
        name: "New".into(),
        input: String::new(),
        session_id: None,
        tag: None,
    };
    old.enqueue_for_worker(activity.clone()).await.unwrap();
    let (_, token, _) = fetch(&old).await.expect("the worker knows what it stored");
    old.abandon_work_item(&token, Some(Duration::from_secs(1)), true).await.unwrap();
    container.pass(1_000);
    new.seek().await;
    assert_eq!(fetch(&old).await, None, "the worker leaves it to others");
    assert_eq!(fetch(&new).await.map(|(item, ..)| item), Some(activity));
}

/// Waits until fetches of a process wait: it has joined the others.
async fn until_waiting(store: &CosmosDBProvider, fetches: usize) {
    while store.waiting_fetches() < fetches {
        tokio::task::yield_now().await;
    }
}

/// Without hints the work would wait for the next repair query, a minute later.
#[tokio::test]
async fn work_of_other_processes_is_found_through_hints() {
    const SOON: Duration = Duration::from_secs(6);
    let target = quiet_target().await;
    let config = fresh_config(&target);
    let open = async || CosmosDBProvider::new_with_config(config.clone()).await.unwrap();
    let (client, turns, worker) = (open().await, open().await, open().await);
    let fetching = turns.clone();
    let turn =
        tokio::spawn(async move { fetching.fetch_orchestration_item(HOUR, HOUR, None).await.unwrap() });
    let fetching = worker.clone();
    let untagged = TagFilter::default();
    let work =
        tokio::spawn(async move { fetching.fetch_work_item(HOUR, HOUR, None, &untagged).await.unwrap() });
    until_waiting(&turns, 1).await;
    until_waiting(&worker, 1).await;
    turns.seek().await;
    worker.seek().await;

    let sent = Instant::now();
    client.enqueue_for_orchestrator(start("far"), None).await.unwrap();
    let (item, token, _) = turn.await.unwrap().expect("the start is found");
    assert_eq!(item.instance, "far");
    assert!(sent.elapsed() < SOON, "{:?}", sent.elapsed());

    let activity = WorkItem::ActivityExecute {
        instance: "far".into(),
        execution_id: 1,
        id: 3,
        name: "Work".into(),
        input: String::new(),
        session_id: None,
        tag: None,
    };
    let commit = TurnCommit {
        execution_id: 1,
        worker_items: vec![activity],
        metadata: named(),
        ..TurnCommit::default()
    };
    let sent = Instant::now();
    turns.commit_turn(&token, commit).await.unwrap();
    let (_, token, _) = work.await.unwrap().expect("the activity is found");
    assert!(sent.elapsed() < SOON, "{:?}", sent.elapsed());

    let fetching = turns.clone();
    let turn =
        tokio::spawn(async move { fetching.fetch_orchestration_item(HOUR, HOUR, None).await.unwrap() });
    until_waiting(&turns, 1).await;
    let sent = Instant::now();
    let outcome =
        WorkItem::ActivityCompleted { instance: "far".into(), execution_id: 1, id: 3, result: "r".into() };
    worker.ack_work_item(&token, Some(outcome)).await.unwrap();
    assert!(turn.await.unwrap().is_some(), "the completion is found");
    assert!(sent.elapsed() < SOON, "{:?}", sent.elapsed());
}
