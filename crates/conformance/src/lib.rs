//! The validation suite for Outlast storage providers: one public function per rule of the contract, each usable on
//! its own, plus [`run_all_validations`] and a macro that turns a factory into one test per validation.
//!
//! A validation panics when the store breaks its rule. It creates its own store through the factory, needs nothing
//! but `tokio`'s timer, and runs under paused time when the store's clock follows tokio's ([`TokioClock`]).
//!
//! A store need not have a management interface. Rules about management, deletion, pruning and listing fail without
//! it; all other validations then check through the other methods.
//!
//! The validations are the feature `validations`, which is on by default; without it the crate is [`stress`] alone. The feature `runtime` adds the parts that need an engine: the category `race_replay`, and the runs in [`stress`]. The feature `model`
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

#[cfg(feature = "validations")]
mod catalogue;
#[cfg(feature = "validations")]
mod factory;
#[cfg(feature = "validations")]
mod queues;
#[cfg(feature = "validations")]
mod report;
#[cfg(feature = "validations")]
mod snapshot;
#[cfg(feature = "validations")]
mod support;
mod time;

#[cfg(feature = "validations")]
mod atomicity;
#[cfg(feature = "validations")]
pub mod bad_input;
#[cfg(feature = "validations")]
pub mod batch_fetch;
#[cfg(feature = "validations")]
pub mod bulk_deletion;
#[cfg(feature = "validations")]
mod cancellation;
#[cfg(feature = "validations")]
pub mod capability_filtering;
#[cfg(feature = "validations")]
pub mod custom_status;
#[cfg(feature = "validations")]
pub mod dead_letters;
#[cfg(feature = "validations")]
pub mod deletion;
#[cfg(feature = "validations")]
pub mod dropped_fetch;
#[cfg(feature = "validations")]
pub mod eager_start;
#[cfg(feature = "validations")]
mod error_handling;
#[cfg(feature = "validations")]
pub mod families;
#[cfg(feature = "validations")]
pub mod fencing;
#[cfg(feature = "validations")]
pub mod fused_outcomes;
#[cfg(feature = "validations")]
pub mod holds;
#[cfg(feature = "validations")]
mod instance_creation;
#[cfg(feature = "validations")]
mod instance_locking;
#[cfg(feature = "validations")]
pub mod keyed;
#[cfg(feature = "validations")]
pub mod kv_store;
#[cfg(feature = "validations")]
pub mod leases;
#[cfg(feature = "validations")]
pub mod listing;
#[cfg(feature = "validations")]
mod lock_expiration;
#[cfg(feature = "validations")]
pub mod long_polling;
#[cfg(feature = "validations")]
mod management;
#[cfg(feature = "validations")]
pub mod message_bound;
#[cfg(feature = "validations")]
pub mod message_order;
#[cfg(all(feature = "model", feature = "validations"))]
pub mod model;
#[cfg(feature = "validations")]
mod multi_execution;
#[cfg(feature = "validations")]
pub mod nodes;
#[cfg(feature = "validations")]
pub mod noted_failures;
#[cfg(feature = "validations")]
pub mod orphans;
#[cfg(feature = "validations")]
pub mod outcome;
#[cfg(feature = "validations")]
pub mod pending;
#[cfg(feature = "validations")]
pub mod poison_message;
#[cfg(feature = "validations")]
pub mod prune;
#[cfg(feature = "validations")]
mod queue_semantics;
#[cfg(all(feature = "runtime", feature = "validations"))]
pub mod race_replay;
#[cfg(feature = "validations")]
pub mod requeues;
#[cfg(feature = "validations")]
pub mod resets;
#[cfg(feature = "validations")]
pub mod retention;
#[cfg(feature = "validations")]
pub mod run_ahead;
#[cfg(feature = "validations")]
pub mod sessions;
#[cfg(feature = "validations")]
pub mod start_policy;
pub mod stress;
#[cfg(feature = "validations")]
pub mod tag_filtering;
#[cfg(feature = "validations")]
pub mod transfers;
#[cfg(feature = "validations")]
pub mod traps;
#[cfg(feature = "validations")]
pub mod waiting;
#[cfg(feature = "validations")]
pub mod warm_fetch;

#[cfg(feature = "validations")]
pub use atomicity::*;
#[cfg(feature = "validations")]
pub use cancellation::*;
#[cfg(feature = "validations")]
pub use catalogue::{check_validation, validations};
#[cfg(feature = "validations")]
pub use error_handling::*;
#[cfg(feature = "validations")]
pub use factory::{FactoryFn, ProviderFactory, factory_fn};
#[cfg(feature = "validations")]
pub use instance_creation::*;
#[cfg(feature = "validations")]
pub use instance_locking::*;
#[cfg(feature = "validations")]
pub use lock_expiration::*;
#[cfg(feature = "validations")]
pub use management::*;
#[cfg(feature = "validations")]
pub use multi_execution::*;
#[cfg(feature = "validations")]
pub use queue_semantics::*;
#[cfg(feature = "validations")]
pub use report::{Validation, ValidationOutcome, ValidationReport, ValidationResult, run_all_validations};
pub use time::TokioClock;
