//! Tests of the suite itself: the memory store passes all validations, a store that stores nothing passes none, and every seeded
//! defect is caught.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail by panicking")]

mod defects;
mod edges;
mod factory;
mod forward;
#[cfg(feature = "model")]
mod model;
mod null_store;
#[cfg(feature = "runtime")]
mod race_replay;
#[cfg(feature = "runtime")]
mod stress;

mod memory {
    use crate::factory::MemoryFactory;
    outlast_conformance::provider_validation_tests!(paused: MemoryFactory::default());
}
