//! The shipped stores and runtime on machines, servers and networks that fail.

#[cfg(feature = "power")]
pub mod power;
mod power_args;
pub mod proxy;
pub mod server;

pub use power_args::PowerArgs;
