//! The storage contract of Outlast: [`Provider`], [`ProviderAdmin`], their arguments and results, and the clock and entropy
//! that a store is given. [`forward_provider!`] is for wrappers around a store.
//!
//! A store keeps histories and two queues, grants leases, and commits a turn atomically. It never creates execution or event
//! ids, never runs a handler and never decides the content of a turn. The validation suite in
//! `outlast-conformance` checks every rule; `docs/provider-guide.md` explains them.

mod admin;
mod ahead;
mod bound;
mod class;
mod clock;
mod dead_letter;
mod entropy;
pub mod error;
mod filter;
mod forward;
mod gauges;
mod hold;
mod item;
mod listing;
pub mod management;
mod once;
mod outcome;
mod provider;
mod reset;
mod retention;
mod start;
mod tags;
mod transfer;
mod turn;
mod watch;
mod work;

pub use admin::ProviderAdmin;
pub use ahead::{Completion, EagerStart, FusedCompletion, LeasedOutcome, TurnAhead};
pub use bound::{BoundedTurn, HistoryBound, MessageBound, OversizedTurn};
pub use class::{ClassifiedError, ErrorClass};
pub use clock::{Clock, SystemClock, saturating_ms};
pub use dead_letter::DeadLetterOutcome;
pub use entropy::{Entropy, OsEntropy};
pub use error::ProviderError;
pub use filter::{DispatcherCapabilityFilter, SemverRange};
pub use gauges::{OldestDue, QueueBacklog, StoreGauges};
pub use hold::{HoldOutcome, ReleaseOutcome};
pub use item::{KvEntry, OrchestrationItem, SessionFetchConfig};
pub use listing::{InstancePage, InstanceQuery};
pub use management::{
    DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree, ManagementProvider,
    PruneOptions, PruneResult, QueueDepths, SystemMetrics,
};
pub use once::EnqueueOnce;
pub use outcome::InstanceOutcome;
pub use outlast_model as model;
pub use outlast_model::{
    AuditEntry, AuditRecord, DeadLetter, DeadLetterQueue, DeadLetterRecord, ExecutionMetadata, HeldCounts,
    HeldInstance, Hold, HoldKind, InstanceItem, InstanceSnapshot, NodeLease, NodeLoad, NodeOrchestration,
    NodePatch, NodeRecord, NodeReport, NodeTags, PausedOrchestration, PendingWork, QueuePage, QueuedItem,
    ResetKey, ResetPlan, ScheduledActivityIdentifier, TagDepth, TurnCommit, WorkItem, current_build_version,
    limits::MAX_WORKER_TAGS,
};
pub use provider::Provider;
pub use reset::ResetOutcome;
pub use retention::{OldInstance, OldestPage};
pub use start::{StartOutcome, StartPolicy, StartRequest};
pub use tags::TagFilter;
pub use transfer::{ExportOutcome, ImportOutcome};
pub use turn::{FetchedTurn, LoadedTurn, TurnRequest};
pub use watch::{InstanceWatch, Interest};
pub use work::{FetchedWork, WorkNotes, WorkRequest};
