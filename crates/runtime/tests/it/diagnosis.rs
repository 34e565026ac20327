//! The diagnosis of an instance whose turns are committed while its history and its queues are read.

use async_trait::async_trait;
use outlast_engine::OrchestrationContext;
use outlast_memory::MemoryProvider;
use outlast_provider::{PendingWork, Provider, ProviderAdmin, ProviderError, forward_provider};
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use outlast_runtime::{Client, Runtime, RuntimeOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use tokio::sync::Semaphore;

const ID: &str = "busy";

/// A store that lets the instance take a turn before it reads the queues, as often as `turns` says.
struct Busy {
    store: MemoryProvider,
    turns: AtomicUsize,
    reads: AtomicUsize,
    may_end: Arc<Semaphore>,
    /// Whether the queue has lost its activities.
    is_damaged: AtomicBool,
}

impl Busy {
    async fn events(&self) -> usize {
        self.store.read(ID).await.unwrap().len()
    }

    /// Ends the running activity, and waits for the turn that schedules the next one.
    async fn take_turn(&self) {
        let before = self.events().await;
        self.may_end.add_permits(1);
        while self.events().await == before {
            tokio::task::yield_now().await;
        }
    }
}

#[async_trait]
impl Provider for Busy {
    forward_provider!(Provider, |this| this.store, except(as_management_capability));

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }
}

#[async_trait]
impl ProviderAdmin for Busy {
    forward_provider!(ProviderAdmin, |this| this.store, except(pending));

    async fn pending(&self, instance: &str, limit: usize) -> Result<Option<PendingWork>, ProviderError> {
        self.reads.fetch_add(1, Relaxed);
        if self.turns.fetch_update(Relaxed, Relaxed, |turns| turns.checked_sub(1)).is_ok() {
            self.take_turn().await;
        }
        let mut found = self.store.pending(instance, limit).await?;
        if let Some(pending) = found.as_mut().filter(|_| self.is_damaged.load(Relaxed)) {
            pending.activities.clear();
            pending.activity_count = 0;
        }
        Ok(found)
    }
}

#[tokio::test]
async fn turns_between_the_reads_are_no_damage() {
    let may_end = Arc::new(Semaphore::new(0));
    let store = Arc::new(Busy {
        store: MemoryProvider::new(),
        turns: AtomicUsize::new(0),
        reads: AtomicUsize::new(0),
        may_end: Arc::clone(&may_end),
        is_damaged: AtomicBool::new(false),
    });
    let step = move |_, input: String| {
        let may_end = Arc::clone(&may_end);
        async move {
            may_end.acquire().await.map_err(|error| error.to_string())?.forget();
            Ok(input)
        }
    };
    let busy = |ctx: OrchestrationContext, _: String| async move {
        loop {
            ctx.schedule_activity("Step", "").await?;
        }
    };
    let activities = ActivityRegistry::builder().register("Step", step).build();
    let orchestrations = OrchestrationRegistry::builder().register("Busy", busy).build();
    let runtime =
        Runtime::start_with_options(store.clone(), activities, orchestrations, RuntimeOptions::default())
            .await;
    let client = Client::new(store.clone());
    client.start_orchestration(ID, "Busy", "").await.unwrap();
    while store.events().await < 2 {
        tokio::task::yield_now().await;
    }
    store.turns.store(6, Relaxed);
    let found = client.diagnose_instance(ID, 10).await.unwrap();
    assert!(!found.rule().may_come_from_two_times(), "{}", found.sentence());
    assert_eq!(store.reads.load(Relaxed), 7, "each read that a turn divides is repeated");
    // A queue that has lost the activity stays so: one read says it.
    store.reads.store(0, Relaxed);
    store.is_damaged.store(true, Relaxed);
    let lost = client.diagnose_instance(ID, 10).await.unwrap();
    assert!(lost.sentence().contains("the store is damaged"), "{}", lost.sentence());
    assert_eq!(store.reads.load(Relaxed), 1);
    runtime.shutdown(Some(0)).await;
}
