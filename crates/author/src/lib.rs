//! The typed layer of Outlast: activities and orchestrations are functions, and calls, messages, errors and state have types. Users
//! reach it through the crate `outlast`.
//!
//! The layer uses the string API, so both mix: in one orchestration, across the versions of a program, and between programs.
//!
//! The attributes and derives expand to public items of this crate. Three items are for expansions only: [`failed_or_text`], with
//! which `#[failure(call)]` converts a [`CallError`]; [`HasCallVariant`], whose message the compiler prints for a type without that
//! attribute; and `serde`, which derives the traits of the struct for several inputs. A program that implements the traits by hand can
//! use them.
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
pub use call_error::{CallError, HasCallVariant, failed_or_text};
pub use cancel::{OnCancel, Shielded};
pub use child::{Child, ContinueAsNew, Detached};
pub use context::{Durable, EndCancelled, set_status};
pub use definition::{AcceptedBy, Activity, FromScope, Orchestration, Outcome, Policy, Scope};
pub use error::{Context, Error, Result};
/// The text of an error in a history, for the mocks of `outlast-testing`.
#[doc(hidden)]
pub use failure::write as write_failure;
pub use failure::{Failure, RetryAfter, plain_text};
pub use handle::{Asking, Handle, ResultOf, Sending};
pub use instance_error::InstanceError;
pub use key::Key;
pub use message::{Asked, Message, Next, NextRequest, Outgoing, Request, Route, Within};
pub use outlast_engine::layer::Cancelled;
/// The attribute of activities.
///
/// ```
/// # use outlast::prelude::*;
/// # #[derive(Clone)]
/// # struct Gateway;
/// # impl Gateway {
/// #     async fn charge(&self, _key: &str, _cents: u64) -> Result<String, String> { Ok("receipt".into()) }
/// # }
/// #[outlast::activity(retry = 5, timeout = "30s")]
/// async fn charge(ctx: ActivityContext, State(gateway): State<Gateway>, cents: u64) -> Result<String, String> {
///     gateway.charge(&ctx.idempotency_key(), cents).await
/// }
/// # fn main() {}
/// ```
pub use outlast_macros::activity;
/// The attribute of orchestrations.
///
/// ```
/// # use outlast::prelude::*;
/// # #[derive(serde::Serialize, serde::Deserialize, outlast::Message)]
/// # struct Approval { yes: bool }
/// # #[outlast::activity]
/// # async fn charge(_ctx: ActivityContext, _cents: u64) -> Result<String, String> { Ok("receipt".into()) }
/// #[outlast::orchestration(accepts(Approval))]
/// async fn fulfil(ctx: OrchestrationContext, cents: u64) -> outlast::Result<Option<String>> {
///     let receipt = charge::call(&ctx, cents).await?;
///     let approval: Approval = ctx.next().await?;
///     Ok(approval.yes.then_some(receipt))
/// }
/// # fn main() {}
/// ```
pub use outlast_macros::orchestration;
pub use outlast_macros::{Failure, Message, deterministic};
pub use outlast_runtime::{Module, Need, State, States};
pub use payload::Payload;
pub use register::Register;
pub use start::Start;
pub use undo::{Undo, UndoFailed};

/// The serde with which expansions derive, whatever name serde has in the program.
pub use serde;
