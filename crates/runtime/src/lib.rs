//! The runtime and the client of Outlast. The runtime fetches turns and activities from a store, runs them and commits their
//! results. The client starts instances, sends them events and waits for them.
//!
//! The engine computes the decisions of a turn, and a provider stores them. `dispatch` fetches turns and activities, calls the
//! engine and the handlers on tokio, and commits to the provider. Users use this crate through the crate `outlast`.

mod activity_context;
mod builder;
mod builtins;
#[cfg(test)]
mod captured;
#[doc(hidden)]
pub mod check;
mod client;
mod core;
mod dispatch;
mod gauges;
mod handler;
mod heartbeat;
mod instrumented;
pub mod lens;
mod local;
mod module;
pub mod observability;
mod observe;
pub mod observer;
mod options;
pub mod registry;
mod retention;
mod runtime;
mod signal;
mod status;
#[cfg(feature = "test-hooks")]
pub mod test_hooks;
mod uncounted;

pub use activity_context::ActivityContext;
pub use builder::{RuntimeBuilder, StartError};
pub use client::{
    AlreadyExists, BulkChange, BulkVerb, Client, ClientError, Conflict, ListedNode, LostLeases, Reset,
    ResetSummary, StartBuilder, StartReceipt,
};
pub use handler::{ActivityHandler, Attempt, FnActivity, FnOrchestration, OrchestrationHandler};
pub use instrumented::InstrumentedProvider;
pub use module::{Module, Need, State, States};
pub use options::{OnMisfit, OptionProblem, ParentClosePolicy, RuntimeOptions, UnregisteredBackoffConfig};
pub use retention::{Keep, Retention, RetentionReport};
pub use runtime::{OrchestrationDescriptor, Runtime, kind_of};
pub use status::OrchestrationStatus;
