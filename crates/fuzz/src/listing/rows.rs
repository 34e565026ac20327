//! The same instances in both stores, created by the calls of a runtime.

use outlast_memory::MemoryProvider;
use outlast_model::{ExecutionStatus, WorkItem};
use outlast_provider::{Clock, ExecutionMetadata, Provider};
use outlast_sqlite::{SqliteOptions, SqliteProvider};
use outlast_testkit::virtual_time;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(super) struct Stores {
    pub(super) memory: MemoryProvider,
    pub(super) sqlite: SqliteProvider,
}

pub(super) const COUNT: usize = 60;
pub(super) const FIRST_MS: u64 = 1_000;
pub(super) const STATUSES: [&str; 6] =
    ["Running", "Completed", "Failed", "ContinuedAsNew", "Unknown", "running"];
pub(super) const NAMES: [&str; 5] = ["Flow", "flow", "Other", "Fl%", ""];
pub(super) const PREFIXES: [&str; 10] = ["", "a", "a1", "A", "ö", "o", "%", "_", "a%", "\u{1F600}"];
pub(super) const PARENTS: [&str; 4] = ["a0", "ö1", "nobody", "%4"];

/// A clock that advances only while rows are created.
struct ManualClock(AtomicU64);

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

pub(super) fn stores() -> &'static Stores {
    static STORES: OnceLock<Stores> = OnceLock::new();
    STORES.get_or_init(|| virtual_time::run(create()))
}

async fn create() -> Stores {
    let clock = Arc::new(ManualClock(AtomicU64::new(FIRST_MS)));
    let memory = MemoryProvider::with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let options = SqliteOptions {
        inline: true,
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        ..SqliteOptions::default()
    };
    let sqlite = SqliteProvider::new_in_memory_with_options(Some(options)).await.expect("a store in memory");
    for nth in 0..COUNT {
        // Some instances share a millisecond.
        clock.0.fetch_add((nth % 3) as u64 * 4, Relaxed);
        for store in [&memory as &dyn Provider, &sqlite as &dyn Provider] {
            add(store, nth).await;
        }
    }
    Stores { memory, sqlite }
}

fn id(nth: usize) -> String {
    format!("{}{nth}", ["a", "ö", "A", "a1", "%", "_x", "\u{1F600}"][nth % 7])
}

async fn add(store: &dyn Provider, nth: usize) {
    let instance = id(nth);
    let start = WorkItem::StartOrchestration {
        instance: instance.clone(),
        orchestration: NAMES[0].to_string(),
        input: String::new(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    };
    store.enqueue_for_orchestrator(start, None).await.expect("a start is accepted");
    let lease = Duration::from_secs(5);
    let fetched = store.fetch_orchestration_item(lease, Duration::ZERO, None).await.expect("it is there");
    let (item, token, _) = fetched.expect("it is visible");
    assert_eq!(item.instance, instance);
    let status = [
        None,
        Some(ExecutionStatus::Completed),
        Some(ExecutionStatus::Failed),
        Some(ExecutionStatus::ContinuedAsNew),
    ][nth % 4];
    let metadata = ExecutionMetadata {
        status: status.map(|status| status.to_string()),
        output: status.map(|_| format!("out {nth}")),
        orchestration_name: Some(NAMES[nth / 2 % 4].to_string()),
        orchestration_version: Some(format!("1.0.{}", nth % 2)),
        parent_instance_id: (nth % 5 == 4).then(|| PARENTS[nth % 4].to_string()),
        pinned_duroxide_version: None,
    };
    let acked = store.ack_orchestration_item(&token, 1, vec![], vec![], vec![], metadata, vec![]);
    acked.await.expect("the lease holds");
}
