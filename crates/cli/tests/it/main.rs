//! Tests that run the command as a process.
// A test fails by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod check;
mod config;
#[cfg(feature = "cosmos")]
mod cosmos;
mod dead_letter;
mod demo;
mod doctor;
mod instance;
#[cfg(unix)]
mod killed;
#[cfg(all(unix, feature = "server"))]
mod page;
mod postgres;
mod program;
#[cfg(all(unix, feature = "server"))]
mod serve;
mod stores;
mod stress;
mod support;
mod timeline;
mod usage;
mod verbs;
mod waiting;
mod why;
