//! Tables: a history and queue rows, one line each, and the expected lines.
// A test fails by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod diff;
mod kit;
mod state;
mod time;
mod timeline;
mod waits;
mod why;
