//! Paused and parked instances, and their release, on the memory store.

use async_trait::async_trait;
use outlast_engine::OrchestrationContext;
use outlast_memory::MemoryProvider;
use outlast_model::{AppErrorKind, ErrorDetails, HeldInstance, HoldKind};
use outlast_provider::{
    Clock, Provider, ProviderAdmin, ProviderError, ReleaseOutcome, forward_provider, saturating_ms,
};
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry, OrchestrationRegistryBuilder};
use outlast_runtime::{Client, ClientError, OnMisfit, OrchestrationStatus, Runtime, RuntimeOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

const LONG: Duration = Duration::from_secs(60);

async fn waits(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let first = ctx.schedule_wait("first").await;
    let second = ctx.schedule_wait("second").await;
    Ok(format!("{first} {second}"))
}

/// The same name with code that does not fit the history of `waits`.
async fn changed(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.schedule_timer(Duration::from_secs(1)).await;
    Ok(String::new())
}

/// The same decisions as `waits` until the first event arrives.
async fn panics(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.schedule_wait("first").await;
    panic!("s3cret")
}

/// The virtual time as the store's time.
struct TokioClock(Instant);

impl Clock for TokioClock {
    fn now_ms(&self) -> u64 {
        1_000_000 + saturating_ms(self.0.elapsed())
    }
}

/// A store whose time is the virtual time.
fn clocked() -> Arc<MemoryProvider> {
    Arc::new(MemoryProvider::with_clock(Arc::new(TokioClock(Instant::now()))))
}

fn options(build_id: &str) -> RuntimeOptions {
    RuntimeOptions {
        on_misfit: OnMisfit::Park,
        build_id: build_id.to_string(),
        max_attempts: 2,
        unregistered_backoff: outlast_runtime::UnregisteredBackoffConfig {
            base_delay: Duration::from_millis(1),
            max_delay: Duration::from_millis(2),
        },
        ..RuntimeOptions::default()
    }
}

async fn start(
    store: &Arc<MemoryProvider>,
    orchestrations: OrchestrationRegistryBuilder,
    options: RuntimeOptions,
) -> Arc<Runtime> {
    start_with(store, ActivityRegistry::default(), orchestrations, options).await
}

async fn start_with(
    store: &Arc<MemoryProvider>,
    activities: ActivityRegistry,
    orchestrations: OrchestrationRegistryBuilder,
    options: RuntimeOptions,
) -> Arc<Runtime> {
    let store = Arc::clone(store) as Arc<dyn Provider>;
    Runtime::start_with_options(store, activities, orchestrations.build(), options).await
}

fn fitting() -> OrchestrationRegistryBuilder {
    OrchestrationRegistry::builder().register("Waits", waits)
}

/// A minute passes, in which every task runs.
async fn pass() {
    for _ in 0..1_000 {
        tokio::time::advance(LONG / 1_000).await;
    }
}

/// A store that fails the first call of each method that a runtime needs to release parked instances.
struct FailsFirst {
    store: Arc<MemoryProvider>,
    lists: AtomicUsize,
    releases: AtomicUsize,
}

fn fail_first(calls: &AtomicUsize, call: &'static str) -> Result<(), ProviderError> {
    match calls.fetch_add(1, Ordering::SeqCst) {
        0 => Err(ProviderError::retryable(call, "the connection is lost")),
        _ => Ok(()),
    }
}

#[async_trait]
impl Provider for FailsFirst {
    forward_provider!(Provider, |this| this.store, except(as_management_capability));

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }
}

#[async_trait]
impl ProviderAdmin for FailsFirst {
    forward_provider!(ProviderAdmin, |this| this.store, except(list_held, release_instance));

    async fn list_held(&self, after: Option<&str>, limit: usize) -> Result<Vec<HeldInstance>, ProviderError> {
        fail_first(&self.lists, "list_held")?;
        self.store.list_held(after, limit).await
    }

    async fn release_instance(&self, instance: &str) -> Result<ReleaseOutcome, ProviderError> {
        fail_first(&self.releases, "release_instance")?;
        self.store.release_instance(instance).await
    }
}

/// Waits until the instance is held.
async fn held(client: &Client, instance: &str) -> HeldInstance {
    for _ in 0..10_000 {
        if let Some(held) = client.held_instance(instance).await.unwrap() {
            return held;
        }
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    panic!("'{instance}' is not held");
}

/// Waits until the instance has this number of events.
async fn events(client: &Client, instance: &str, count: usize) {
    for _ in 0..10_000 {
        if client.read_execution_history(instance, 1).await.unwrap().len() >= count {
            return;
        }
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    panic!("'{instance}' does not go on");
}

async fn output(client: &Client, instance: &str) -> String {
    match client.wait_for_orchestration(instance, LONG).await.unwrap() {
        OrchestrationStatus::Completed { output, .. } => output,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn paused_instance_goes_on_after_resume_with_every_event() {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());
    let runtime = start(&store, fitting(), RuntimeOptions::default()).await;
    client.start_orchestration("i", "Waits", "").await.unwrap();
    events(&client, "i", 2).await;
    assert!(client.pause_instance("i", "ann", "look").await.unwrap());
    assert!(!client.pause_instance("i", "bob", "again").await.unwrap(), "it is paused already");
    let hold = client.held_instance("i").await.unwrap().unwrap().hold;
    assert_eq!((hold.kind, hold.actor.as_str(), hold.reason.as_str()), (HoldKind::Paused, "ann", "look"));
    client.raise_event("i", "first", "1").await.unwrap();
    pass().await;
    assert_eq!(client.read_execution_history("i", 1).await.unwrap().len(), 2, "no turn runs");
    assert_eq!(client.get_queue_depths().await.unwrap().orchestrator_queue, 0);
    assert_eq!(client.count_held().await.unwrap().unwrap().messages, 1);
    assert!(client.resume_instance("i", "ann", "seen").await.unwrap());
    assert!(!client.resume_instance("i", "ann", "again").await.unwrap());
    events(&client, "i", 4).await;
    client.raise_event("i", "second", "2").await.unwrap();
    assert_eq!(output(&client, "i").await, "1 2");
    let audit = client.audit_page(None, 10).await.unwrap().unwrap();
    let actions: Vec<_> =
        audit.iter().map(|record| (record.entry.action.as_str(), record.entry.reason.as_str())).collect();
    assert_eq!(actions, [("instance.resume", "seen"), ("instance.pause", "look")]);
    runtime.shutdown(None).await;
}

#[tokio::test(start_paused = true)]
async fn cancelled_instance_ends_although_it_was_paused() {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());
    let runtime = start(&store, fitting(), RuntimeOptions::default()).await;
    client.start_orchestration("i", "Waits", "").await.unwrap();
    events(&client, "i", 2).await;
    client.pause_instance("i", "ann", "").await.unwrap();
    client.cancel_instance("i", "enough").await.unwrap();
    let ended = client.wait_for_orchestration("i", LONG).await.unwrap();
    assert!(matches!(ended, OrchestrationStatus::Failed { .. }), "{ended:?}");
    let refused = client.pause_instance("i", "ann", "").await;
    assert!(
        matches!(&refused, Err(ClientError::InvalidInput { message }) if message.contains("has ended")),
        "{refused:?}"
    );
    let missing = client.pause_instance("nobody", "ann", "").await;
    assert!(matches!(missing, Err(ClientError::InstanceNotFound { .. })), "{missing:?}");
    runtime.shutdown(None).await;
}

#[tokio::test(start_paused = true)]
async fn instances_of_an_orchestration_are_paused_and_resumed_together() {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());
    let runtime = start(&store, fitting().register("Other", waits), RuntimeOptions::default()).await;
    for (id, name) in [("a", "Waits"), ("b", "Waits"), ("c", "Other")] {
        client.start_orchestration(id, name, "").await.unwrap();
        events(&client, id, 2).await;
    }
    client.pause_instance("a", "ann", "").await.unwrap();
    assert_eq!(
        client.pause_orchestration("Waits", "ann", "deploy").await.unwrap(),
        1,
        "one was paused before"
    );
    let held = client.list_held(None, 10).await.unwrap();
    assert_eq!(held.iter().map(|held| held.instance_id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(client.resume_orchestration("Other", "ann", "").await.unwrap(), 0);
    assert_eq!(client.resume_orchestration("Waits", "ann", "").await.unwrap(), 2);
    assert!(client.list_held(None, 10).await.unwrap().is_empty());
    runtime.shutdown(None).await;
}

#[tokio::test(start_paused = true)]
async fn instance_with_changed_code_is_parked_and_heals_with_the_next_build() {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());
    let runtime = start(&store, fitting(), options("1")).await;
    client.start_orchestration("i", "Waits", "").await.unwrap();
    events(&client, "i", 2).await;
    runtime.shutdown(None).await;

    let broken =
        start(&store, OrchestrationRegistry::builder().register("Waits", changed), options("2")).await;
    client.raise_event("i", "first", "1").await.unwrap();
    let parked = held(&client, "i").await;
    assert_eq!((parked.hold.kind, parked.hold.actor.as_str()), (HoldKind::Parked, "build 2"));
    assert!(parked.hold.reason.contains("the code now asks for"), "{}", parked.hold.reason);
    assert_eq!(client.read_execution_history("i", 1).await.unwrap().len(), 2, "the history is as it was");
    broken.shutdown(None).await;

    let same = start(&store, OrchestrationRegistry::builder().register("Waits", changed), options("2")).await;
    pass().await;
    assert_eq!(client.held_instance("i").await.unwrap(), Some(parked), "the same build leaves it parked");
    same.shutdown(None).await;

    let healed = start(&store, fitting(), options("3")).await;
    events(&client, "i", 4).await;
    client.raise_event("i", "second", "2").await.unwrap();
    assert_eq!(output(&client, "i").await, "1 2");
    let audit = client.audit_page(None, 10).await.unwrap().unwrap();
    let actions: Vec<_> = audit.iter().map(|record| record.entry.action.as_str()).collect();
    assert_eq!(actions, ["instance.unpark", "instance.park"]);
    healed.shutdown(None).await;
}

#[tokio::test(start_paused = true)]
async fn instance_with_panicking_code_is_parked_without_the_message_and_heals_with_the_next_build() {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());
    let panicking = || OrchestrationRegistry::builder().register("Waits", panics);
    let broken = start(&store, panicking(), options("1")).await;
    client.start_orchestration("i", "Waits", "").await.unwrap();
    events(&client, "i", 2).await;
    client.raise_event("i", "first", "1").await.unwrap();
    let parked = held(&client, "i").await;
    assert_eq!((parked.hold.kind, parked.hold.actor.as_str()), (HoldKind::Parked, "build 1"));
    assert!(parked.hold.reason.contains("the code of the orchestration panicked"), "{}", parked.hold.reason);
    assert!(!parked.hold.reason.contains("s3cret"), "{}", parked.hold.reason);
    assert_eq!(client.read_execution_history("i", 1).await.unwrap().len(), 2, "the history is as it was");
    broken.shutdown(None).await;

    let healed = start(&store, fitting(), options("2")).await;
    events(&client, "i", 4).await;
    client.raise_event("i", "second", "2").await.unwrap();
    assert_eq!(output(&client, "i").await, "1 2");
    healed.shutdown(None).await;
}

#[tokio::test(start_paused = true)]
async fn instance_that_panics_after_an_activity_is_parked_and_heals_with_the_outcome_of_the_activity() {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());
    let runs = Arc::new(AtomicUsize::new(0));
    let activities = || {
        let runs = Arc::clone(&runs);
        let say = move |_, _: String| {
            runs.fetch_add(1, Ordering::SeqCst);
            async { Ok("said".to_string()) }
        };
        ActivityRegistry::builder().register("Say", say).build()
    };
    let orchestrations = |is_broken: bool| {
        let says = move |ctx: OrchestrationContext, _: String| async move {
            let said = ctx.schedule_activity("Say", "").await?;
            assert!(!is_broken, "s3cret");
            Ok(said)
        };
        OrchestrationRegistry::builder().register("Says", says)
    };
    // The worker of the activity runs the next turn ahead, because the execution is warm.
    let broken = start_with(&store, activities(), orchestrations(true), options("1")).await;
    client.start_orchestration("i", "Says", "").await.unwrap();
    assert_eq!(held(&client, "i").await.hold.kind, HoldKind::Parked);
    assert_eq!(client.read_execution_history("i", 1).await.unwrap().len(), 2, "the history is as it was");
    broken.shutdown(None).await;
    let healed = start_with(&store, activities(), orchestrations(false), options("2")).await;
    assert_eq!(output(&client, "i").await, "said");
    assert_eq!(runs.load(Ordering::SeqCst), 1, "the outcome of the activity waits");
    healed.shutdown(None).await;
}

#[tokio::test(start_paused = true)]
async fn instance_with_panicking_code_fails_by_default() {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());
    let panicking = OrchestrationRegistry::builder().register("Waits", panics);
    let runtime = start(&store, panicking, RuntimeOptions::default()).await;
    client.start_orchestration("i", "Waits", "").await.unwrap();
    events(&client, "i", 2).await;
    client.raise_event("i", "first", "1").await.unwrap();
    let ended = client.wait_for_orchestration("i", LONG).await.unwrap();
    let OrchestrationStatus::Failed { details: ErrorDetails::Application { kind, message, .. }, .. } = ended
    else {
        panic!("{ended:?}")
    };
    assert_eq!((kind, message.as_str()), (AppErrorKind::Panicked, "s3cret"));
    runtime.shutdown(None).await;
}

#[tokio::test(start_paused = true)]
async fn parked_instance_heals_although_the_store_fails_at_the_start_of_the_next_build() {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());
    let panicking = OrchestrationRegistry::builder().register("Waits", panics);
    let broken = start(&store, panicking, options("1")).await;
    client.start_orchestration("i", "Waits", "").await.unwrap();
    events(&client, "i", 2).await;
    client.raise_event("i", "first", "1").await.unwrap();
    held(&client, "i").await;
    broken.shutdown(None).await;
    let failing = Arc::new(FailsFirst { store, lists: AtomicUsize::new(0), releases: AtomicUsize::new(0) });
    let activities = ActivityRegistry::default();
    let healed = Runtime::start_with_options(failing, activities, fitting().build(), options("2")).await;
    events(&client, "i", 4).await;
    healed.shutdown(None).await;
}

#[tokio::test(start_paused = true)]
async fn instance_of_an_unregistered_orchestration_is_parked_instead_of_poisoned() {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());
    let without =
        start(&store, OrchestrationRegistry::builder().register("Other", waits), options("1")).await;
    client.start_orchestration("i", "Waits", "").await.unwrap();
    let parked = held(&client, "i").await;
    assert!(parked.hold.kind == HoldKind::Parked && parked.hold.reason.contains("Waits"), "{parked:?}");
    without.shutdown(None).await;
    let with = start(&store, fitting(), RuntimeOptions::default()).await;
    assert!(client.resume_instance("i", "ann", "registered now").await.unwrap());
    events(&client, "i", 2).await;
    client.raise_event("i", "first", "1").await.unwrap();
    events(&client, "i", 4).await;
    client.raise_event("i", "second", "2").await.unwrap();
    assert_eq!(output(&client, "i").await, "1 2", "the deliveries before the hold do not poison it");
    with.shutdown(None).await;
}

#[tokio::test(start_paused = true)]
async fn cancelled_instance_with_changed_code_fails_instead_of_being_parked_again() {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());
    let runtime = start(&store, fitting(), options("1")).await;
    client.start_orchestration("i", "Waits", "").await.unwrap();
    events(&client, "i", 2).await;
    runtime.shutdown(None).await;
    let broken =
        start(&store, OrchestrationRegistry::builder().register("Waits", changed), options("2")).await;
    client.raise_event("i", "first", "1").await.unwrap();
    held(&client, "i").await;
    client.cancel_instance("i", "enough").await.unwrap();
    let OrchestrationStatus::Failed { details, .. } = client.wait_for_orchestration("i", LONG).await.unwrap()
    else {
        panic!("it fails")
    };
    assert!(
        matches!(details, ErrorDetails::Configuration { .. } | ErrorDetails::Application { .. }),
        "{details:?}"
    );
    broken.shutdown(None).await;
}

/// Waits for an event before a change of the code.
async fn older(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.schedule_wait("first").await;
    Ok(ctx.schedule_wait("last").await)
}

/// The same orchestration after the change.
async fn newer(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.schedule_wait("first").await;
    if ctx.patched("check") {
        ctx.schedule_wait("checked").await;
    }
    Ok(ctx.schedule_wait("last").await)
}

fn build_of<F, R>(code: F) -> OrchestrationRegistryBuilder
where
    F: Fn(OrchestrationContext, String) -> R + Send + Sync + 'static,
    R: Future<Output = Result<String, String>> + Send + 'static,
{
    OrchestrationRegistry::builder().register("Checks", code)
}

/// Stores an instance that has taken the patch and waits for `checked`.
async fn take_the_patch(store: &Arc<MemoryProvider>, client: &Client) {
    let new = start(store, build_of(newer), options("2")).await;
    client.start_orchestration("i", "Checks", "").await.unwrap();
    events(client, "i", 2).await;
    client.raise_event("i", "first", "1").await.unwrap();
    events(client, "i", 5).await;
    new.shutdown(None).await;
}

#[tokio::test(start_paused = true)]
async fn turn_of_an_instance_that_takes_a_patch_waits_for_a_node_whose_code_asks_for_it() {
    for on_misfit in [OnMisfit::Fail, OnMisfit::Park] {
        let store = clocked();
        let client = Client::new(store.clone());
        take_the_patch(&store, &client).await;
        let old = start(&store, build_of(older), RuntimeOptions { on_misfit, ..options("1") }).await;
        client.raise_event("i", "checked", "2").await.unwrap();
        pass().await;
        let history = client.read_execution_history("i", 1).await.unwrap();
        assert_eq!(history.len(), 5, "{on_misfit:?}: no turn of the old build is stored");
        assert_eq!(client.held_instance("i").await.unwrap(), None, "{on_misfit:?}");
        let pending = client.pending_work("i", 10).await.unwrap().unwrap();
        assert!(pending.messages[0].attempt_count <= 1, "{on_misfit:?}: deliveries are not counted");
        let why = client.diagnose_instance("i", 10).await.unwrap().sentence();
        assert!(why.contains("its history takes patch 'check', which no live node's code asks for"), "{why}");
        let new = start(&store, build_of(newer), RuntimeOptions { on_misfit, ..options("2") }).await;
        events(&client, "i", 7).await;
        client.raise_event("i", "last", "3").await.unwrap();
        assert_eq!(output(&client, "i").await, "3", "{on_misfit:?}");
        new.shutdown(None).await;
        old.shutdown(None).await;
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_instance_that_takes_a_patch_ends_although_no_code_asks_for_it() {
    let store = clocked();
    let client = Client::new(store.clone());
    take_the_patch(&store, &client).await;
    let old = start(&store, build_of(older), options("1")).await;
    client.cancel_instance("i", "enough").await.unwrap();
    let ended = client.wait_for_orchestration("i", LONG).await.unwrap();
    assert!(matches!(ended, OrchestrationStatus::Failed { .. }), "{ended:?}");
    old.shutdown(None).await;
}

#[tokio::test(start_paused = true)]
async fn parked_instance_is_released_when_the_last_node_of_its_build_has_ended() {
    let store = clocked();
    let client = Client::new(store.clone());
    let first = start(&store, fitting(), options("1")).await;
    client.start_orchestration("i", "Waits", "").await.unwrap();
    events(&client, "i", 2).await;
    first.shutdown(None).await;
    // A node of the next build that runs activities only, so that the broken build takes the turn.
    let idle = RuntimeOptions { orchestration_concurrency: 0, ..options("3") };
    let next = start(&store, fitting(), idle).await;
    let broken =
        start(&store, OrchestrationRegistry::builder().register("Waits", changed), options("2")).await;
    client.raise_event("i", "first", "1").await.unwrap();
    let parked = held(&client, "i").await;
    pass().await;
    assert_eq!(client.held_instance("i").await.unwrap(), Some(parked), "its build has a live node");
    broken.shutdown(None).await;
    pass().await;
    assert_eq!(client.held_instance("i").await.unwrap(), None, "the next build releases it");
    let audit = client.audit_page(None, 10).await.unwrap().unwrap();
    let reasons: Vec<_> = audit.iter().map(|record| record.entry.reason.as_str()).collect();
    assert_eq!(reasons[0], "its build has no live node any more");
    next.shutdown(None).await;
}

#[tokio::test(start_paused = true)]
async fn runtime_that_fails_misfits_releases_no_parked_instance() {
    let store = clocked();
    let client = Client::new(store.clone());
    let panicking = OrchestrationRegistry::builder().register("Waits", panics);
    let broken = start(&store, panicking, options("1")).await;
    client.start_orchestration("i", "Waits", "").await.unwrap();
    events(&client, "i", 2).await;
    client.raise_event("i", "first", "1").await.unwrap();
    let parked = held(&client, "i").await;
    broken.shutdown(None).await;
    let fails = RuntimeOptions { on_misfit: OnMisfit::Fail, ..options("2") };
    let next = start(&store, fitting(), fails).await;
    pass().await;
    assert_eq!(client.held_instance("i").await.unwrap(), Some(parked));
    client.resume_instance("i", "ann", "mended").await.unwrap();
    events(&client, "i", 4).await;
    client.raise_event("i", "second", "2").await.unwrap();
    assert_eq!(output(&client, "i").await, "1 2");
    next.shutdown(None).await;
}
