//! Invalid input at every entry point: the call returns an error, or the instance fails with a reason. No call hangs, and no other
//! instance is affected.

mod clocks;
mod data;
// Both modules read the memory of their process from /proc.
#[cfg(target_os = "linux")]
mod flood;
#[cfg(target_os = "linux")]
mod giant_history;
mod ids;
mod late;
mod limits;
mod names;
mod panics;
mod registries;
mod strings;
