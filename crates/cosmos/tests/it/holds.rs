//! Messages of held instances, and activities of other workers: queries for ready work do not read them.

use crate::factory::fresh_config;
use crate::kit::{batches_of, run, signal, turn};
use crate::script::{again, start};
use futures::StreamExt;
use outlast_conformance::model::Hand;
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider, CosmosDBProviderConfig};
use outlast_cosmos_rig::{Fault, Kind, Record, Rig, Target, Totals};
use outlast_provider::model::WorkItem;
use outlast_provider::{
    Clock, HeldCounts, Hold, HoldKind, HoldOutcome, Provider, ProviderAdmin, ReleaseOutcome, TagFilter,
};
use std::sync::Arc;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

struct World {
    target: Target,
    config: CosmosDBProviderConfig,
    clock: Arc<Hand>,
    store: CosmosDBProvider,
}

impl World {
    async fn new(options: CosmosDBOptions) -> Self {
        let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
        let clock = Arc::new(Hand::default());
        clock.set(10 * 24 * 3_600_000);
        let given: Option<Arc<dyn Clock>> = Some(clock.clone());
        let options = CosmosDBOptions { clock: given, ..options };
        let config = fresh_config(&target);
        let store = CosmosDBProvider::open(config.clone(), options).await.unwrap();
        Self { target, config, clock, store }
    }

    fn rig(&self) -> &Rig {
        self.target.rig().unwrap()
    }

    fn pass(&self, seconds: u64) {
        self.clock.set(self.clock.now_ms() + seconds * 1_000);
    }

    /// The queries over all partitions since the last call.
    fn queries(&self) -> Vec<Record> {
        let records = self.rig().take_recorded();
        let all = |record: &Record| record.kind == Kind::Query && record.partition.is_none();
        let queries: Vec<Record> = records.into_iter().filter(all).collect();
        for query in &queries {
            assert!(query.unindexed.is_empty(), "a query scans: {query:?}");
        }
        queries
    }

    async fn fetches_nothing(&self) {
        let fetched = self.store.fetch_orchestration_item(HOUR, Duration::ZERO, None).await.unwrap();
        assert!(fetched.is_none());
    }
}

async fn hold(store: &CosmosDBProvider, instance: &str) {
    let hold = Hold { kind: HoldKind::Paused, actor: "ann".into(), reason: "looks".into() };
    assert_eq!(store.hold_instance(instance, &hold).await.unwrap(), HoldOutcome::Held);
}

fn rows(queries: &[Record], part: &str) -> usize {
    let of_part = queries.iter().filter(|query| query.query.as_deref().unwrap_or_default().contains(part));
    of_part.map(|query| query.documents_read).sum()
}

/// Holds instances with a message from before the hold and one from after it.
async fn hold_with_messages(store: &CosmosDBProvider, numbers: std::ops::Range<usize>) {
    for nth in numbers {
        let id = format!("held-{nth}");
        run(store, &id, turn(&id, 1, 1, None)).await.unwrap();
        again(|| store.enqueue_for_orchestrator(signal(&id), None)).await.unwrap();
        hold(store, &id).await;
        again(|| store.enqueue_for_orchestrator(signal(&id), None)).await.unwrap();
    }
}

#[tokio::test]
async fn repair_queries_and_gauges_read_no_messages_of_held_instances() {
    let options = CosmosDBOptions { counted_exactly: 5, ..CosmosDBOptions::default() };
    let world = World::new(options).await;
    let mut held = 0;
    for count in [3, 30] {
        hold_with_messages(&world.store, held..held + count).await;
        held += count;
        // The first fetch finds the messages that arrived after the holds, and sets them aside.
        world.fetches_nothing().await;
        world.queries();
        for _ in 0..3 {
            world.pass(61);
            world.fetches_nothing().await;
            let gauges = world.store.get_gauges().await.unwrap();
            let messages = gauges.orchestrator_backlog.unwrap();
            assert_eq!((messages.due, messages.delayed), (0, 0));
            world.store.get_queue_depths().await.unwrap();
        }
        let queries = world.queries();
        assert!(queries.iter().any(|query| query.query.as_deref().unwrap().contains("@horizon")));
        let all: usize = queries.iter().map(|query| query.documents_read).sum();
        let running = rows(&queries, "c.st = 'Running'");
        assert_eq!(all - running, 0, "{count} held instances are read: {queries:?}");
    }
    world.queries();
    // Reads of the number of held instances have a bound, and converge.
    let counted = HeldCounts { instances: held as u64, messages: 2 * held as u64 };
    let mut found = HeldCounts::default();
    for minute in 0.. {
        assert!(minute < 60, "{found:?}");
        world.pass(60);
        found = world.store.count_held().await.unwrap().unwrap();
        let sizes = rows(&world.queries(), "c.aside");
        assert!(sizes <= 2 * 4 * 6 + 4 * 5, "{sizes} rows in minute {minute}");
        if found == counted {
            break;
        }
    }
}

/// The requests of three minutes in which nothing is due.
async fn idle(world: &World) -> Totals {
    world.queries();
    let mut records = Vec::new();
    for _ in 0..3 {
        world.pass(61);
        world.fetches_nothing().await;
        records.extend(world.queries());
    }
    Totals::of(&records)
}

/// Stores copies of the held instance "held-0", many at a time.
async fn copy_held(store: &CosmosDBProvider, numbers: std::ops::Range<usize>) {
    const AT_A_TIME: usize = 32;
    let documents = &store.documents("held-0").await.unwrap();
    let copies = futures::stream::iter(numbers).map(|nth| async move {
        store.copy_instance(documents, "held-0", &format!("held-{nth}")).await.unwrap();
    });
    copies.buffer_unordered(AT_A_TIME).collect::<()>().await;
}

/// The first instances are held by calls, the others are copies. The emulator takes minutes to store 10,000 of them.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_process_reads_nothing_and_asks_no_more_with_2_000_held_instances_than_with_none() {
    const CALLED: usize = 50;
    const HELD: usize = 2_000;
    let world = World::new(CosmosDBOptions::default()).await;
    world.fetches_nothing().await;
    let before = idle(&world).await;
    hold_with_messages(&world.store, 0..CALLED).await;
    // The first fetches set the messages aside that arrived after the holds.
    idle(&world).await;
    copy_held(&world.store, CALLED..HELD).await;
    let after = idle(&world).await;
    assert_eq!((before.documents_read, after.documents_read), (0, 0));
    // The background task looks by the time of the machine, so that a round of queries may be more or less.
    let round = before.requests / 3;
    assert!(round > 0, "the process looks for ready work once a minute: {before:?}");
    assert!(after.requests.abs_diff(before.requests) <= round, "{before:?}\n{after:?}");
    let of_one = |totals: &Totals| totals.charge / totals.requests as f64;
    assert_eq!(of_one(&after), of_one(&before), "a query costs the same");

    let gauges = world.store.get_gauges().await.unwrap();
    let messages = gauges.orchestrator_backlog.unwrap();
    assert_eq!((messages.due, messages.delayed), (0, 0));
    world.queries();
    let copy = format!("held-{}", HELD - 1);
    assert_eq!(world.store.release_instance(&copy).await.unwrap(), ReleaseOutcome::Released);
    let fetched = world.store.fetch_orchestration_item(HOUR, Duration::from_secs(10), None).await.unwrap();
    let (item, ..) = fetched.expect("a turn waits");
    assert_eq!((item.instance, item.messages), (copy.clone(), vec![signal(&copy), signal(&copy)]));
}

/// The messages of the next turn of an instance: their numbers.
async fn messages_of(store: &CosmosDBProvider, instance: &str) -> Vec<String> {
    let fetched = store.fetch_orchestration_item(HOUR, Duration::from_secs(10), None).await.unwrap();
    let (item, ..) = fetched.expect("a turn waits");
    assert_eq!(item.instance, instance);
    let name = |message: &WorkItem| match message {
        WorkItem::ExternalRaised { data, .. } => data.clone(),
        other => other.kind_name().to_string(),
    };
    item.messages.iter().map(name).collect()
}

fn numbered(instance: &str, nth: usize) -> WorkItem {
    WorkItem::ExternalRaised { instance: instance.into(), name: "go".into(), data: nth.to_string() }
}

/// An instance that is held with four messages from before the hold and three from after it, which a fetch has set aside.
async fn held_with_seven(world: &World) {
    run(&world.store, "a", turn("a", 1, 1, None)).await.unwrap();
    for nth in 0..4 {
        world.store.enqueue_for_orchestrator(numbered("a", nth), None).await.unwrap();
    }
    hold(&world.store, "a").await;
    for nth in 4..7 {
        world.store.enqueue_for_orchestrator(numbered("a", nth), None).await.unwrap();
    }
    world.fetches_nothing().await;
    world.pass(61);
    world.fetches_nothing().await;
    assert_eq!(world.store.count_held().await.unwrap().unwrap().messages, 7);
}

#[tokio::test]
async fn a_release_delivers_all_messages_in_their_order_also_after_the_death_of_its_process() {
    let order: Vec<String> = (0..8).map(|nth| nth.to_string()).collect();
    // The first batch ends the hold. A process that dies after it leaves messages aside.
    for (batch, dies_after) in [(100, None), (4, None), (4, Some(1)), (4, Some(2)), (2, Some(3))] {
        let world = World::new(batches_of(batch)).await;
        held_with_seven(&world).await;
        let death = dies_after.map(|nth| {
            let writes = Fault::on(Kind::Batch).partition("a").id("i").nth(nth + 1);
            world.rig().fault(writes.always().status(400))
        });
        assert_eq!(world.store.release_instance("a").await.unwrap(), ReleaseOutcome::Released);
        if let Some(death) = death {
            assert!(death.struck() > 0, "batches of {batch}");
            world.rig().clear_faults();
        }
        assert_eq!(world.store.held_instance("a").await.unwrap(), None);
        world.store.enqueue_for_orchestrator(numbered("a", 7), None).await.unwrap();
        assert_eq!(messages_of(&world.store, "a").await, order, "batches of {batch}, {dies_after:?}");
    }
}

#[tokio::test]
async fn another_process_finds_the_messages_of_a_released_instance_without_a_hint() {
    let world = World::new(batches_of(4)).await;
    held_with_seven(&world).await;
    let clock: Option<Arc<dyn Clock>> = Some(world.clock.clone());
    let options = CosmosDBOptions { clock, ..batches_of(4) };
    let client = CosmosDBProvider::open(world.config.clone(), options).await.unwrap();
    let hints = world.rig().fault(Fault::on(Kind::Create).partition("~ready-0").always().status(400));
    assert_eq!(client.release_instance("a").await.unwrap(), ReleaseOutcome::Released);
    assert!(hints.struck() > 0, "the hint is lost");
    world.pass(61);
    let order: Vec<String> = (0..7).map(|nth| nth.to_string()).collect();
    assert_eq!(messages_of(&world.store, "a").await, order);
}

#[tokio::test]
async fn a_cancellation_delivers_the_messages_that_were_set_aside_before_it() {
    for batch in [100, 4] {
        let world = World::new(batches_of(batch)).await;
        held_with_seven(&world).await;
        let cancel = WorkItem::CancelInstance { instance: "a".into(), reason: "stop".into() };
        world.store.enqueue_for_orchestrator(cancel, None).await.unwrap();
        let mut order: Vec<String> = (0..7).map(|nth| nth.to_string()).collect();
        order.push("CancelInstance".to_string());
        assert_eq!(messages_of(&world.store, "a").await, order, "batches of {batch}");
    }
}

fn tagged(id: u64, tag: Option<&str>) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: "a".into(),
        execution_id: 1,
        id,
        name: "Work".into(),
        input: String::new(),
        session_id: None,
        tag: tag.map(str::to_string),
    }
}

#[tokio::test]
async fn repair_queries_read_the_activities_that_a_fetch_of_the_process_takes_and_no_others() {
    let filters = [
        (TagFilter::DefaultOnly, 1),
        (TagFilter::tags(["gpu"]), 2),
        (TagFilter::default_and(["gpu", ""]), 1 + 2 + 4),
        (TagFilter::Any, 1 + 2 + 4 + 8),
    ];
    for (filter, expected) in filters {
        let world = World::new(CosmosDBOptions::default()).await;
        let mut id = 0;
        for (tag, count) in [(None, 1), (Some("gpu"), 2), (Some(""), 4), (Some("other"), 8)] {
            for _ in 0..count {
                id += 1;
                world.store.enqueue_for_worker(tagged(id, tag)).await.unwrap();
            }
        }
        world.pass(120);
        world.queries();
        let mut taken = 0;
        while world.store.fetch_work_item(HOUR, Duration::ZERO, None, &filter).await.unwrap().is_some() {
            taken += 1;
        }
        assert_eq!(taken, expected, "{filter:?}");
        assert_eq!(rows(&world.queries(), "@horizon"), expected, "{filter:?}");
    }
}

#[tokio::test]
async fn a_held_start_is_released_with_its_messages() {
    let world = World::new(batches_of(4)).await;
    world.store.enqueue_for_orchestrator(start("a"), None).await.unwrap();
    hold(&world.store, "a").await;
    world.store.enqueue_for_orchestrator(numbered("a", 1), None).await.unwrap();
    world.fetches_nothing().await;
    assert_eq!(world.store.list_unstarted(None, 9).await.unwrap(), ["a"]);
    assert_eq!(world.store.release_instance("a").await.unwrap(), ReleaseOutcome::Released);
    assert_eq!(messages_of(&world.store, "a").await, ["StartOrchestration", "1"]);
}
