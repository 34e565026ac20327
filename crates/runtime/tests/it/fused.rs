//! Fused outcomes through a runtime: which calls the outcomes of a fan-out need, and what failed calls leave behind.

use async_trait::async_trait;
use outlast_engine::OrchestrationContext;
use outlast_memory::MemoryProvider;
use outlast_model::EventKind;
use outlast_provider::{
    Clock, FusedCompletion, LeasedOutcome, Provider, ProviderError, TurnAhead, forward_provider,
};
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use outlast_runtime::{ActivityContext, Client, OrchestrationStatus, Runtime, RuntimeOptions};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

const LONG: Duration = Duration::from_secs(600);

/// A clock that follows tokio's.
struct VirtualClock(Instant);

impl Clock for VirtualClock {
    fn now_ms(&self) -> u64 {
        1_000_000 + u64::try_from(self.0.elapsed().as_millis()).unwrap()
    }
}

/// The fate of a call with several outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The store makes the call, and the answer is lost.
    LostAnswer,
    /// The store does not make the call, and can be asked again.
    Retryable,
    /// The store refuses the call.
    Permanent,
}

/// Counts the calls, and fails the first call with several outcomes.
struct Counted {
    inner: MemoryProvider,
    calls: Mutex<BTreeMap<&'static str, usize>>,
    fault: Fault,
}

impl Counted {
    fn new(fault: Fault) -> Arc<Self> {
        let inner = MemoryProvider::with_clock(Arc::new(VirtualClock(Instant::now())));
        Arc::new(Self { inner, calls: Mutex::default(), fault })
    }

    fn count(&self, method: &str) -> usize {
        self.calls.lock().unwrap().get(method).copied().unwrap_or(0)
    }

    fn note(&self, method: &'static str) -> usize {
        let mut calls = self.calls.lock().unwrap();
        let count = calls.entry(method).or_default();
        *count += 1;
        *count
    }

    async fn counted<T>(
        &self,
        method: &'static str,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        self.note(method);
        call.await
    }
}

#[async_trait]
impl Provider for Counted {
    forward_provider!(Provider, |this| this.inner, around(counted), except(complete_all_with_turn));

    async fn complete_all_with_turn(
        &self,
        outcomes: Vec<LeasedOutcome>,
        turn: TurnAhead,
    ) -> Result<FusedCompletion, ProviderError> {
        let is_first = self.note("complete_all_with_turn") == 1;
        let fault = if is_first { self.fault } else { Fault::None };
        match fault {
            Fault::None => self.inner.complete_all_with_turn(outcomes, turn).await,
            Fault::LostAnswer => {
                self.inner.complete_all_with_turn(outcomes, turn).await?;
                Err(ProviderError::retryable("ack_work_item", "the answer was lost"))
            }
            Fault::Retryable => Err(ProviderError::retryable("ack_work_item", "busy")),
            Fault::Permanent => Err(ProviderError::permanent("ack_work_item", "no")),
        }
    }
}

/// Five activities at once; each sleeps for its number times the input, in milliseconds.
async fn start(store: &Arc<Counted>) -> (Arc<Runtime>, Client) {
    let sleeps = |_: ActivityContext, ms: String| async move {
        let ms: u64 = ms.parse().unwrap();
        if ms > 0 {
            tokio::time::sleep_until(Instant::now() + Duration::from_millis(ms)).await;
        }
        Ok("done".to_string())
    };
    let fans_out = |ctx: OrchestrationContext, ms: String| async move {
        let ms: u64 = ms.parse().unwrap();
        let calls = (0..5).map(|n| ctx.schedule_activity("Sleeps", (n * ms).to_string())).collect();
        Ok(ctx.join(calls).await.into_iter().filter(Result::is_ok).count().to_string())
    };
    let runtime = Runtime::start_with_options(
        store.clone(),
        ActivityRegistry::builder().register("Sleeps", sleeps).build(),
        OrchestrationRegistry::builder().register("FansOut", fans_out).build(),
        RuntimeOptions { worker_concurrency: 5, ..RuntimeOptions::default() },
    )
    .await;
    (runtime, Client::new(store.clone() as Arc<dyn Provider>))
}

async fn run(client: &Client, instance: &str, ms: u64) {
    client.start_orchestration(instance, "FansOut", ms.to_string()).await.unwrap();
    let status = client.wait_for_orchestration(instance, LONG).await.unwrap();
    assert!(matches!(&status, OrchestrationStatus::Completed { output, .. } if output == "5"), "{status:?}");
}

async fn outcomes(store: &Counted, instance: &str) -> usize {
    let history = store.inner.read(instance).await.unwrap();
    let is_outcome = |kind: &EventKind| matches!(kind, EventKind::ActivityCompleted { .. });
    history.iter().filter(|event| is_outcome(&event.kind)).count()
}

#[tokio::test(start_paused = true)]
async fn outcomes_that_return_together_are_one_call() {
    let store = Counted::new(Fault::None);
    let (runtime, client) = start(&store).await;
    let since = Instant::now();
    for n in 1..=10 {
        run(&client, &format!("i{n}"), 0).await;
        assert_eq!(store.count("complete_all_with_turn"), n);
        assert_eq!(outcomes(&store, &format!("i{n}")).await, 5);
    }
    assert_eq!((store.count("ack_work_item"), store.count("complete_with_turn")), (0, 0));
    assert_eq!(since.elapsed(), Duration::ZERO, "no outcome waits");
    runtime.shutdown(None).await;
}

#[tokio::test(start_paused = true)]
async fn outcomes_that_return_at_different_times_are_committed_alone() {
    let store = Counted::new(Fault::None);
    let (runtime, client) = start(&store).await;
    run(&client, "i", 100).await;
    assert_eq!(store.count("complete_all_with_turn"), 0);
    assert_eq!(store.count("ack_work_item") + store.count("complete_with_turn"), 5);
    assert_eq!(outcomes(&store, "i").await, 5);
    runtime.shutdown(None).await;
}

#[tokio::test(start_paused = true)]
async fn outcomes_of_a_failed_call_are_stored_once() {
    for fault in [Fault::LostAnswer, Fault::Retryable, Fault::Permanent] {
        let store = Counted::new(fault);
        let (runtime, client) = start(&store).await;
        run(&client, "i", 0).await;
        assert_eq!(outcomes(&store, "i").await, 5, "{fault:?}");
        let retried = if fault == Fault::Permanent { 1 } else { 2 };
        assert!(store.count("complete_all_with_turn") <= retried, "{fault:?}");
        run(&client, "next", 0).await;
        assert_eq!(outcomes(&store, "next").await, 5, "{fault:?}");
        runtime.shutdown(None).await;
    }
}
