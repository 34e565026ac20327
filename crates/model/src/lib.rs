//! The data model of Outlast: entries of a history ([`Event`]), items of the two queues ([`WorkItem`]), the result of a
//! turn ([`TurnCommit`]), failures ([`ErrorDetails`]), and their JSON shapes.
//!
//! The crate has constructors and accessors, and no other behaviour. The JSON shapes are stable: a version reads the stores
//! of earlier versions, and golden tests check every shape byte for byte.

mod action;
mod audit;
mod clock;
pub mod codec;
mod commit;
mod dead_letter;
#[doc(hidden)]
pub mod defect;
mod error;
mod event;
mod head;
mod hold;
mod ids;
pub mod json;
pub mod limits;
mod node;
mod patch;
mod pending;
mod reset;
mod retry;
mod size;
mod snapshot;
mod stats;
mod status;
mod version;
mod work_item;

pub use action::{Action, LogLevel, ScheduleKind};
pub use audit::{AuditEntry, AuditRecord};
pub use clock::wall_clock_ms;
pub use commit::{ExecutionMetadata, ScheduledActivityIdentifier, TurnCommit};
pub use dead_letter::{DeadLetter, DeadLetterQueue, DeadLetterRecord};
pub use error::{AppErrorKind, ConfigErrorKind, ErrorDetails, PoisonMessageType};
pub use event::{Event, EventKind};
pub use head::{HEAD_CHARS, WorkItemHead, decode_head};
pub use hold::{HeldCounts, HeldInstance, Hold, HoldKind, PausedOrchestration};
pub use ids::{
    INITIAL_EVENT_ID, INITIAL_EXECUTION_ID, InvalidInstanceId, SUB_ORCH_AUTO_PREFIX, build_child_instance_id,
    check_instance_id, is_auto_generated_sub_orch_id,
};
pub use node::{NodeLease, NodeLoad, NodeOrchestration, NodePatch, NodeRecord, NodeReport, NodeTags};
pub use patch::{PATCH_KEY_PREFIX, patch_of};
pub use pending::{InstanceItem, PendingWork, QueuePage, QueuedItem, TagDepth};
pub use reset::{ResetKey, ResetPlan};
pub use retry::{BackoffStrategy, RetryPolicy};
pub use snapshot::{
    InstanceSnapshot, SnapshotActivity, SnapshotExecution, SnapshotHold, SnapshotKey, SnapshotKeyChange,
    SnapshotMessage, SnapshotRow,
};
pub use stats::SystemStats;
pub use status::ExecutionStatus;
pub use version::{CONTRACT_VERSION, current_build_version};
pub use work_item::WorkItem;
