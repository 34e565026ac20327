//! Fetch, process, commit or give back: the loops of a runtime.

pub(crate) mod ahead;
pub(crate) mod aside;
mod backoff;
mod commit;
mod contain;
#[cfg(test)]
mod fixture;
mod history;
pub(crate) mod lease;
pub(crate) mod retries;
pub(crate) mod running;
pub(crate) mod session;
mod slot;
mod turn;
mod undecodable;
mod unregistered;
pub(crate) mod warm;
mod work;

pub(crate) use slot::run_slots;
pub(crate) use turn::Turns;
pub(crate) use work::Works;
