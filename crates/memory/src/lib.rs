//! The storage contract in plain Rust.
//!
//! [`MemoryProvider`] is the specification that other stores are compared with, the store of test kits and the store
//! of the simulator. It favours being read over being fast, shares no code with the other stores on purpose, and
//! keeps nothing when the process ends.
//!
//! Its behaviour is a value: [`Rules::default`] is the contract, and a [`Defect`] is the contract with one thing
//! wrong, which is how the validation suite proves that it can fail.

mod admin;
mod ahead;
mod commit;
mod dump;
mod fetch;
mod kv;
mod pending;
mod provider;
mod queue;
mod rules;
mod session;
mod start;
mod state;
mod watch;
mod work;

pub use provider::MemoryProvider;
pub use rules::{Defect, Rules};
