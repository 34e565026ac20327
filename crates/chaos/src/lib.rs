//! The shipped store and runtime on machines that fail.

pub mod power;
pub mod proxy;
pub mod server;
