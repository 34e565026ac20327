//! Power cuts: a store on a disk that loses, reorders and tears whatever was not synced.
//!
//! The shipped store and SQLite run on their threads, as in production, on real files. Only what is durable is simulated: beside
//! each file the disk keeps what would be left of it. When the power goes, every call fails from then on. What was synced, and
//! a random share of what was not, becomes the disk of the next machine, and the store is opened on it again.
//!
//! Read `world.rs` first; then `disk.rs` and `wreck.rs` for how cruel the machine is, and `judge.rs` for what must hold all the same.

mod batch;
mod clients;
mod command;
mod disk;
mod file;
mod hands;
mod judge;
mod ledger;
mod stored;
mod tally;
mod vfs;
mod witness;
mod world;
mod wreck;

pub use batch::{Summary, run_many};
pub use command::run;
pub use tally::Tally;
pub use world::{Outcome, Settings, run as run_world};
