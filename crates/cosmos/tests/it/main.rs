//! The store against the contract and against the specification, on the rig or on the account that `COSMOS_ENDPOINT` names.
// A test fails by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bad_input;
mod cost;
mod counting;
mod defects;
mod deleting;
mod doubt;
mod factory;
mod faults;
mod fences;
mod fleet;
mod holds;
mod kit;
mod limits;
mod logs;
mod model;
mod opening;
mod outbox;
mod pruning;
mod published;
mod script;
mod several;
mod staging;
mod stress;
mod tls;

/// Every validation, each in a container of its own.
mod contract {
    use crate::factory::CosmosFactory;
    outlast_conformance::provider_validation_tests!(real: CosmosFactory::new());
}
