//! The runtime and the client of Outlast: what fetches turns and activities from a store, runs them and commits what they
//! decided, and what starts instances and waits for them.
//!
//! This is where tokio lives. The engine decides what a turn does, a provider keeps it; `dispatch` is the loop in
//! between. Users see all of it through the crate `outlast`.

mod activity_context;
mod builder;
mod builtins;
#[cfg(test)]
mod captured;
mod client;
mod core;
mod dispatch;
mod gauges;
mod handler;
mod instrumented;
pub mod lens;
pub mod observability;
mod observe;
mod options;
pub mod registry;
mod runtime;
mod status;
#[cfg(feature = "test-hooks")]
pub mod test_hooks;
mod uncounted;

pub use activity_context::ActivityContext;
pub use builder::{RuntimeBuilder, StartError};
pub use client::{AlreadyExists, Client, ClientError, Conflict, StartBuilder, StartReceipt};
pub use handler::{ActivityHandler, FnActivity, FnOrchestration, OrchestrationHandler};
pub use instrumented::InstrumentedProvider;
pub use options::{OptionProblem, ParentClosePolicy, RuntimeOptions, UnregisteredBackoffConfig};
pub use runtime::{OrchestrationDescriptor, Runtime, kind_of};
pub use status::OrchestrationStatus;
