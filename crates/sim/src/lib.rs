//! The simulator: the shipped runtime and stores under virtual time and injected faults.
//!
//! A world is one to four runtimes on one store, clients that drive generated orchestrations, and faults: crashes, lost
//! acknowledgements, stalls longer than a lease, errors, restarts, clocks that jump. The store of most worlds is a SQLite file, which
//! every process opens for itself; in the others it is the memory store, both side by side, or the PostgreSQL store on a model of its server.
//! Everything runs on one thread under tokio's paused clock, and every random choice follows from the seed,
//! so two runs of a seed have the same trace. `check` lists the invariants that must hold in every world.
//!
//! | word | means here |
//! |---|---|
//! | world | one simulated deployment, from its start to the end of its last instance |
//! | node | a process with a runtime; it crashes and starts again |
//! | life | the time from a start of a node to its next crash or shutdown |
//! | local client | a client in the process of a node, which starts instances on the store object of the runtime |
//! | root | an instance that a client starts |
//! | stray | an instance id that receives messages and is never started |
//! | disturbance | an event that excuses a node if it loses a lease, such as a stall or a crash |
//! | heal | the end of all faults; from then on every instance must end |
//! | sweep | the run of each script once for every moment at which a fault can happen |
//! | script | a fixed program of a sweep with its expected result |
//! | moment | a call, a statement or a poll at which a sweep can inject a fault |
//!
//! Read `world.rs` first, then `call.rs`, where faults are injected into calls.

mod at_once;
mod audit;
mod backend;
mod batch;
mod bug;
mod call;
mod check;
mod client;
mod clock;
mod effects;
mod fault;
mod leases;
mod life;
mod mirror;
mod node;
mod performed;
mod plan;
mod postgres_world;
mod program;
mod recorded;
mod shared;
mod shrink;
mod sqlite_file;
mod statement_faults;
mod store;
mod sweep;
mod tally;
mod trace;
mod world;

pub use batch::{Summary, first_failure, first_failures, run_many, run_while};
pub use bug::{BUGS, Bug, shipped_bugs};
pub use fault::Fault;
pub use recorded::{recorded_first, recorded_seeds};
pub use shrink::shrink;
pub use sweep::{Level, Row, Sweep, SweepFailure, SweepResult, script_names, sweep, sweep_fault_names};
pub use tally::Tally;
pub use world::{Cut, Outcome, Settings, run};
