//! Tests that run the command as a process.
// A test fails by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

/// The crate under the name that the programs of the old stores use.
mod peer {
    pub(crate) use outlast::*;
}
#[path = "../../../../bench/peers/stores/src/programs.rs"]
mod peer_programs;

mod audit;
mod check;
mod config;
#[cfg(feature = "cosmos")]
mod cosmos;
mod dead_letter;
mod demo;
mod deploy;
mod doctor;
mod execution;
#[cfg(unix)]
mod follow;
mod instance;
#[cfg(unix)]
mod killed;
mod migrate;
mod migrations;
#[cfg(all(unix, feature = "server"))]
mod needs_browser;
mod node;
#[cfg(all(unix, feature = "server"))]
mod page;
mod postgres;
mod program;
mod retention;
mod runbooks;
#[cfg(all(unix, feature = "server"))]
mod serve;
mod server_states;
mod sizes;
// With all commands.
#[cfg(all(unix, feature = "server", feature = "tui"))]
mod snapshots;
mod stores;
mod stress;
mod support;
#[cfg(target_os = "linux")]
mod terminal;
mod timeline;
#[cfg(feature = "server")]
mod token;
#[cfg(all(target_os = "linux", feature = "tui"))]
mod top;
mod transfer;
mod usage;
mod verbs;
mod waiting;
mod why;
