//! Reports of nodes: what a runtime stores about itself, and when.

use async_trait::async_trait;
use outlast_engine::OrchestrationContext;
use outlast_memory::MemoryProvider;
use outlast_provider::{
    Clock, NodeLoad, NodeRecord, NodeReport, Provider, ProviderAdmin, ProviderError, TagFilter,
    forward_provider, saturating_ms,
};
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use outlast_runtime::{Client, LostLeases, OrchestrationStatus, Runtime, RuntimeOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::Instant;

const BEAT: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_secs(60);

async fn order(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.schedule_activity(if input.is_empty() { "Charge" } else { "Echo" }, input).await
}

async fn start(store: Arc<dyn Provider>, options: RuntimeOptions) -> Arc<Runtime> {
    let activities = ActivityRegistry::builder()
        .register("Charge", |_, _: String| std::future::pending::<Result<String, String>>())
        .register("Echo", |_, input: String| async { Ok(input) })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Order", order)
        .register_versioned("Order", "1.5.0", order)
        .build();
    Runtime::start_with_options(store, activities, orchestrations, options).await
}

fn options(node: &str) -> RuntimeOptions {
    RuntimeOptions {
        worker_node_id: Some(node.to_string()),
        build_id: "9f3c".to_string(),
        worker_concurrency: 4,
        worker_lock_timeout: LEASE,
        worker_tag_filter: TagFilter::default_and(["gpu"]),
        ..RuntimeOptions::default()
    }
}

/// The virtual time as the store's time.
struct TokioClock(Instant);

impl Clock for TokioClock {
    fn now_ms(&self) -> u64 {
        1_000_000 + saturating_ms(self.0.elapsed())
    }
}

/// Waits until the reports fulfil the condition.
async fn reported(client: &Client, is_so: impl Fn(&[NodeRecord]) -> bool) -> Vec<NodeRecord> {
    for _ in 0..10_000 {
        let found = client.node_records().await.unwrap().expect("the store keeps reports");
        if is_so(&found) {
            return found;
        }
        tokio::time::advance(Duration::from_millis(10)).await;
    }
    panic!("the reports do not become so");
}

#[tokio::test(start_paused = true)]
async fn node_reports_its_handlers_work_and_leases() {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());
    let runtime = start(store.clone(), options("a1")).await;
    client.start_orchestration("o-1", "Order", "").await.unwrap();
    let found =
        reported(&client, |nodes| nodes.first().is_some_and(|node| !node.report.leases.is_empty())).await;
    let NodeRecord { report, .. } = &found[0];
    assert_eq!((report.node_id.as_str(), report.build.as_str()), ("a1", "9f3c"));
    assert_eq!(report.pid, std::process::id());
    assert_eq!(report.orchestrations.len(), 1);
    assert_eq!(report.orchestrations[0].versions, ["1.0.0", "1.5.0"]);
    assert_eq!(report.activities, ["Charge", "Echo"], "without built-in activities");
    assert!(report.tags.take(None) && report.tags.take(Some("gpu")) && !report.tags.take(Some("cpu")));
    assert_eq!(report.running_turns, NodeLoad { running: 0, limit: 2 });
    assert_eq!(report.running_activities, NodeLoad { running: 1, limit: 4 });
    let leases: Vec<_> =
        report.leases.iter().map(|lease| (lease.instance.as_str(), lease.activity)).collect();
    assert_eq!(leases, [("o-1", Some((1, 2)))]);
    assert!(!found[0].is_lost());
    runtime.shutdown(Some(10)).await;
    assert_eq!(client.node_records().await.unwrap(), Some(Vec::new()), "a clean shutdown removes the report");
}

#[tokio::test(start_paused = true)]
async fn crashed_node_becomes_lost_with_its_leases() {
    let store = Arc::new(MemoryProvider::with_clock(Arc::new(TokioClock(Instant::now()))));
    let client = Client::new(store.clone());
    let crashing = start(store.clone(), options("a1")).await;
    client.start_orchestration("o-1", "Order", "").await.unwrap();
    reported(&client, |nodes| nodes.first().is_some_and(|node| !node.report.leases.is_empty())).await;
    crashing.shutdown(Some(0)).await;
    reported(&client, |nodes| nodes[0].is_lost()).await;
    let nodes = client.list_nodes().await.unwrap().unwrap();
    let LostLeases { count, end_in_ms } = nodes[0].lost_leases;
    assert_eq!(count, 1);
    assert!((1..=60_000).contains(&end_in_ms), "{end_in_ms}");
    // Another node takes the activity over when its lease has ended.
    let other = start(store.clone(), options("a2")).await;
    reported(&client, |nodes| nodes.iter().any(|node| !node.is_lost() && !node.report.leases.is_empty()))
        .await;
    let nodes = client.list_nodes().await.unwrap().unwrap();
    let lost: Vec<_> = nodes.iter().map(|node| (node.record.is_lost(), node.lost_leases.count)).collect();
    assert_eq!(lost, [(true, 0), (false, 0)], "the lease of the lost node has a new owner");
    other.shutdown(Some(0)).await;
}

#[tokio::test(start_paused = true)]
async fn worker_without_turns_reports_no_orchestrations_and_no_heartbeat_reports_nothing() {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());
    let worker = RuntimeOptions { orchestration_concurrency: 0, ..options("w") };
    let turns = RuntimeOptions { worker_concurrency: 0, ..options("t") };
    let silent = RuntimeOptions { node_heartbeat: None, ..options("silent") };
    let runtimes = [
        start(store.clone(), worker).await,
        start(store.clone(), turns).await,
        start(store.clone(), silent).await,
    ];
    let nodes = reported(&client, |nodes| nodes.len() == 2).await;
    let [turns, worker] = [&nodes[0].report, &nodes[1].report];
    assert_eq!((turns.orchestrations.len(), turns.activities.len(), turns.tags.take(None)), (1, 0, false));
    assert_eq!((worker.orchestrations.len(), worker.activities.len(), worker.tags.take(None)), (0, 2, true));
    for runtime in runtimes {
        runtime.shutdown(None).await;
    }
}

/// A store that counts reports, and refuses them.
struct Counting {
    store: MemoryProvider,
    reports: AtomicUsize,
    refuses: bool,
}

#[async_trait]
impl Provider for Counting {
    forward_provider!(Provider, |this| this.store, except(as_management_capability));

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }
}

#[async_trait]
impl ProviderAdmin for Counting {
    forward_provider!(ProviderAdmin, |this| this.store, except(announce_node));

    async fn announce_node(
        &self,
        report: &NodeReport,
        live: Duration,
        kept: Duration,
    ) -> Result<bool, ProviderError> {
        self.reports.fetch_add(1, Relaxed);
        match self.refuses {
            true => Err(ProviderError::permanent("announce_node", "refused")),
            false => self.store.announce_node(report, live, kept).await,
        }
    }
}

fn counting(refuses: bool) -> Arc<Counting> {
    Arc::new(Counting { store: MemoryProvider::new(), reports: AtomicUsize::new(0), refuses })
}

#[tokio::test(start_paused = true)]
async fn idle_node_reports_once_per_interval() {
    let store = counting(false);
    let runtime = start(store.clone(), options("a1")).await;
    let minutes = 10;
    for _ in 0..minutes * 600 {
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    let (reports, beats) = (store.reports.load(Relaxed), minutes * 60 / BEAT.as_secs() as usize);
    assert!(reports.abs_diff(beats) <= beats / 20, "{reports} reports in {minutes} minutes");
    runtime.shutdown(None).await;
}

#[tokio::test(start_paused = true)]
async fn refused_reports_fail_no_work() {
    let store = counting(true);
    let client = Client::new(store.clone());
    let runtime = start(store.clone(), options("a1")).await;
    for nth in 0..3 {
        for _ in 0..100 {
            tokio::time::advance(BEAT / 50).await;
        }
        let id = format!("o-{nth}");
        client.start_orchestration(&id, "Order", "paid").await.unwrap();
        let ended = client.wait_for_orchestration(&id, LEASE).await.unwrap();
        assert!(matches!(ended, OrchestrationStatus::Completed { .. }), "{ended:?}");
    }
    assert!(store.reports.load(Relaxed) >= 5, "the node reports again after a refusal");
    runtime.shutdown(None).await;
}
