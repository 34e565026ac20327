//! Tests that run the command as a process.
// A test fails by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

/// The crate under the name that the programs of the old stores use.
mod peer {
    pub(crate) use outlast::*;
}
#[path = "../../../../bench/peers/stores/src/programs.rs"]
mod peer_programs;

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
mod migrate;
#[cfg(all(unix, feature = "server"))]
mod needs_browser;
mod node;
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
mod transfer;
mod usage;
mod verbs;
mod waiting;
mod why;
