//! The typed layer of Outlast: activities and orchestrations are functions, and calls, messages, errors and state have types. Users
//! reach it through the crate `outlast`.
//!
//! The layer uses the string API, so both mix: in one orchestration, across the versions of a program, and between programs.
//!
//! | file | holds |
//! |---|---|
//! | `definition.rs` | the traits that the attributes implement: [`Activity`], [`Orchestration`] |
//! | `register.rs` | their handlers on a worker, and [`module!`] |
//! | `call.rs`, `child.rs` | durable calls: [`Call`], [`Child`], [`Detached`], [`ContinueAsNew`] |
//! | `cancel.rs`, `undo.rs` | cancellation that code answers: [`OnCancel`], [`Undo`] |
//! | `message.rs`, `context.rs` | waits for messages, keys and status: [`Durable`] |
//! | `start.rs`, `handle.rs`, `known.rs` | the client's side: [`Start`], [`Handle`] |
//! | `failure.rs`, `call_error.rs`, `error.rs` | errors: [`Failure`], [`CallError`], [`Error`] |
//! | `payload.rs` | the one place where values become text |
//! | `time.rs` | durations by name: [`time::days`] |

mod call;
mod call_error;
mod cancel;
mod child;
mod context;
mod definition;
mod error;
mod failure;
mod handle;
mod instance_error;
mod key;
mod known;
mod message;
mod payload;
mod register;
mod start;
pub mod time;
mod undo;

pub use call::Call;
pub use call_error::CallError;
#[doc(hidden)]
pub use call_error::failed_or_text;
pub use cancel::{OnCancel, Shielded};
pub use child::{Child, ContinueAsNew, Detached};
pub use context::{Durable, EndCancelled, set_status};
pub use definition::{AcceptedBy, Activity, FromScope, Orchestration, Outcome, Policy, Scope};
pub use error::{Context, Error, Result};
#[doc(hidden)]
pub use failure::write as write_failure;
pub use failure::{Failure, RetryAfter, plain_text};
pub use handle::{Asking, Handle, ResultOf, Sending};
pub use instance_error::InstanceError;
pub use key::Key;
pub use message::{Asked, Lane, Message, Next, NextRequest, Request, Within};
pub use outlast_engine::layer::Cancelled;
pub use outlast_macros::{Failure, Message, activity, deterministic, orchestration};
pub use outlast_runtime::{Module, Need, State, States};
pub use payload::Payload;
pub use register::Register;
pub use start::Start;
pub use undo::{Undo, UndoFailed};

/// The serde that expansions use.
#[doc(hidden)]
pub use serde;
