//! Log lines of the work beside turns and activities: gauges, reports of the node, retention, the observer, the drain.

use super::{activities, orchestrations, secret};
use crate::support::{LONGEST_WAIT, pass};
use async_trait::async_trait;
use outlast::providers::memory::MemoryProvider;
use outlast::providers::{NodeReport, Provider, ProviderAdmin, ProviderError, StoreGauges, forward_provider};
use outlast::runtime::observer::{
    ActivityDelivery, CommitObserver, CommittedActivity, CommittedTurn, Observe,
};
use outlast::runtime::{Retention, Runtime};
use outlast::{Client, OrchestrationContext, OrchestrationStatus, RuntimeOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// A store that refuses gauges and reports, and the first deletion of audit records. Later it has no such deletion.
#[derive(Default)]
struct Refusing {
    store: MemoryProvider,
    gauges: AtomicUsize,
    reports: AtomicUsize,
    prunes: AtomicUsize,
}

fn refused<T>(call: &'static str) -> Result<T, ProviderError> {
    Err(ProviderError::permanent(call, secret("error of the store")))
}

#[async_trait]
impl Provider for Refusing {
    forward_provider!(Provider, |this| this.store, except(as_management_capability));

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }
}

#[async_trait]
impl ProviderAdmin for Refusing {
    forward_provider!(
        ProviderAdmin,
        |this| this.store,
        except(get_gauges, announce_node, remove_node, prune_audit)
    );

    async fn get_gauges(&self) -> Result<StoreGauges, ProviderError> {
        self.gauges.fetch_add(1, Ordering::Relaxed);
        refused("get_gauges")
    }

    async fn announce_node(
        &self,
        _report: &NodeReport,
        _live: Duration,
        _kept: Duration,
    ) -> Result<bool, ProviderError> {
        self.reports.fetch_add(1, Ordering::Relaxed);
        refused("announce_node")
    }

    async fn remove_node(&self, _node_id: &str) -> Result<bool, ProviderError> {
        refused("remove_node")
    }

    async fn prune_audit(&self, _before_ms: u64, _limit: usize) -> Result<Option<u64>, ProviderError> {
        match self.prunes.fetch_add(1, Ordering::Relaxed) {
            0 => refused("prune_audit"),
            _ => Ok(None),
        }
    }
}

/// An observer with a bug, and the number of its turns.
struct Panics(Arc<AtomicUsize>);

impl Observe for Panics {
    fn observer(&self, _store: Arc<dyn Provider>) -> Arc<dyn CommitObserver> {
        Arc::new(Self(Arc::clone(&self.0)))
    }
}

#[async_trait]
impl CommitObserver for Panics {
    fn turn_committed(&self, turn: CommittedTurn<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("{:?}", turn.events);
    }

    fn activity_committed(&self, _activity: CommittedActivity<'_>) {}

    async fn traceparent(&self, _delivery: &ActivityDelivery<'_>) -> Option<String> {
        None
    }
}

pub(super) async fn run(log_error_texts: bool) {
    let store = Arc::new(Refusing::default());
    let turns = Arc::new(AtomicUsize::new(0));
    let mut options = RuntimeOptions {
        log_error_texts,
        node_heartbeat: Some(Duration::from_millis(100)),
        observer: Some(Arc::new(Panics(Arc::clone(&turns)))),
        retention: Some(Retention {
            audit_for: Some(Duration::from_millis(1)),
            every: Duration::from_millis(20),
            ..Retention::ended_for(Duration::from_millis(1))
        }),
        ..RuntimeOptions::default()
    };
    options.observability.gauge_poll_interval = Duration::from_millis(10);
    let echo = |_: OrchestrationContext, input: String| async move { Ok(input) };
    let registry = orchestrations().register("Echo", echo).build();
    let runtime = Runtime::start_with_options(store.clone(), activities().build(), registry, options).await;
    let at_least = async |calls: &AtomicUsize, count: usize| {
        let until = Instant::now() + LONGEST_WAIT;
        while calls.load(Ordering::Relaxed) < count {
            assert!(Instant::now() < until, "the store is not called");
            pass(Duration::from_millis(5)).await;
        }
    };
    at_least(&store.gauges, 1).await;
    at_least(&store.reports, 2).await;
    // The second pass ends without an error, and a later one deletes the instance.
    at_least(&store.prunes, 2).await;
    let client = Client::new(store.clone());
    client.start_orchestration("echo", "Echo", secret("input")).await.unwrap();
    at_least(&turns, 1).await;
    let until = Instant::now() + LONGEST_WAIT;
    while client.get_orchestration_status("echo").await.unwrap() != OrchestrationStatus::NotFound {
        assert!(Instant::now() < until, "retention deletes the instance");
        pass(Duration::from_millis(5)).await;
    }
    // No client starts this instance.
    client.wait_for_orchestration("missing", Duration::from_millis(1)).await.unwrap_err();
    drain(runtime).await;
}

/// Ends the runtime by a signal to this process.
async fn drain(runtime: Arc<Runtime>) {
    let draining = runtime.run_until_signal(LONGEST_WAIT);
    let sent = std::process::Command::new("kill").args(["-TERM", &std::process::id().to_string()]).status();
    assert!(sent.unwrap().success(), "kill");
    assert_eq!(draining.await.unwrap(), "SIGTERM");
}
