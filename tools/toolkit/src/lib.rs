//! Code that `xtask` and the programs in `tools/` share.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "command-line tools print to their terminal")]

pub mod bench_server;
pub mod blocks;
pub mod files;
pub mod installed;
pub mod page;
pub mod postgres;
pub mod process;
mod stopwatch;

pub use stopwatch::{Stopwatch, processor_time};
