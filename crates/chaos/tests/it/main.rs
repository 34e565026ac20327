//! Processes that are killed, machines that fail.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod judge;
mod power;
mod proxy;
