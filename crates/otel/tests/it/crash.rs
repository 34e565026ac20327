//! Traces across crashes: runtimes that end between commits, a killed process, refused commits.

use crate::collector::{Answer, Collector, Span};
use crate::program::{Node, WAIT, activities, exporting, orchestrations, sqlite, stores};
use crate::shape::{named, only, tree};
use async_trait::async_trait;
use outlast::providers::memory::MemoryProvider;
use outlast::providers::{Provider, ProviderError, TurnCommit, forward_provider};
use outlast::runtime::Runtime;
use outlast::{ActivityContext, Client, EventKind, RuntimeOptions};
use outlast_otel::Traces;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[track_caller]
fn assert_steps(spans: &[Span]) {
    let expected = [
        "orchestration Steps",
        "  activity Work",
        "  activity Work",
        "  activity Work",
        "  orchestration.started",
        "  timer",
        "  wait one",
        "  wait two",
    ];
    assert_eq!(tree(spans), expected);
}

/// Waits until the instance waits for an event, and ends the runtime without a grace period, as a crash does.
async fn crash_at(node: Node, collector: &Collector, event: &str) {
    loop {
        let history = node.client.read_execution_history("s", 1).await.unwrap_or_default();
        let waits =
            |kind: &EventKind| matches!(kind, EventKind::ExternalSubscribed { name } if name == event);
        if history.iter().any(|event| waits(&event.kind)) {
            break;
        }
        tokio::task::yield_now().await;
    }
    // The collector has the spans of all commits so far, so no commit is between the store and the observer.
    let (works, others): (usize, &[&str]) = match event {
        "one" => (1, &["orchestration.started", "timer"]),
        _ => (2, &["wait one"]),
    };
    let has = |spans: &[Span], name: &str, number: usize| named(spans, name).len() == number;
    let arrived =
        |spans: &[Span]| others.iter().all(|name| has(spans, name, 1)) && has(spans, "activity Work", works);
    collector.until(arrived).await;
    node.runtime.shutdown(Some(0)).await;
    node.traces.flush(WAIT).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_three_runtimes_ran_has_one_tree_without_repeated_spans() {
    for store in stores().await {
        let collector = Collector::start(Answer::Accept).await;
        let node = Node::start(&store.provider, exporting(&collector)).await;
        node.client.start_orchestration("s", "Steps", "").await.unwrap();
        crash_at(node, &collector, "one").await;
        let node = Node::start(&store.provider, exporting(&collector)).await;
        node.client.raise_event("s", "one", "").await.unwrap();
        crash_at(node, &collector, "two").await;
        let before = collector.spans();
        let node = Node::start(&store.provider, exporting(&collector)).await;
        node.client.raise_event("s", "two", "").await.unwrap();
        node.ended("s").await;
        node.end().await;
        assert_steps(&collector.spans());
        let (wait, all) = (only(&before, "wait one").clone(), collector.spans());
        assert!(wait.start_ns < wait.end_ns, "its start was committed by the first runtime");
        assert!(only(&all, "wait two").start_ns >= wait.end_ns);
    }
}

const FILE: &str = "OUTLAST_OTEL_TEST_FILE";
const URL: &str = "OUTLAST_OTEL_TEST_URL";

/// The process that `a_killed_process_and_its_successor_make_one_tree` kills. Without that parent it has nothing to do.
#[tokio::test(flavor = "multi_thread")]
async fn runs_until_it_is_killed() {
    let (Ok(file), Ok(url)) = (std::env::var(FILE), std::env::var(URL)) else { return };
    let store = sqlite(&PathBuf::from(file)).await;
    let traces = Traces::otlp(&url).unwrap().delay(Duration::from_millis(1)).start();
    let options = RuntimeOptions {
        observer: Some(traces.observe()),
        worker_lock_timeout: Duration::from_secs(2),
        worker_lock_renewal_buffer: Duration::from_secs(1),
        ..RuntimeOptions::default()
    };
    let hang = activities().register("Hang", |_: ActivityContext, _: String| std::future::pending());
    let runtime = Runtime::builder().store(Arc::clone(&store)).orchestrations(hangs()).options(options);
    let _runtime = runtime.register_activities(hang).start().await.unwrap();
    Client::new(store).start_orchestration("h", "Hangs", "").await.unwrap();
    std::future::pending::<()>().await;
}

fn hangs() -> outlast::OrchestrationRegistry {
    let hangs = |ctx: outlast::OrchestrationContext, _: String| async move {
        ctx.schedule_activity("Work", "").await?;
        ctx.schedule_activity("Hang", "").await
    };
    outlast::OrchestrationRegistry::builder_from(&orchestrations()).register("Hangs", hangs).build()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_and_its_successor_make_one_tree() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("killed.db");
    let collector = Collector::start(Answer::Accept).await;
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["crash::runs_until_it_is_killed", "--exact", "--nocapture"])
        .env(FILE, &file)
        .env(URL, &collector.url)
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    collector.until(|spans| !named(spans, "activity Work").is_empty()).await;
    let store = sqlite(&file).await;
    let client = Client::new(Arc::clone(&store));
    // The activity that hangs was leased, so its next delivery is the second.
    let admin = store.as_management_capability().unwrap();
    loop {
        let pending = admin.pending("h", 10).await.unwrap().unwrap();
        if pending.activities.iter().any(|activity| activity.attempt_count > 0) {
            break;
        }
        tokio::task::yield_now().await;
    }
    child.kill().await.unwrap();
    let traces = exporting(&collector);
    let options = RuntimeOptions { observer: Some(traces.observe()), ..RuntimeOptions::default() };
    let work = activities().register("Hang", |_: ActivityContext, _: String| async { Ok(String::new()) });
    let runtime = Runtime::builder().store(store).orchestrations(hangs()).options(options);
    let runtime = runtime.register_activities(work).start().await.unwrap();
    client.wait_for_orchestration("h", WAIT).await.unwrap();
    runtime.shutdown(None).await;
    traces.shutdown(WAIT).await.unwrap();
    let spans = collector.spans();
    let expected = ["orchestration Hangs", "  activity Hang", "  activity Work", "  orchestration.started"];
    assert_eq!(tree(&spans), expected);
    assert_eq!(only(&spans, "activity Hang").attribute("outlast.attempt"), "2");
    assert!(only(&spans, "activity Hang").start_ns > only(&spans, "activity Work").end_ns);
}

/// Refuses the first commit of a turn that fires a timer.
struct Refusing {
    inner: Arc<dyn Provider>,
    has_refused: AtomicBool,
}

#[async_trait]
impl Provider for Refusing {
    forward_provider!(Provider, |this| this.inner, except(commit_turn));

    async fn commit_turn(&self, token: &str, commit: TurnCommit) -> Result<Option<u64>, ProviderError> {
        let fires =
            commit.history_delta.iter().any(|event| matches!(event.kind, EventKind::TimerFired { .. }));
        if fires && !self.has_refused.swap(true, Ordering::Relaxed) {
            return Err(ProviderError::permanent("commit_turn", "refused by the test"));
        }
        self.inner.commit_turn(token, commit).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_commit_and_replays_make_no_spans() {
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let refusing = Arc::new(Refusing { inner, has_refused: AtomicBool::new(false) });
    let store: Arc<dyn Provider> = Arc::clone(&refusing) as Arc<dyn Provider>;
    let collector = Collector::start(Answer::Accept).await;
    // Without warm executions every turn replays the whole history.
    let cold = RuntimeOptions { warm_executions: 0, ..RuntimeOptions::default() };
    let node = Node::with_options(&store, exporting(&collector), cold, activities()).await;
    node.client.start_orchestration("s", "Steps", "").await.unwrap();
    for event in ["one", "two"] {
        loop {
            let history = node.client.read_execution_history("s", 1).await.unwrap_or_default();
            let waits =
                |kind: &EventKind| matches!(kind, EventKind::ExternalSubscribed { name } if name == event);
            if history.iter().any(|event| waits(&event.kind)) {
                break;
            }
            tokio::task::yield_now().await;
        }
        node.client.raise_event("s", event, "").await.unwrap();
    }
    node.ended("s").await;
    node.end().await;
    assert!(refusing.has_refused.load(Ordering::Relaxed));
    assert_steps(&collector.spans());
}
