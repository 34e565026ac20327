//! Processes that are killed, machines that fail.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod disturbance;
mod flood;
mod judge;
mod outage;
mod power;
mod proxy;

/// Tests that need the server of the tests, and those that stop it, one at a time.
static ALONE_WITH_THE_SERVER: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
