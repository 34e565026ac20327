//! Tests of the store: the contract, the model of the specification, and failures of servers and networks.
// A test fails by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod alone;
mod cold;
mod defects;
mod eager;
mod factory;
mod failing;
mod failover;
mod forwarding;
mod fused;
mod hand_off;
mod in_doubt;
mod interleaving;
mod large;
mod later;
mod line;
mod listening;
mod lookups;
mod model;
mod opening;
mod panicking;
mod retention;
mod room;
mod silence;
mod support;
mod takeover;

/// Every validation on a real server, each in a schema of its own.
mod contract {
    use crate::factory::PostgresFactory;
    outlast_conformance::provider_validation_tests!(real: PostgresFactory::new());
}
