//! The programs of docs/guide: one file for each chapter. `cargo xtask pages` copies the marked lines into the pages.
#![allow(clippy::print_stdout, reason = "the programs talk to their terminals")]

mod activities;
mod children;
// The page has half a line for it.
#[rustfmt::skip]
mod coming_from;
mod configuration;
mod determinism;
mod errors;
mod messages;
mod project;
mod quickstart;
mod sagas;
mod state;
mod testing;
mod upgrading;
mod waiting;
