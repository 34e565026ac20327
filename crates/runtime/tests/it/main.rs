//! The runtime's parts through its public interface.
// A test fails by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod activities;
mod child_start;
mod client;
mod codec;
mod diagnosis;
mod fused;
mod holds;
mod instrumented;
mod local_waits;
mod logging;
mod metrics;
mod nodes;
mod options;
mod registry;
mod resets;
mod retention;
mod store_spans;
mod successor;
mod undecodable;
