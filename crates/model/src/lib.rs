//! Data that Outlast stores and passes around: what happened ([`Event`]), what waits in a queue
//! ([`WorkItem`]), how things fail ([`ErrorDetails`]), and how each of them looks as JSON.
//!
//! There is no behaviour here beyond constructors and accessors. The JSON shapes are a promise: stores
//! written by one version are read by the next, and golden tests pin every shape byte for byte.

mod action;
mod clock;
pub mod codec;
mod commit;
mod error;
mod event;
mod head;
mod ids;
pub mod json;
pub mod limits;
mod retry;
mod size;
mod stats;
mod status;
mod version;
mod work_item;

pub use action::{Action, LogLevel, ScheduleKind};
pub use clock::wall_clock_ms;
pub use commit::{ExecutionMetadata, ScheduledActivityIdentifier, TurnCommit};
pub use error::{AppErrorKind, ConfigErrorKind, ErrorDetails, PoisonMessageType};
pub use event::{Event, EventKind};
pub use head::{HEAD_CHARS, WorkItemHead, decode_head};
pub use ids::{
    INITIAL_EVENT_ID, INITIAL_EXECUTION_ID, InvalidInstanceId, SUB_ORCH_AUTO_PREFIX, build_child_instance_id,
    check_instance_id, is_auto_generated_sub_orch_id,
};
pub use retry::{BackoffStrategy, RetryPolicy};
pub use stats::SystemStats;
pub use status::ExecutionStatus;
pub use version::{CONTRACT_VERSION, current_build_version};
pub use work_item::WorkItem;
