//! The storage contract in plain Rust.
//!
//! [`MemoryProvider`] is the specification that other stores are compared with, the store of tests and the store of the
//! simulator. It is written to be read, not to be fast. It shares no code with the other stores, and it keeps nothing
//! when the process ends.
//!
//! `rules` states the rules of the contract. With the feature `defects`, a store can be opened with one broken rule, which
//! is how the validation suite shows that it can fail.

// The files that every store has, in the same order.
mod commit;

mod fetch;

mod activity;

mod park;

mod admin;

// All other operations.
mod ahead;
mod dead_letter;
mod dump;
mod hold;
mod kv;
mod node;
mod once;
mod pending;
mod provider;
mod queue;
mod reset;
mod retention;
mod session;
mod start;
mod state;
mod stats;
mod transfer;
mod watch;

// The rules that the operations ask.
#[cfg(feature = "defects")]
mod defects;
mod rules;

#[cfg(feature = "defects")]
pub use defects::{Defect, Rules};
pub use provider::MemoryProvider;
