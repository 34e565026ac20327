//! The shipped runtime in a simulated world.
//!
//! A world is one to four runtimes on one store, the memory store or SQLite, clients that drive generated orchestrations,
//! and faults: crashes, lost acknowledgements, stalls beyond a lease, errors, restarts, clocks that jump. Everything runs on one thread under tokio's paused clock, and
//! all chance comes from the seed, so a seed is a whole story that can be told again. `check` says what must hold in it.
//!
//! Read `world.rs` first, then `call.rs`, where the faults happen.

mod backend;
mod batch;
mod bug;
mod call;
mod check;
mod client;
mod clock;
mod fault;
mod heart;
mod mirror;
mod node;
mod plan;
mod program;
mod shared;
mod shrink;
mod statements;
mod store;
mod sweep;
mod tally;
mod trace;
mod witness;
mod world;

pub use batch::{Summary, first_failure, first_failures, run_many, run_while};
pub use bug::{BUGS, Bug};
pub use fault::Fault;
pub use shrink::shrink;
pub use sweep::{Level, Row, Sweep, SweepFailure, Swept, script_names, sweep, sweep_fault_names};
pub use tally::Tally;
pub use world::{Cut, Outcome, Settings, run};
