//! The engine, turn by turn. See `kit` for how a test reads.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod admission;
mod cancel;
mod child;
mod codec;
mod combinator;
mod cost;
mod foreign;
mod frozen;
mod kit;
mod kv;
mod legacy;
mod limits;
mod memory;
mod mismatch;
mod next;
mod panics;
mod patch;
mod property;
mod queue;
mod recipe;
mod replaying;
mod reset;
mod retry;
mod signal;
#[cfg(feature = "replay-version-test")]
mod topic;
mod turn;
