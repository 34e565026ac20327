//! Processes that are killed, machines that fail.

mod judge;
mod power;
