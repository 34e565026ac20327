//! Power cuts: a store on a simulated disk that loses, reorders and tears unsynced writes.
//!
//! The shipped store and SQLite run on their own threads and on real files, as in production. Only durability is
//! simulated: for each file the disk keeps the bytes that are synced and the changes that are not. The disk sees the
//! calls of SQLite as its file system, and the store's own writes, which preallocate the log, through a hook of the
//! store. After a power cut every call fails. The synced bytes and a random part of the unsynced changes become the disk
//! of the next boot, and the store is opened on it again.
//!
//! Read `power_run.rs` first; then `disk.rs` and `after_cut.rs` for the simulated disk, and `verify.rs` for the checks
//! after each cut.

mod after_cut;
mod batch;
mod call_log;
mod clients;
mod command;
mod cut_counts;
mod disk;
mod drivers;
mod file;
mod power_run;
mod recording_store;
mod stored;
mod verify;
mod vfs;

pub use batch::{Summary, run_many};
pub use command::run;
pub use cut_counts::CutCounts;
pub use power_run::{Outcome, Sabotage, Settings, run as run_seed};
