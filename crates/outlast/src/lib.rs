//! Durable execution: ordinary `async` functions that survive crashes, restarts and deployments.
//!
//! An *orchestration* is an `async` function that calls *activities*. Every decision of an instance and every outcome that it gets is
//! an [`Event`] in an append-only history. After a crash the runtime replays the history, and the code continues where it was.
//!
//! ```
//! use outlast::prelude::*;
//! use outlast::providers::memory::MemoryProvider;
//! use std::sync::Arc;
//!
//! #[outlast::activity]
//! async fn greet(_ctx: ActivityContext, name: String) -> Result<String, String> {
//!     Ok(format!("Hello, {name}!"))
//! }
//!
//! #[outlast::orchestration]
//! async fn hello(ctx: OrchestrationContext, name: String) -> Result<String, String> {
//!     Ok(greet::call(&ctx, name).await?)
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Arc::new(MemoryProvider::new());
//! let module = outlast::module![greet, hello];
//! let runtime = Runtime::builder().store(store.clone()).register(module).start().await?;
//! let client = Client::new(store);
//! let instance = hello::start(&client, "Ada".into()).id("hello-1").await?;
//! assert_eq!(instance.result().await?, "Hello, Ada!");
//! runtime.shutdown(None).await;
//! # Ok(())
//! # }
//! ```
//!
//! With `providers::sqlite::SqliteProvider` (feature `sqlite`) instead of the memory store, instances survive the process. An activity
//! may run more than once: see [`ActivityContext::idempotency_key`].
//!
//! # Where things are
//!
//! | path | content |
//! |---|---|
//! | [`prelude`] | the names that such programs use |
//! | [`author`] | the typed layer: calls, messages, handles, errors, and the traits that the attributes implement |
//! | [`OrchestrationContext`] | the operations of orchestration code: activities, timers, events, queues, children, state |
//! | [`ActivityContext`] | the identity of an activity, its cancellation and its logging |
//! | [`client`] | [`Client`]: starts instances, sends them events, waits for them, manages them |
//! | [`runtime`] | [`runtime::Runtime`], which runs orchestrations and activities, and its options |
//! | [`runtime::registry`] | the handlers by name and version |
//! | [`runtime::limits`] | the limits of one instance |
//! | [`runtime::observability`] | logs and metrics |
//! | `testing` | tests of your orchestrations (feature `testing`) |
//! | `runtime::test_hooks` | delays for tests (feature `test-hooks`) |
//! | other items of the root | events, errors and retry policies |
//! | [`lens`] | what an instance waits for, from its history and its queues |
//! | [`providers`] | the storage contract and its types, for stores and tools |
//! | [`providers::memory`] | the contract in plain Rust, for tests |
//! | `providers::sqlite` | the embedded store (feature `sqlite`) |
//! | `providers::postgres` | the store for many machines (feature `postgres`) |
//! | `providers::cosmos` | the store for Azure Cosmos DB (feature `cosmos`) |
//! | `provider_validations` | one check per rule of the contract, for your own store (feature `provider-test`) |
//! | `provider_stress_tests` | a runtime under load on your own store (feature `provider-test` or `stress`) |
//!
//! The folder `examples` of this crate has one program per topic: retries, races against timers, sagas, actors, children, versions, a
//! crash.
//!
//! # Coming from `duroxide`
//!
//! Outlast keeps the paths, types and JSON shapes of `duroxide` 0.1.32. A program for that crate needs one changed line in its
//! manifest: `duroxide = { package = "outlast", version = "0.2" }`. [`Event::duroxide_version`] and similar fields hold the version of
//! that contract, [`current_build_version`], not the version of this package.

pub use outlast_engine::{DurableFuture, Either2, Either3, OrchestrationContext};
pub use outlast_model::{
    Action, AppErrorKind, BackoffStrategy, ConfigErrorKind, ErrorDetails, Event, EventKind, ExecutionStatus,
    INITIAL_EVENT_ID, INITIAL_EXECUTION_ID, LogLevel, PoisonMessageType, RetryPolicy, SUB_ORCH_AUTO_PREFIX,
    ScheduleKind, SystemStats, build_child_instance_id, is_auto_generated_sub_orch_id,
};
pub use outlast_provider::{
    DeleteInstanceResult, DispatcherCapabilityFilter, ExecutionInfo, InstanceFilter, InstanceInfo,
    InstanceTree, ProviderAdmin, PruneOptions, PruneResult, QueueDepths, ScheduledActivityIdentifier,
    SemverRange, SessionFetchConfig, SystemMetrics, TagFilter, current_build_version,
};

pub use outlast_runtime::{
    ActivityContext, Client, ClientError, OnMisfit, OrchestrationDescriptor, OrchestrationHandler,
    OrchestrationStatus, RuntimeOptions,
};
pub use runtime::{OrchestrationRegistry, OrchestrationRegistryBuilder};

#[cfg(feature = "macros")]
pub use outlast_author::{
    Error, Failure, Message, Module, Result, activity, deterministic, module, orchestration, time,
};

/// The typed layer: the traits that the attributes implement, and the types of calls, messages, handles and errors.
#[cfg(feature = "macros")]
pub mod author {
    pub use outlast_author::*;
}

/// Tests of your orchestrations: virtual time, mocks by type, history snapshots, a crash at every moment, replay checks. A feature for
/// dev-dependencies.
#[cfg(feature = "testing")]
pub mod testing {
    pub use outlast_testing::*;
}

/// The names that programs with the typed layer use: `use outlast::prelude::*;`.
#[cfg(feature = "macros")]
pub mod prelude {
    pub use crate::runtime::Runtime;
    pub use crate::{ActivityContext, Client, Either2, OrchestrationContext, RetryPolicy};
    pub use outlast_author::{
        Asked, Call, CallError, Child, Context, Durable, Failure, Handle, InstanceError, Key, Message,
        Module, State, Undo, module,
    };
}

/// A registered orchestration.
pub type OrchestrationHandlerRef = std::sync::Arc<dyn OrchestrationHandler>;
/// A store that a runtime and clients share.
pub type ProviderRef = std::sync::Arc<dyn providers::Provider>;

/// The storage contract, and the stores that come with Outlast.
///
/// One turn, made by hand with the calls that a runtime makes:
///
/// ```
/// use outlast::providers::memory::MemoryProvider;
/// use outlast::providers::{ExecutionMetadata, Provider, WorkItem};
/// use outlast::{Event, EventKind, INITIAL_EVENT_ID, INITIAL_EXECUTION_ID};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryProvider::new();
/// let start = WorkItem::StartOrchestration {
///     instance: "order-1".into(),
///     orchestration: "Order".into(),
///     input: "{}".into(),
///     version: Some("1.0.0".into()),
///     parent_instance: None,
///     parent_id: None,
///     parent_execution_id: None,
///     execution_id: INITIAL_EXECUTION_ID,
/// };
/// store.enqueue_for_orchestrator(start, None).await?;
///
/// // One turn: fetch it with a lease, decide, commit.
/// let fetched = store.fetch_orchestration_item(Duration::from_secs(5), Duration::ZERO, None).await?;
/// let (turn, lock_token, _attempt) = fetched.ok_or("a turn is ready")?;
/// let decided = EventKind::OrchestrationCompleted { output: "shipped".into() };
/// let event = Event::with_event_id(INITIAL_EVENT_ID, turn.instance, turn.execution_id, None, decided);
/// let metadata = ExecutionMetadata { status: Some("Completed".into()), ..ExecutionMetadata::default() };
/// store.ack_orchestration_item(&lock_token, turn.execution_id, vec![event], vec![], vec![], metadata, vec![]).await?;
///
/// assert!(store.read("order-1").await?[0].is_terminal());
/// # Ok(())
/// # }
/// ```
pub mod providers {
    pub use outlast_provider::{
        AuditEntry, AuditRecord, BoundedTurn, ClassifiedError, Clock, Completion, DeadLetter,
        DeadLetterOutcome, DeadLetterQueue, DeadLetterRecord, DeleteInstanceResult,
        DispatcherCapabilityFilter, EagerStart, EnqueueOnce, Entropy, ErrorClass, ExecutionInfo,
        ExecutionMetadata, FetchedTurn, FetchedWork, FusedCompletion, HeldCounts, HeldInstance, HistoryBound,
        Hold, HoldKind, HoldOutcome, InstanceFilter, InstanceInfo, InstanceItem, InstanceOutcome,
        InstancePage, InstanceQuery, InstanceTree, InstanceWatch, Interest, KvEntry, LeasedOutcome,
        LoadedTurn, MAX_WORKER_TAGS, ManagementProvider, MessageBound, NodeLease, NodeLoad,
        NodeOrchestration, NodePatch, NodeRecord, NodeReport, NodeTags, OldestDue, OrchestrationItem,
        OsEntropy, OversizedTurn, PausedOrchestration, PendingWork, Provider, ProviderAdmin, ProviderError,
        PruneOptions, PruneResult, QueueBacklog, QueueDepths, QueuePage, QueuedItem, ReleaseOutcome,
        ScheduledActivityIdentifier, SemverRange, SessionFetchConfig, StartOutcome, StartPolicy,
        StartRequest, StoreGauges, SystemClock, SystemMetrics, TagDepth, TagFilter, TurnAhead, TurnCommit,
        TurnRequest, WorkItem, WorkNotes, WorkRequest, current_build_version, forward_provider,
        saturating_ms,
    };
    pub use outlast_provider::{error, management};

    /// Instances as values: [`ProviderAdmin::export_instance`] and [`ProviderAdmin::import_instance`].
    pub mod snapshot {
        pub use outlast_model::{
            InstanceSnapshot, SnapshotActivity, SnapshotExecution, SnapshotHold, SnapshotKey,
            SnapshotKeyChange, SnapshotMessage, SnapshotRow,
        };
        pub use outlast_provider::{ExportOutcome, ImportOutcome};
        pub use outlast_provider_kit::transfer::{ExportRow, exported};
    }
    pub use outlast_provider_kit::migrations::{MigrationRefusal, SchemaState};
    pub use outlast_provider_kit::url::shown as shown_url;

    /// A store that measures the calls of another store.
    pub mod instrumented {
        pub use outlast_runtime::InstrumentedProvider;
    }

    /// The contract in plain Rust, for tests: data is lost when the process ends.
    pub mod memory {
        pub use outlast_memory::MemoryProvider;
    }

    /// The embedded store: one SQLite file.
    #[cfg(feature = "sqlite")]
    pub mod sqlite {
        pub use outlast_sqlite::*;
    }

    /// The store for many machines: PostgreSQL.
    #[cfg(feature = "postgres")]
    pub mod postgres {
        pub use outlast_postgres::*;
    }

    /// The store for Azure Cosmos DB.
    #[cfg(feature = "cosmos")]
    pub mod cosmos {
        pub use outlast_cosmos::*;
    }
}

/// The client: starts instances, sends them events, waits for them.
pub mod client {
    pub use outlast_runtime::{
        AlreadyExists, BulkChange, BulkVerb, Client, ClientError, Conflict, ListedNode, LostLeases, Reset,
        ResetSummary, StartBuilder, StartReceipt,
    };
}

/// Explains what an instance waits for, from its history and its queues. For tools that show instances.
pub mod lens {
    pub use outlast_runtime::lens::*;
}

/// The runtime, its options and registries.
pub mod runtime {
    pub use outlast_engine::ParentClosePolicy;
    pub use outlast_model::codec::{Codec, CustomCodec, PayloadCodec};
    pub use outlast_model::limits;
    #[doc(hidden)]
    pub use outlast_runtime::check;
    pub use outlast_runtime::observability::{LogFormat, ObservabilityConfig};
    pub use outlast_runtime::registry::{OrchestrationRegistry, OrchestrationRegistryBuilder, VersionPolicy};
    #[cfg(feature = "test-hooks")]
    pub use outlast_runtime::test_hooks;
    pub use outlast_runtime::{
        ActivityHandler, Attempt, FnActivity, FnOrchestration, Keep, OnMisfit, OptionProblem,
        OrchestrationDescriptor, OrchestrationHandler, OrchestrationStatus, Retention, RetentionReport,
        Runtime, RuntimeBuilder, RuntimeOptions, StartError, UnregisteredBackoffConfig, kind_of,
    };
    pub use outlast_runtime::{Module, Need, State, States};
    pub use outlast_runtime::{observability, observer, registry};
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

/// Stress runs for stores: a runtime under load, and measurements to compare.
#[cfg(any(feature = "provider-test", feature = "stress"))]
pub mod provider_stress_tests {
    pub use outlast_conformance::stress::*;
}

/// [`provider_stress_tests`] under its other name.
#[cfg(any(feature = "provider-test", feature = "stress"))]
pub mod provider_stress_test {
    pub use outlast_conformance::stress::*;
}
