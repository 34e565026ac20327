//! Durable execution: ordinary `async` functions that survive crashes, restarts and deployments.
//!
//! An *instance* is one run of an orchestration. Everything that it decides and everything that happens to it is an
//! [`Event`] in a history that only grows; after a crash the history is replayed and the code goes on where it was.
//! The history lives in a store, behind the contract in [`providers`].
//!
//! ```
//! use outlast::providers::memory::MemoryProvider;
//! use outlast::providers::{ExecutionMetadata, Provider, WorkItem};
//! use outlast::{Event, EventKind, INITIAL_EVENT_ID, INITIAL_EXECUTION_ID};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemoryProvider::new();
//! let start = WorkItem::StartOrchestration {
//!     instance: "order-1".into(),
//!     orchestration: "Order".into(),
//!     input: "{}".into(),
//!     version: Some("1.0.0".into()),
//!     parent_instance: None,
//!     parent_id: None,
//!     parent_execution_id: None,
//!     execution_id: INITIAL_EXECUTION_ID,
//! };
//! store.enqueue_for_orchestrator(start, None).await?;
//!
//! // One turn: take the lease, decide, commit.
//! let fetched = store.fetch_orchestration_item(Duration::from_secs(5), Duration::ZERO, None).await?;
//! let (turn, lock_token, _attempt) = fetched.ok_or("a turn is ready")?;
//! let decided = EventKind::OrchestrationCompleted { output: "shipped".into() };
//! let event = Event::with_event_id(INITIAL_EVENT_ID, turn.instance, turn.execution_id, None, decided);
//! let metadata = ExecutionMetadata { status: Some("Completed".into()), ..ExecutionMetadata::default() };
//! store.ack_orchestration_item(&lock_token, turn.execution_id, vec![event], vec![], vec![], metadata, vec![]).await?;
//!
//! assert!(store.read("order-1").await?[0].is_terminal());
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//!
//! | path | what |
//! |---|---|
//! | the root | events, errors, retry policies: what orchestrations and clients speak of |
//! | [`providers`] | the storage contract and its types, for stores and tools |
//! | [`providers::memory`] | the contract in plain Rust, for tests |
//! | `providers::sqlite` | the embedded store (feature `sqlite`) |
//! | [`runtime::limits`] | limits that the contract fixes |
//! | `provider_validations` | one check per rule of the contract, for your own store (feature `provider-test`) |
//!
//! # Coming from `duroxide`
//!
//! Outlast keeps the paths, types and JSON shapes of `duroxide` 0.1.32. A program for that crate needs one other line
//! in its manifest: `duroxide = { package = "outlast", version = "0.1" }`. [`Event::duroxide_version`] and its kin
//! carry the version of that contract, [`current_build_version`], not the version of this package.

pub use outlast_model::{
    Action, AppErrorKind, BackoffStrategy, ConfigErrorKind, ErrorDetails, Event, EventKind, INITIAL_EVENT_ID,
    INITIAL_EXECUTION_ID, LogLevel, PoisonMessageType, RetryPolicy, SUB_ORCH_AUTO_PREFIX, ScheduleKind,
    SystemStats, build_child_instance_id, is_auto_generated_sub_orch_id,
};
pub use outlast_provider::{
    DeleteInstanceResult, DispatcherCapabilityFilter, ExecutionInfo, InstanceFilter, InstanceInfo,
    InstanceTree, ProviderAdmin, PruneOptions, PruneResult, QueueDepths, ScheduledActivityIdentifier,
    SemverRange, SessionFetchConfig, SystemMetrics, TagFilter, current_build_version,
};

/// A store that is shared by runtime and clients.
pub type ProviderRef = std::sync::Arc<dyn providers::Provider>;

/// The storage contract, and the stores that come with Outlast.
pub mod providers {
    pub use outlast_provider::{
        Clock, DeadLetter, DeadLetterQueue, DeleteInstanceResult, DispatcherCapabilityFilter, Entropy,
        ExecutionInfo, ExecutionMetadata, FetchedTurn, FetchedWork, InstanceFilter, InstanceInfo,
        InstanceOutcome, InstancePage, InstanceQuery, InstanceTree, KvEntry, LoadedTurn, MAX_WORKER_TAGS,
        ManagementProvider, OrchestrationItem, OsEntropy, Provider, ProviderAdmin, ProviderError,
        PruneOptions, PruneResult, QueueDepths, ScheduledActivityIdentifier, SemverRange, SessionFetchConfig,
        StartOutcome, StartPolicy, StartRequest, SystemClock, SystemMetrics, TagFilter, TurnRequest,
        WorkItem, WorkRequest, current_build_version, saturating_ms,
    };
    pub use outlast_provider::{error, management};

    /// The contract in plain Rust: nothing survives the process. For tests.
    pub mod memory {
        pub use outlast_memory::*;
    }

    /// The embedded store: one SQLite file.
    #[cfg(feature = "sqlite")]
    pub mod sqlite {
        pub use outlast_sqlite::*;
    }
}

/// What runs orchestrations and activities.
pub mod runtime {
    pub use outlast_model::limits;
}

/// The validation suite for stores: one function per rule of the contract.
#[cfg(feature = "provider-test")]
pub mod provider_validations {
    pub use outlast_conformance::*;
}

/// [`provider_validations`] under its other name.
#[cfg(feature = "provider-test")]
pub mod provider_validation {
    pub use outlast_conformance::*;
}

/// Stress runs for stores: configuration and figures. The runs come with the runtime.
#[cfg(feature = "provider-test")]
pub mod provider_stress_tests {
    pub use outlast_conformance::stress::*;
}

/// [`provider_stress_tests`] under its other name.
#[cfg(feature = "provider-test")]
pub mod provider_stress_test {
    pub use outlast_conformance::stress::*;
}
