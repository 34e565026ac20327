//! Fixtures for the tests of the dispatchers: a `Core` without tasks, executions, events and stored instances.

use crate::core::Core;
use crate::observability::MetricsProvider;
use crate::options::RuntimeOptions;
use crate::registry::{ActivityRegistry, OrchestrationRegistry};
use outlast_engine::{Code, Execution, Opening, OrchestrationContext, Setup, new_stamp};
use outlast_memory::MemoryProvider;
use outlast_model::{Event, EventKind, WorkItem};
use outlast_provider::{Clock, Entropy, ExecutionMetadata, Provider};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

struct FixedClock;
impl Clock for FixedClock {
    fn now_ms(&self) -> u64 {
        1_000_000
    }
}

struct ZeroEntropy;
impl Entropy for ZeroEntropy {
    fn next_u128(&self) -> u128 {
        0
    }
}

/// A runtime without tasks on a memory store. Leases of activities last 32 s and are renewed after 16 s; leases of turns last 8 s
/// and are renewed after 4 s.
pub(super) fn core() -> Core {
    core_on(Arc::new(MemoryProvider::new()))
}

/// A runtime without tasks, with the same options, on the given store.
pub(super) fn core_on(store: Arc<dyn Provider>) -> Core {
    let options = RuntimeOptions {
        worker_lock_timeout: 32 * SECOND,
        worker_lock_renewal_buffer: SECOND,
        orchestrator_lock_timeout: 8 * SECOND,
        clock: Arc::new(FixedClock),
        entropy: Arc::new(ZeroEntropy),
        ..RuntimeOptions::default()
    };
    Core::new(
        store,
        ActivityRegistry::builder().build(),
        OrchestrationRegistry::builder().build(),
        options,
        Arc::new(MetricsProvider::default()),
    )
}

/// An execution whose code schedules activity A and waits for it.
pub(super) fn busy() -> Execution {
    execution(|context: OrchestrationContext, _| -> Code {
        let activity = context.schedule_activity("A", "");
        Box::pin(activity)
    })
}

/// An execution whose code schedules this number of activities and waits for all of them.
pub(super) fn fan_out(count: usize) -> Execution {
    execution(move |context: OrchestrationContext, _| -> Code {
        let calls: Vec<_> = (0..count).map(|_| context.schedule_activity("A", "")).collect();
        Box::pin(async move { Ok(context.join(calls).await.len().to_string()) })
    })
}

fn execution(call: impl FnOnce(OrchestrationContext, String) -> Code) -> Execution {
    let opening = Opening {
        name: "O".to_string(),
        version: Some("1.2.3".to_string()),
        input: String::new(),
        parent: None,
        carried: Vec::new(),
        custom_status: None,
    };
    let setup = Setup {
        instance: "i".to_string(),
        execution_id: 1,
        opening,
        stamp: new_stamp(false),
        kv: BTreeMap::new(),
        limits: Arc::default(),
    };
    Execution::new(setup, call).unwrap()
}

/// The start of an instance of orchestration O.
pub(super) fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_string(),
        orchestration: "O".to_string(),
        input: "first".to_string(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

/// The first event of orchestration O.
pub(super) fn started() -> EventKind {
    EventKind::OrchestrationStarted {
        name: "O".to_string(),
        version: "1.2.3".to_string(),
        input: "first".to_string(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: Some(vec![("queue".to_string(), "unread".to_string())]),
        initial_custom_status: None,
    }
}

/// Events of an execution, with ids from 1.
pub(super) fn events(instance: &str, execution_id: u64, kinds: Vec<EventKind>) -> Vec<Event> {
    let event = |(kind, id)| Event::at(0, id, instance, execution_id, None, kind);
    kinds.into_iter().zip(1..).map(event).collect()
}

/// Stores an instance of orchestration O whose current execution has these events.
pub(super) async fn store(core: &Core, instance: &str, execution_id: u64, kinds: Vec<EventKind>) {
    core.store.enqueue_for_orchestrator(start(instance), None).await.unwrap();
    let fetched = core.store.fetch_orchestration_item(SECOND, Duration::ZERO, None).await.unwrap();
    let (item, token, _) = fetched.expect("the start was enqueued");
    assert_eq!(item.instance, instance);
    let metadata = ExecutionMetadata {
        orchestration_name: Some("O".to_string()),
        orchestration_version: Some("1.2.3".to_string()),
        ..ExecutionMetadata::default()
    };
    let history = events(instance, execution_id, kinds);
    let written = core
        .store
        .ack_orchestration_item(&token, execution_id, history, vec![], vec![], metadata, vec![])
        .await;
    written.unwrap();
}
