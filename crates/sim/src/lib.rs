//! The shipped runtime in a simulated world.
//!
//! A world is two runtimes on one memory store, clients that drive generated orchestrations, and faults: crashes, lost
//! acknowledgements, stalls beyond a lease, errors, restarts. Everything runs on one thread under tokio's paused clock, and
//! all chance comes from the seed, so a seed is a whole story that can be told again. `check` says what must hold in it.
//!
//! Read `world.rs` first, then `call.rs`, where the faults happen.

mod batch;
mod bug;
mod call;
mod check;
mod client;
mod node;
mod panics;
mod plan;
mod program;
mod rng;
mod shared;
mod store;
mod tally;
mod trace;
mod witness;
mod world;

pub use batch::{Summary, first_failure, run_many};
pub use bug::{BUGS, Bug};
pub use plan::Fault;
pub use tally::Tally;
pub use world::{Outcome, Settings, run};
