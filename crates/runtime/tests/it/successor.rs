//! A successor whose start message is not visible, because the clock of the store was set back.

use outlast_engine::OrchestrationContext;
use outlast_memory::MemoryProvider;
use outlast_provider::{Clock, Provider};
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use outlast_runtime::{Client, OrchestrationStatus, Runtime, RuntimeOptions, UnregisteredBackoffConfig};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(60 * 60);

/// A clock that the test sets.
struct ManualClock(AtomicU64);

impl ManualClock {
    fn set_to_hour(&self, hours: u32) {
        self.0.store((HOUR * hours).as_millis().try_into().unwrap(), Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Waits until the instance has this number of messages, this number of deliveries, and no lease.
async fn until_given_back(store: &MemoryProvider, instance: &str, messages: usize, attempts: u32) {
    loop {
        let (lines, delivered) = (store.dump(), store.max_attempt_count(instance));
        let waiting = lines.iter().filter(|line| line.starts_with(&format!("message {instance} "))).count();
        let held = lines.iter().any(|line| line.starts_with("lease "));
        if waiting == messages && delivered == attempts && !held {
            return;
        }
        tokio::time::advance(Duration::from_millis(10)).await;
    }
}

async fn failure_of(client: &Client, instance: &str) -> String {
    match client.wait_for_orchestration(instance, 3 * HOUR).await.unwrap() {
        OrchestrationStatus::Failed { details, .. } => details.display_message(),
        other => panic!("{instance}: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn c7_a_poisoned_successor_reports_its_failure_to_its_parents() {
    let clock = Arc::new(ManualClock(AtomicU64::new(0)));
    clock.set_to_hour(10);
    let memory = Arc::new(MemoryProvider::with_clock(clock.clone()));
    let store: Arc<dyn Provider> = memory.clone();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Parent", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_sub_orchestration_with_id("Child", "child", "").await
        })
        .register("Child", |ctx: OrchestrationContext, _: String| async move {
            ctx.continue_as_new_versioned("2.0.0", "").await
        })
        .build();
    let unregistered_backoff = UnregisteredBackoffConfig { base_delay: HOUR, max_delay: HOUR };
    let options = RuntimeOptions { max_attempts: 1, unregistered_backoff, ..RuntimeOptions::default() };
    let activities = ActivityRegistry::builder().build();
    let runtime = Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
    let client = Client::new(store);

    client.start_orchestration("first", "Parent", "").await.unwrap();
    until_given_back(&memory, "child", 1, 1).await;
    // Version 2.0.0 is not registered: the start of the successor is delayed until hour 11. The clock is set back, so the start of
    // "second" is delivered without it, and its second delivery exceeds `max_attempts`.
    clock.set_to_hour(5);
    client.start_orchestration("second", "Parent", "").await.unwrap();
    until_given_back(&memory, "child", 2, 1).await;
    clock.set_to_hour(7);

    let failure = failure_of(&client, "first").await;
    assert!(failure.contains("poison: orchestration child exceeded 2 attempts (max 1)"), "{failure}");
    let failure = failure_of(&client, "second").await;
    assert!(failure.contains("sub-orchestration instance id 'child' already exists"), "{failure}");
    runtime.shutdown(None).await;
}
