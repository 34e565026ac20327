//! The shutdown of a runtime (spec/api.md 7.4).

use crate::support::{
    ALL, CallHook, Cluster, Fault, Held, Kind, LONGEST_WAIT, Node, TestStore, activities, calls,
    orchestrations, pass,
};
use outlast::ActivityContext;
use outlast::providers::Provider;
use outlast::providers::memory::MemoryProvider;
use outlast::runtime::Runtime;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::time::Instant;

fn held_node() -> (Node, Held, tokio::sync::mpsc::UnboundedReceiver<ActivityContext>) {
    let (held, begun) = Held::new();
    (Node::new(calls("Held"), held.activity(activities(), "Held")), held, begun)
}

/// Its fetches are parked in a long poll of 30 s, in the store or in the runtime.
#[tokio::test(start_paused = true)]
async fn an_idle_runtime_shuts_down_at_once() {
    for kind in ALL {
        let cluster = Cluster::paused(kind).await;
        let runtime = cluster.start(&held_node().0).await;
        pass(Duration::from_secs(1)).await;
        let since = Instant::now();
        cluster.runtime(runtime).await.shutdown(Some(600_000)).await;
        assert_eq!(since.elapsed(), Duration::ZERO, "{kind:?}");
    }
}

/// The grace period is an upper bound: shutdown returns as soon as the activity has ended.
#[tokio::test(start_paused = true)]
async fn shutdown_returns_when_the_last_activity_has_ended() {
    let cluster = Cluster::paused(Kind::Memory).await;
    let (node, held, mut begun) = held_node();
    let number = cluster.start(&node).await;
    cluster.begin("i", "Calls", "").await;
    begun.recv().await.unwrap();
    let runtime = cluster.runtime(number).await;
    let since = Instant::now();
    let ends = tokio::spawn(runtime.shutdown(Some(600_000)));
    pass(Duration::from_secs(40)).await;
    assert!(!ends.is_finished(), "the activity still runs");
    held.release();
    ends.await.unwrap();
    assert!(since.elapsed() < Duration::from_secs(41), "{:?}", since.elapsed());
    // The lease was renewed during the shutdown, so the outcome was committed: the next runtime does not run the activity again.
    cluster.start(&node).await;
    assert_eq!(cluster.output("i").await, "attempt 1");
    cluster.end().await;
}

/// Slots that pause after an error of the store stop at once too.
#[tokio::test(start_paused = true)]
async fn a_runtime_that_pauses_after_errors_shuts_down_at_once() {
    let cluster = Cluster::paused(Kind::Memory).await;
    let hook =
        CallHook::new(|call, _| if call.starts_with("fetch_") { Fault::Transient } else { Fault::None });
    let number = cluster.start_on(hook.around(cluster.store()), &held_node().0).await;
    pass(Duration::from_secs(60)).await;
    let since = Instant::now();
    cluster.runtime(number).await.shutdown(None).await;
    assert_eq!(since.elapsed(), Duration::ZERO);
}

/// After the shutdown the runtime holds no reference to the store, and none of its tasks runs.
#[tokio::test(start_paused = true)]
async fn shutdown_drops_the_store_and_ends_all_tasks() {
    for grace in [None, Some(0), Some(10)] {
        let store = Arc::new(MemoryProvider::with_clock(TestStore::paused(Kind::Memory).await.clock));
        let renewals = CallHook::counting();
        let (held, mut begun) = Held::new();
        let runtime = Runtime::start_with_store(
            renewals.around(store.clone()),
            held.activity(activities(), "Held").build(),
            calls("Held").build(),
        )
        .await;
        let client = outlast::Client::new(store.clone());
        client.start_orchestration("i", "Calls", "").await.unwrap();
        let running = begun.recv().await.unwrap();
        pass(Duration::from_secs(20)).await;
        drop(client);
        drop(running);
        runtime.clone().shutdown(grace).await;
        assert_eq!(Arc::strong_count(&store), 1, "grace {grace:?}");
        let renewed = renewals.count("renew_work_item_lock");
        assert!(renewed > 0);
        pass(Duration::from_secs(120)).await;
        assert_eq!(renewals.count("renew_work_item_lock"), renewed, "no renewal after the shutdown");
        drop(runtime);
    }
}

/// Counts the values that are alive.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_activity_runs_after_a_shutdown() {
    for grace in [Some(0), Some(5)] {
        for kind in ALL {
            let (cluster, alive) = (Cluster::real(kind).await, Arc::new(AtomicUsize::new(0)));
            let (begun, mut seen) = tokio::sync::mpsc::unbounded_channel();
            let counted = Arc::clone(&alive);
            let work = activities().register("Endless", move |_: ActivityContext, _: String| {
                let (alive, begun) = (Alive::new(&counted), begun.clone());
                async move {
                    let _alive = alive;
                    begun.send(()).map_err(|error| error.to_string())?;
                    std::future::pending().await
                }
            });
            let number = cluster.start(&Node::new(calls("Endless"), work)).await;
            cluster.begin("a", "Calls", "").await;
            cluster.begin("b", "Calls", "").await;
            seen.recv().await.unwrap();
            seen.recv().await.unwrap();
            cluster.runtime(number).await.shutdown(grace).await;
            assert_eq!(alive.load(SeqCst), 0, "{kind:?}, grace {grace:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_shutdown_returns_at_once() {
    let cluster = Cluster::paused(Kind::Memory).await;
    let number = cluster.start(&held_node().0).await;
    let runtime = cluster.runtime(number).await;
    runtime.clone().shutdown(None).await;
    runtime.clone().shutdown(None).await;
    runtime.clone().shutdown(Some(0)).await;
    assert!(runtime.get_orchestration_descriptor("i").await.is_none());
    assert!(runtime.metrics_snapshot().is_some(), "the metrics are kept after the shutdown");
}

#[tokio::test(start_paused = true)]
async fn concurrent_shutdowns_all_wait_and_the_shortest_grace_period_applies() {
    let cluster = Cluster::paused(Kind::Memory).await;
    let (node, _held, mut begun) = held_node();
    let number = cluster.start(&node).await;
    cluster.begin("i", "Calls", "").await;
    begun.recv().await.unwrap();
    let runtime = cluster.runtime(number).await;
    let since = Instant::now();
    let long = tokio::spawn(runtime.clone().shutdown(Some(600_000)));
    pass(Duration::from_secs(5)).await;
    let short = tokio::spawn(runtime.clone().shutdown(Some(2_000)));
    pass(Duration::from_secs(1)).await;
    assert!(!long.is_finished() && !short.is_finished(), "the activity still runs");
    short.await.unwrap();
    long.await.unwrap();
    let waited = since.elapsed();
    assert!((Duration::from_secs(7)..Duration::from_secs(8)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_shutdown_can_be_repeated() {
    let cluster = Cluster::paused(Kind::Memory).await;
    let (node, held, mut begun) = held_node();
    let number = cluster.start(&node).await;
    cluster.begin("i", "Calls", "").await;
    begun.recv().await.unwrap();
    let runtime = cluster.runtime(number).await;
    let dropped = tokio::time::timeout(Duration::from_secs(3), runtime.clone().shutdown(Some(600_000))).await;
    assert!(dropped.is_err());
    held.release();
    runtime.shutdown(Some(600_000)).await;
    cluster.start(&node).await;
    assert_eq!(cluster.output("i").await, "attempt 1");
    cluster.end().await;
}

/// Wakes a thread that waits for a future without an executor.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        *self.rung.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

fn wait_without_tokio(future: impl Future<Output = ()>) {
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut future = pin!(future);
    while future.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Pending {
        let rung = bell.changed.wait_timeout_while(bell.rung.lock().unwrap(), LONGEST_WAIT, |rung| !*rung);
        let (mut rung, timeout) = rung.unwrap();
        assert!(!timeout.timed_out(), "the future was not woken");
        *rung = false;
    }
}

#[test]
fn a_shutdown_without_grace_needs_no_tokio_runtime() {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for kind in ALL {
        let (runtime, _world, mut begun) = tokio.block_on(async {
            let cluster = Cluster::real(kind).await;
            let (node, _, mut begun) = held_node();
            let number = cluster.start(&node).await;
            cluster.begin("i", "Calls", "").await;
            begun.recv().await.unwrap();
            (cluster.runtime(number).await, cluster, begun)
        });
        wait_without_tokio(runtime.shutdown(Some(0)));
        assert!(begun.try_recv().is_err());
    }
}

#[test]
fn the_future_of_shutdown_is_send() {
    fn is_send<T: Send>(_: T) {}
    fn check(runtime: Arc<Runtime>) {
        is_send(runtime.shutdown(None));
    }
    let _ = check;
}

/// Code that does not yield cannot be stopped, so the shutdown waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn shutdown_waits_for_an_activity_that_blocks_its_thread() {
    let cluster = Cluster::real(Kind::Memory).await;
    let (unblock, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(Mutex::new(blocked));
    let (begun, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let alive = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&alive);
    let work = activities().register("Blocks", move |_: ActivityContext, _: String| {
        let (alive, begun, blocked) = (Alive::new(&counted), begun.clone(), Arc::clone(&blocked));
        async move {
            let _alive = alive;
            begun.send(()).map_err(|error| error.to_string())?;
            let _ = blocked.lock().unwrap().recv_timeout(LONGEST_WAIT);
            Ok(String::new())
        }
    });
    let number = cluster.start(&Node::new(calls("Blocks"), work)).await;
    cluster.begin("i", "Calls", "").await;
    seen.recv().await.unwrap();
    let mut ends = tokio::spawn(cluster.runtime(number).await.shutdown(Some(0)));
    assert!(
        tokio::time::timeout(Duration::from_millis(50), &mut ends).await.is_err(),
        "the activity runs and cannot be stopped"
    );
    unblock.send(()).unwrap();
    ends.await.unwrap();
    assert_eq!(alive.load(SeqCst), 0);
}

/// Dropping a runtime does not stop it.
#[tokio::test]
async fn a_dropped_runtime_keeps_running() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let quick = |_: outlast::OrchestrationContext, _: String| async move { Ok("done".to_string()) };
    let all = orchestrations().register("Quick", quick).build();
    drop(Runtime::start_with_store(Arc::clone(&store), activities().build(), all).await);
    let client = outlast::Client::new(store);
    client.start_orchestration("i", "Quick", "").await.unwrap();
    let output: Result<String, String> =
        client.wait_for_orchestration_typed("i", LONGEST_WAIT).await.unwrap();
    assert_eq!(output.as_deref(), Ok("done"));
}
