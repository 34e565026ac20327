//! What is wrong with the input of every entry, and what then happens: an error where it enters, or an instance that
//! fails with a reason. Never a hang, and never somebody else's trouble.

mod clocks;
mod data;
mod flood;
mod giant_history;
mod ids;
mod late;
mod limits;
mod names;
mod panics;
mod registries;
mod strings;
