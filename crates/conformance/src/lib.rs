//! The validation suite for Outlast storage providers: one public function per rule of the contract, each usable on
//! its own, plus [`run_all_validations`] and a macro that turns a factory into one test per validation.
//!
//! A validation panics when the store breaks its rule. It creates its own store through the factory, needs nothing
//! but `tokio`'s timer, and runs under paused time when the store's clock follows tokio's ([`TokioClock`]).
//!
//! A store need not have a management interface. Rules about management, deletion, pruning and listing fail without
//! it; all others then check what can be seen otherwise.
//!
//! The feature `runtime` adds what needs an engine: the category `race_replay`, and the runs in [`stress`]. The feature `model`
//! adds the comparison of a store with the specification by random sequences of calls.
//!
//! ```
//! use outlast_conformance::ProviderFactory;
//! use outlast_memory::MemoryProvider;
//! use outlast_provider::Provider;
//! use std::sync::Arc;
//!
//! struct MyFactory;
//!
//! #[async_trait::async_trait]
//! impl ProviderFactory for MyFactory {
//!     async fn create_provider(&self) -> Arc<dyn Provider> {
//!         Arc::new(MemoryProvider::new())
//!     }
//! }
//!
//! mod validations {
//!     use super::MyFactory;
//!     outlast_conformance::provider_validation_tests!(real: MyFactory);
//! }
//! # fn main() {}
//! ```
// A validation is a test: it fails by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod catalogue;
mod factory;
mod queues;
mod report;
mod snapshot;
mod support;
mod time;

mod atomicity;
pub mod bad_input;
pub mod batch_fetch;
pub mod bulk_deletion;
mod cancellation;
pub mod capability_filtering;
pub mod custom_status;
pub mod dead_letters;
pub mod deletion;
pub mod dropped_fetch;
mod error_handling;
pub mod families;
pub mod fencing;
mod instance_creation;
mod instance_locking;
pub mod kv_store;
pub mod leases;
pub mod listing;
mod lock_expiration;
pub mod long_polling;
mod management;
pub mod message_order;
#[cfg(feature = "model")]
pub mod model;
mod multi_execution;
pub mod orphans;
pub mod outcome;
pub mod pending;
pub mod poison_message;
pub mod prune;
mod queue_semantics;
#[cfg(feature = "runtime")]
pub mod race_replay;
pub mod run_ahead;
pub mod sessions;
pub mod start_policy;
pub mod stress;
pub mod tag_filtering;
pub mod traps;
pub mod waiting;
pub mod warm_fetch;

pub use atomicity::*;
pub use cancellation::*;
pub use catalogue::{check_validation, validations};
pub use error_handling::*;
pub use factory::{FactoryFn, ProviderFactory, factory_fn};
pub use instance_creation::*;
pub use instance_locking::*;
pub use lock_expiration::*;
pub use management::*;
pub use multi_execution::*;
pub use queue_semantics::*;
pub use report::{Validation, ValidationOutcome, ValidationReport, ValidationResult, run_all_validations};
pub use time::TokioClock;
