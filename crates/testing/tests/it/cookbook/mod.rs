//! The programs of docs/cookbook.md: one file for each recipe. `cargo xtask pages` copies the marked lines into the page.

mod actor;
mod agent;
mod approval;
mod fan_out;
mod human;
mod monitor;
mod nightly;
mod polling;
mod saga;
mod webhook;
