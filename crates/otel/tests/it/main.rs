//! Runtimes with traces, and a collector that decodes OTLP with the official types.
// A test fails by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod collector;
mod context;
mod crash;
mod drops;
mod page;
mod program;
mod shape;
mod tree;
