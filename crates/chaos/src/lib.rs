//! The shipped stores and runtime on machines, servers and networks that fail.

#[cfg(feature = "power")]
pub mod power;
pub mod proxy;
pub mod server;
