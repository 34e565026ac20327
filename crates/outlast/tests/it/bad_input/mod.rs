//! What is wrong with the input of every entry, and what then happens: an error where it enters, or an instance that
//! fails with a reason. Never a hang, and never somebody else's trouble.

mod clocks;
mod data;
// Both read the memory of their process from /proc.
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
