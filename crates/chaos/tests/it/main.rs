//! Tests of killed processes, power cuts, outages of the server, and disturbed connections.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod disturbance;
mod flood;
mod outage;
#[cfg(feature = "power")]
mod power;
mod proxy;
mod verify;

/// Held by tests that use the server, so that a test that stops it runs alone.
static SERVER_LOCK: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
