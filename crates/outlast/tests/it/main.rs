//! End-to-end tests: programs on real stores, through the public API only.
// A test fails by panicking, and a child process reports by printing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod author;
mod bad_input;
mod canary;
mod drain;
mod frozen;
mod large_commits;
mod leasing_ahead;
mod messages;
mod needs_postgres;
mod observability;
mod pages;
mod parking;
mod pausing;
mod processes;
mod readme;
mod rolling;
mod scenario;
mod shutdown;
mod support;
mod weakness;
