//! Turns of several batches whose process dies or stalls in the middle.

use crate::factory::fresh_config;
use crate::kit::{signal, turn};
use crate::script::start;
use outlast_conformance::model::Hand;
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider, CosmosDBProviderConfig};
use outlast_cosmos_rig::{Fault, FaultHandle, Kind, Rig, Target};
use outlast_provider::model::{Event, EventKind, WorkItem};
use outlast_provider::{Clock, Provider, ProviderAdmin, TagFilter, TurnCommit};
use std::sync::Arc;
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(10);
const MINUTE: u64 = 60_000;

/// A container whose processes have one clock and send batches of four operations.
struct SmallBatchContainer {
    target: Target,
    clock: Arc<Hand>,
    config: CosmosDBProviderConfig,
    options: CosmosDBOptions,
}

impl SmallBatchContainer {
    async fn new() -> Self {
        let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
        let clock = Arc::new(Hand::default());
        clock.set(1_000 * MINUTE);
        let given: Option<Arc<dyn Clock>> = Some(clock.clone());
        let options = CosmosDBOptions { batch: (4, 1_800_000), clock: given, ..CosmosDBOptions::default() };
        let config = CosmosDBProviderConfig {
            reconciler_interval: Duration::from_millis(10),
            reconciler_age_threshold: Duration::ZERO,
            ..fresh_config(&target)
        };
        Self { target, clock, config, options }
    }

    async fn process(&self) -> CosmosDBProvider {
        CosmosDBProvider::open(self.config.clone(), self.options.clone()).await.unwrap()
    }

    fn rig(&self) -> &Rig {
        self.target.rig().unwrap()
    }

    fn pass_a_minute(&self) {
        self.clock.set(self.clock.now_ms() + MINUTE);
    }

    /// Stops all batches on `a` from this one on, as the death of their process does.
    fn dies_at(&self, nth: u64) -> FaultHandle {
        self.rig().fault(Fault::on(Kind::Batch).partition("a").nth(nth).always().status(400))
    }
}

async fn lease(store: &CosmosDBProvider) -> (String, u32) {
    let fetched = store.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap();
    let (item, token, attempt) = fetched.expect("a turn waits");
    assert_eq!(item.instance, "a");
    (token, attempt)
}

fn set(id: u64, key: &str, value: &str) -> Event {
    let kind = EventKind::KeyValueSet { key: key.into(), value: value.into(), last_updated_at_ms: 7 };
    Event::at(7, id, "a", 1, None, kind)
}

fn activity(id: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: "a".into(),
        execution_id: 1,
        id,
        name: "Work".into(),
        input: String::new(),
        session_id: None,
        tag: None,
    }
}

/// A first turn that sets the key `k0`.
async fn begin(store: &CosmosDBProvider) {
    store.enqueue_for_orchestrator(start("a"), None).await.unwrap();
    let (token, _) = lease(store).await;
    let commit = TurnCommit { history_delta: vec![set(1, "k0", "old")], ..turn("a", 1, 1, None) };
    store.commit_turn(&token, commit).await.unwrap();
}

/// Messages that the large turn consumes.
async fn send(store: &CosmosDBProvider, count: usize) {
    for _ in 0..count {
        store.enqueue_for_orchestrator(signal("a"), None).await.unwrap();
    }
}

/// A turn with seven keys, five activities and a start of another instance.
fn large_turn() -> TurnCommit {
    TurnCommit {
        history_delta: (0..7).map(|nth| set(nth + 2, &format!("k{nth}"), "new")).collect(),
        worker_items: (10..15).map(activity).collect(),
        orchestrator_items: vec![start("target")],
        ..turn("a", 1, 2, None)
    }
}

/// What a reader sees of `a`: events, two keys, activities, and messages of the target.
async fn seen(store: &CosmosDBProvider) -> (usize, [Option<String>; 2], u64, u64) {
    let keys = [store.get_kv_value("a", "k0").await.unwrap(), store.get_kv_value("a", "k6").await.unwrap()];
    let all = store.get_kv_all_values("a").await.unwrap();
    assert_eq!([all.get("k0").cloned(), all.get("k6").cloned()], keys, "both reads agree");
    let own = store.pending("a", 100).await.unwrap().unwrap();
    let sent = store.pending("target", 100).await.unwrap().unwrap();
    (store.read("a").await.unwrap().len(), keys, own.activity_count, sent.message_count)
}

fn before() -> (usize, [Option<String>; 2], u64, u64) {
    (1, [Some("old".into()), None], 0, 0)
}

#[tokio::test]
async fn a_process_that_dies_at_any_batch_of_a_turn_leaves_nothing_visible() {
    let mut nth = 1;
    loop {
        let container = SmallBatchContainer::new().await;
        let dying = container.process().await;
        begin(&dying).await;
        send(&dying, 6).await;
        let (token, _) = lease(&dying).await;
        let death = container.dies_at(nth);
        let is_committed = dying.commit_turn(&token, large_turn()).await.is_ok();
        drop(dying);
        let is_over = death.struck() == 0;
        container.rig().clear_faults();
        let other = container.process().await;
        if !is_committed {
            assert_eq!(seen(&other).await, before(), "batch {nth}: a reader sees the turn before its commit");
            assert_eq!(other.get_queue_depths().await.unwrap().worker_queue, 0, "batch {nth}");
            let work =
                other.fetch_work_item(LEASE, Duration::ZERO, None, &TagFilter::default()).await.unwrap();
            assert_eq!(work, None, "batch {nth}: an activity of a turn that is not committed is fetched");
            container.pass_a_minute();
            let (token, attempt) = lease(&other).await;
            assert_eq!(attempt, 2);
            assert_eq!(
                seen(&other).await,
                before(),
                "batch {nth}: a reader sees the turn after the takeover"
            );
            other.commit_turn(&token, large_turn()).await.unwrap();
        }
        let new = Some("new".to_string());
        assert_eq!(seen(&other).await, (8, [new.clone(), new], 5, 1), "batch {nth}");
        assert_eq!(other.pending("a", 9).await.unwrap().unwrap().message_count, 0, "batch {nth}");
        if is_over {
            break;
        }
        nth += 1;
    }
    assert!(nth > 5, "the turn has several batches");
}

#[tokio::test]
async fn a_batch_that_arrives_after_a_takeover_is_refused() {
    let container = SmallBatchContainer::new().await;
    let stalled = container.process().await;
    begin(&stalled).await;
    send(&stalled, 1).await;
    let (token, _) = lease(&stalled).await;
    let held = container.rig().fault(Fault::on(Kind::Batch).partition("a").nth(2).before().hold());
    let commit = tokio::spawn(async move { stalled.commit_turn(&token, large_turn()).await });
    held.wait_struck(1).await;
    container.pass_a_minute();
    let other = container.process().await;
    let (token, _) = lease(&other).await;
    other.commit_turn(&token, turn("a", 1, 2, None)).await.unwrap();
    held.release();
    let late = commit.await.unwrap().unwrap_err();
    assert!(!late.is_retryable(), "{late}");
    assert_eq!(seen(&other).await, (2, [Some("old".into()), None], 0, 0));
    let dump = other.dump().await.unwrap();
    let left: Vec<&String> =
        dump.iter().filter(|line| line.starts_with("work") || line.contains("k6")).collect();
    assert!(left.is_empty(), "documents of the stalled turn are left: {left:?}");
}

#[tokio::test]
async fn a_staged_turn_lengthens_its_lease() {
    let container = SmallBatchContainer::new().await;
    let slow = container.process().await;
    begin(&slow).await;
    send(&slow, 1).await;
    let (token, _) = lease(&slow).await;
    let held = container.rig().fault(Fault::on(Kind::Batch).partition("a").nth(2).before().hold());
    let commit = tokio::spawn(async move { slow.commit_turn(&token, large_turn()).await });
    held.wait_struck(1).await;
    // The lease of the fetch is over.
    container.clock.set(container.clock.now_ms() + 15_000);
    let other = container.process().await;
    let stolen = other.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap();
    assert!(stolen.is_none(), "the turn is being committed");
    held.release();
    commit.await.unwrap().unwrap();
}

#[tokio::test]
async fn consumed_messages_that_do_not_fit_into_the_flip_are_removed() {
    let container = SmallBatchContainer::new().await;
    let store = container.process().await;
    begin(&store).await;
    send(&store, 12).await;
    let (token, _) = lease(&store).await;
    // The removal after the flip fails: the messages are hidden.
    let commit = TurnCommit { worker_items: vec![activity(10)], ..turn("a", 1, 2, None) };
    let batches = container.rig().fault(Fault::on(Kind::Batch).partition("a").nth(3).always().status(400));
    store.commit_turn(&token, commit).await.unwrap();
    assert!(batches.struck() > 0);
    assert_eq!(store.pending("a", 20).await.unwrap().unwrap().message_count, 0);
    container.rig().clear_faults();
    container.pass_a_minute();
    assert!(store.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap().is_none());
    // The next turn removes them.
    send(&store, 1).await;
    let (token, attempt) = lease(&store).await;
    assert_eq!(attempt, 1);
    store.commit_turn(&token, turn("a", 1, 3, None)).await.unwrap();
    assert!(!store.dump().await.unwrap().iter().any(|line| line.starts_with("message a")));
}
